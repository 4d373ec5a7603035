"""Mechanisms whose outputs can be listed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms.base import Mechanism

_MOST = 10**5


@dataclass(frozen=True)
class Enumerated(Mechanism):
    """A subclass lists its outputs, and declares ``log_density``; the rest follows."""

    @abstractmethod
    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """All that may come of a prepared value, in one order, shape (n, *shape of one).

        Raises:
            UnsupportedError: if they cannot be listed, or are too many.
        """

    def probabilities(self, value: ArrayLike) -> tuple[float, ...]:
        """The probability of each output."""
        every = self.outputs(self.prepare(value))
        return tuple(np.exp(self.log_density(every, value)).tolist())


def require_few(outputs: int, kind: str) -> None:
    """Refuse to list more than 100 000."""
    if outputs > _MOST:
        raise UnsupportedError(f"{kind} has more than {_MOST} outputs here, too many to list.")
