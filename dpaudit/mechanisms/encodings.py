"""Local reports of one answer out of k: unary encodings and subset selection."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, OpenProbability, Rate, at_least
from dpaudit.mechanisms.base import Norm, changes, integer_array
from dpaudit.mechanisms.enumerated import Enumerated, require_few
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair
from dpaudit.mechanisms.rounding import log_up

_MOST_ANSWERS = 10**4


@dataclass(frozen=True)
class Encoding(Enumerated):
    """A report of one answer as a vector of k bits.

    Attributes:
        k: number of answers, at least 2; answers are the integers 0…k−1.
    """

    norm: ClassVar[Norm] = Norm.CHANGE
    k: Annotated[int, at_least(2, _MOST_ANSWERS)]

    @abstractmethod
    def _distinct(self) -> tuple[Fraction, Fraction]:
        """The probability that of two answers the true one alone has its bit; and the other one."""

    def pair(self, sensitivity: float) -> DominatingPair:
        """Two answers, told apart by their own two bits: losses −ε, 0 and ε.

        All other bits have the same law whichever of the two is true, given these.

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
        """
        low, high = sorted(self._distinct())
        if not changes(sensitivity, self.kind) or low == high:
            return costless_pair()
        epsilon = log_up(high / low)
        masses = np.array([float(low), float(1 - low - high), float(high)])
        return FinitePair(np.array([-epsilon, 0.0, epsilon]), masses, masses[::-1])

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """1: any answer may become any other."""
        return float(entries)

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One integer in 0…k−1."""
        answer = integer_array(value)
        if answer.ndim != 0 or not 0 <= answer < self.k:
            raise InputError(f"value is no single answer in 0…{self.k - 1}.")
        return answer

    def is_answer(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of k bits belongs to the answer, shape (*shape of values, k)."""
        own: NDArray[np.bool_] = np.asarray(values)[..., None] == np.arange(self.k)
        return own


@dataclass(frozen=True)
class UnaryEncoding(Encoding):
    """One bit for each answer: 1 with probability p for the true one, and with q for each other.

    Wang, Blocki, Li and Jha 2017: symmetric with q = 1 − p (basic one-time RAPPOR), optimised with
    p = 1/2. Two bits tell two answers apart, so that ε = ln p(1 − q)/q(1 − p).

    Attributes:
        lie: q, the probability of a 1 for each other answer, in (0, 1).
        keep: p, the probability of a 1 for the true answer, in (0, 1).
    """

    kind: ClassVar[str] = "unary-encoding"
    lie: OpenProbability
    keep: OpenProbability = 0.5

    def _distinct(self) -> tuple[Fraction, Fraction]:
        p, q = Fraction(self.keep), Fraction(self.lie)
        return p * (1 - q), q * (1 - p)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over bits."""
        bits, own = np.asarray(outputs), self.is_answer(self.prepare(value))
        chance = np.where(own, self.keep, self.lie)
        log_mass = np.where(bits == 1, np.log(chance), np.log1p(-chance))
        possible = (bits == 0) | (bits == 1)
        return np.asarray(np.where(possible, log_mass, -np.inf).sum(axis=-1), dtype=np.float64)

    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """All vectors of bits, in lexicographic order."""
        require_few(2**self.k, self.kind)
        return np.array(list(product((0, 1), repeat=self.k)))


@dataclass(frozen=True)
class SubsetSelection(Encoding):
    """With probability p a uniform set of ω answers out of k, otherwise one with the truth in it.

    Ye and Barg 2018, in the words of randomised response, which it is for ω = 1; ω near k/(e^ε + 1)
    is the best. ε = ln(1 + k(1 − p)/pω).

    Attributes:
        p: probability of the uniform set, in (0, 1].
        members: ω, how many answers are in a set, below k.
    """

    kind: ClassVar[str] = "subset-selection"
    p: Rate
    members: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.members >= self.k:
            raise InputError(f"members is {self.members}; it must be below k, which is {self.k}.")

    def _distinct(self) -> tuple[Fraction, Fraction]:
        p, k, size = Fraction(self.p), self.k, self.members
        low = p * size * (k - size) / (k * (k - 1))
        return low + (1 - p) * (k - size) / (k - 1), low

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """That of one of all sets, or also of one of those with the truth."""
        bits, answer = np.asarray(outputs), int(self.prepare(value))
        p, sets = self.p, math.comb(self.k, self.members)
        with_it = math.log(p + (1 - p) * self.k / self.members) - math.log(sets)
        without = math.log(p) - math.log(sets)
        possible = ((bits == 0) | (bits == 1)).all(axis=-1) & (bits.sum(axis=-1) == self.members)
        return np.where(possible, np.where(bits[..., answer] == 1, with_it, without), -np.inf)

    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """The bits of all sets, in lexicographic order of the answers in them."""
        require_few(math.comb(self.k, self.members), self.kind)
        sets = combinations(range(self.k), self.members)
        return np.array([[int(bit in each) for bit in range(self.k)] for each in sets])
