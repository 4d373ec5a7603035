"""One-shot top-k: the k largest utilities, in order, under noise that is drawn once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import permutations
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import at_least
from dpaudit.mechanisms.base import Mechanism, changes
from dpaudit.mechanisms.choice import Noise
from dpaudit.mechanisms.enumerated import require_few
from dpaudit.mechanisms.noisy_max import PermuteAndFlip
from dpaudit.mechanisms.pairs import DominatingPair, Floats, LaplaceBound


@dataclass(frozen=True)
class TopK(PermuteAndFlip):
    """Chooses the indices of the k largest utilities with Gumbel noise, in order; no value leaves.

    Its law is that of the exponential mechanism, asked k times for one of those that are left
    (Durfee and Rogers 2019, *Practical differentially private top-k selection with
    pay-what-you-get composition*, Lemma 4.2). So it costs k adaptive choices of bounded range ε.

    Attributes:
        epsilon: the pure ε of each of the k choices; together they are kε-private.
        k: how many are chosen, of at least as many candidates.
    """

    is_tight = False  # an adversary may choose utilities anew, neighbours may not
    kind: ClassVar[str] = "top-k"
    k: Annotated[int, at_least(1, 10**4)] = field(kw_only=True)

    @property
    def law(self) -> Noise:
        """Gumbel noise."""
        return Noise.GUMBEL

    def pair(self, sensitivity: float) -> DominatingPair:
        """Of several choices the Laplace law of ratio kε, as utilities that move by tΔ cost tkε.

        Raises:
            InputError: if the sensitivity is not 0 or 1.
        """
        if self.k > 1 and changes(sensitivity, self.kind):
            return LaplaceBound(self.k * Fraction(self.epsilon))
        return super().pair(sensitivity)

    def composed_of(self) -> tuple[tuple[Mechanism, float, int], ...]:
        """The k choices."""
        return ((replace(self, k=1), 1.0, self.k),) if self.k > 1 else ()

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of at least k utilities."""
        utilities = super().prepare(value)
        if utilities.size < self.k:
            raise InputError(
                f"value has {utilities.size} utilities; top-k needs at least {self.k}."
            )
        return utilities

    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """All k of the indices, in any order."""
        require_few(math.perm(value.size, self.k), self.kind)
        return np.array(list(permutations(range(value.size), self.k)))

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """The sum of k softmaxes, each over those that are left."""
        from scipy.special import log_softmax

        utilities, asked = self.prepare(value), np.asarray(outputs, dtype=np.float64)
        within = (asked >= 0) & (asked < utilities.size) & (asked == np.floor(asked))
        left, density = np.tile(utilities, (len(asked), 1)), np.zeros(len(asked))
        for place in np.where(within, asked, 0).astype(np.int64).T[:, :, None]:
            softmax = log_softmax(self.exponents(left), axis=-1)
            density += np.take_along_axis(softmax, place, axis=-1)[:, 0]
            np.put_along_axis(left, place, -np.inf, axis=-1)
        return np.where(within.all(axis=-1), density, -np.inf)
