"""What exact samplers ask of whoever has the entropy."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class ExactSource(Protocol):
    """Exact samplers with secret entropy, such as :class:`~dpaudit.ledger.SecureNoise`."""

    def step(self, scale: float) -> float:
        """The grid step, a power of two, for continuous noise of that scale.

        Raises:
            UnsupportedError: if no float is so small a step.
        """

    def laplace(self, scale: float, values: NDArray[Any]) -> NDArray[Any]:
        """Whole numbers plus noise of mass proportional to exp(−|k|/scale), as Python's integers.

        Here and in :meth:`normal` value and noise meet, and nowhere else.

        Raises:
            UnsupportedError: if the scale is above 2^52.
        """

    def normal(self, sigma: float, values: NDArray[Any]) -> NDArray[Any]:
        """The same with noise of mass proportional to exp(−k²/2σ²)."""

    def integers(self, bound: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Uniform integers in 0…bound − 1."""

    def events(self, probability: float, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Independent events of exactly that probability, as the float is."""

    def below(self, bound: int) -> int:
        """One uniform integer in 0…bound − 1, of any size."""
