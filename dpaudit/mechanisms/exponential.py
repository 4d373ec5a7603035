"""The exponential mechanism: a private choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.mechanisms.choice import Choice, Noise


@dataclass(frozen=True)
class ExponentialMechanism(Choice):
    """Chooses an index with probability proportional to exp(ε u / 2Δ) (McSherry and Talwar 2007).

    >>> import numpy as np
    >>> choice = ExponentialMechanism(epsilon=2.0, utility_sensitivity=1.0)
    >>> choice.release([0.0, 1000.0, 0.0], np.random.default_rng(0))
    1
    """

    kind: ClassVar[str] = "exponential"

    @property
    def law(self) -> Noise:
        """Gumbel noise has just this law."""
        return Noise.GUMBEL
