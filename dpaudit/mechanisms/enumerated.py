"""Mechanisms whose outputs can be listed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms.base import Mechanism
from dpaudit.mechanisms.tails import Tails, choice_tails

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

    def tails(self, released: ArrayLike, value: NDArray[Any], rng: np.random.Generator) -> Tails:
        """One choice among all outputs; a tail of 0 for what is none of them."""
        every = self.outputs(value)
        same = (every == np.asarray(released)).reshape(len(every), -1).all(axis=1)
        if not same.any():
            return Tails(np.zeros(1), np.zeros(1, dtype=bool), np.empty(0))
        masses = np.exp(self.log_density(every, value))
        return choice_tails(masses[None], np.flatnonzero(same), rng)


def require_few(outputs: int, kind: str) -> None:
    """Refuse to list more than 100 000."""
    if outputs > _MOST:
        raise UnsupportedError(f"{kind} has more than {_MOST} outputs here, too many to list.")
