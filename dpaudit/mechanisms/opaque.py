"""A release whose privacy is only claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import UnsupportedError
from dpaudit.fields import Name, NonNegative, Probability
from dpaudit.mechanisms.base import Mechanism, Norm, checked_sensitivity, require_proof
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats

__all__ = ["Opaque"]

Sampler = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]


@dataclass(frozen=True)
class Opaque(Mechanism):
    """A randomised release with a stated (ε, δ) and no accountant proof.

    Attributes:
        label: what it is, for people.
        epsilon: the ε that its author states for one use.
        delta: the δ that its author states for one use.
        sampler: draws one release of a value; not serialised, so that a plan stays data. Without
            it the mechanism can be declared but not run.
    """

    kind: ClassVar[str] = "opaque"
    norm: ClassVar[Norm] = Norm.CHANGE
    label: Name
    epsilon: NonNegative
    delta: Probability = 0.0
    sampler: Sampler | None = field(default=None, compare=False, repr=False)

    def pair(self, sensitivity: float) -> DominatingPair:
        """None but for equal data, which cost nothing whatever the mechanism.

        Raises:
            UnsupportedError: always for neighbours that differ.
        """
        if checked_sensitivity(sensitivity) == 0:
            return FinitePair(np.zeros(1), np.ones(1), np.ones(1))
        raise require_proof(f"opaque mechanism {self.label!r}")

    def release_many(self, value: ArrayLike, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` calls of the sampler, stacked."""
        size = validate.integer_at_least(0, size=size)
        prepared = self._prepare(value)
        if self.sampler is None:
            raise UnsupportedError(f"opaque mechanism {self.label!r} has no sampler; give it one.")
        return np.stack([np.asarray(self.sampler(prepared, rng)) for _ in range(size)])

    def _sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        raise UnsupportedError(f"opaque mechanism {self.label!r} is sampled run by run.")

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Unknown.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(f"opaque mechanism {self.label!r} declares no density.")
