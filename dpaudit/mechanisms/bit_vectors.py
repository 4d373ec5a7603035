"""Randomised response of vectors of bits, of which few are 1."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Rate, at_least
from dpaudit.mechanisms.base import Mechanism, Norm, changes, integer_array
from dpaudit.mechanisms.local_randomizers import RandomizedResponse
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair
from dpaudit.mechanisms.pairs.finite import WORK_OF_LOSS
from dpaudit.mechanisms.rounding import log_up

_MOST_BITS = 10_000


@dataclass(frozen=True)
class BitVectorResponse(Mechanism):
    """With probability p a uniform bit in place of each bit of a vector, otherwise the bit itself.

    The permanent response of RAPPOR (Erlingsson, Pihur and Korolova 2014), where a value sets some
    bits of many, as in a Bloom filter. Two vectors of at most w ones differ in at most d bits, 2w
    or all; those that differ are independent randomised responses, and all others have the same
    law. So ε = d ln((2 − p)/p), and d uses of randomised response have the whole curve.

    Attributes:
        p: probability of the uniform bit, in (0, 1]; f of RAPPOR.
        bits: how many bits there are, at most 10 000.
        ones: w, how many of them may be 1.

    >>> round(float(BitVectorResponse(p=0.5, bits=32, ones=2).pair(1).pure_epsilon), 4)
    4.3944
    """

    kind: ClassVar[str] = "bit-vector-response"
    norm: ClassVar[Norm] = Norm.CHANGE
    p: Rate
    bits: Annotated[int, at_least(1, _MOST_BITS)]
    ones: Annotated[int, at_least(1, _MOST_BITS)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ones > self.bits:
            raise InputError(f"ones is {self.ones}; it must be at most bits, {self.bits}.")

    @property
    def bit(self) -> RandomizedResponse:
        """What tells each bit."""
        return RandomizedResponse(self.p)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """Of j true bits among d that differ the loss (2j − d) ln((2 − p)/p).

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
        """
        if not changes(sensitivity, self.kind) or self.p == 1:
            return costless_pair()
        return _of_bits(self.p, min(2 * self.ones, self.bits))

    def work(self, sensitivity: float) -> float:
        """A loss for each bit that differs."""
        return WORK_OF_LOSS * min(2 * self.ones, self.bits)

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """−p: with more uniform bits it is a post-processing."""
        return (self.bits, self.ones, sensitivity), -self.p

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """1: any vector may become any other."""
        return 1.0

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A vector of so many bits."""
        vector = integer_array(value)
        if vector.shape != (self.bits,) or not ((vector == 0) | (vector == 1)).all():
            raise InputError(f"value must be a vector of {self.bits} bits.")
        if vector.sum() > self.ones:
            raise InputError(f"value has more than {self.ones} bits that are 1.")
        return vector

    # -- law -------------------------------------------------------------------------------------

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """The sum over bits."""
        return self.bit.log_density(outputs, self.prepare(value))

    def probabilities(self, value: ArrayLike) -> tuple[Fraction, ...]:
        """Of all vectors, in lexicographic order; exact.

        Raises:
            UnsupportedError: if there are more than a million.
        """
        return self.bit.probabilities(self.prepare(value))


@lru_cache(maxsize=64)
def _of_bits(p: float, differing: int) -> FinitePair:
    """Binomial masses, each to 40 digits before it is a float: 0 is the least float then."""
    lie = Fraction(p) / 2
    step = log_up((1 - lie) / lie)
    with localcontext(prec=40, Emin=-(10**9)):
        odds = (Decimal(2) - Decimal(p)) / Decimal(p)
        mass = (Decimal(p) / 2) ** differing
        masses = [mass]
        for j in range(differing):
            mass *= odds * (differing - j) / (j + 1)
            masses.append(mass)
        truths: Floats = np.array([max(float(each), 5e-324) for each in masses])
    losses = np.array([step * (2 * j - differing) for j in range(differing + 1)], np.float64)
    return FinitePair(losses, truths, truths[::-1].copy(), bound=differing * Fraction(step))
