"""Local reports of one answer out of k: unary encodings and subset selection."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.fields import Count, OpenProbability, at_least
from dpaudit.mechanisms.base import Mechanism, Norm, changes, integer_array
from dpaudit.mechanisms.exact import ExactSource
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair
from dpaudit.mechanisms.rounding import log_up
from dpaudit.mechanisms.tails import Tails, choice_tails

_MOST_ANSWERS = 10**6
_MOST_OUTPUTS = 10**5
_Made = TypeVar("_Made", bound="_Encoding")


@dataclass(frozen=True)
class _Encoding(Mechanism):
    """What both share: the private value is one answer, the release a vector of k bits.

    Attributes:
        k: number of answers, at least 2; answers are the integers 0…k−1.
    """

    norm: ClassVar[Norm] = Norm.CHANGE
    _independent: ClassVar[bool] = False
    """Whether all bits are."""
    k: Annotated[int, at_least(2, _MOST_ANSWERS)]

    @abstractmethod
    def _distinct(self) -> tuple[Fraction, Fraction]:
        """The probability that of two answers the true one alone has its bit; and the other one."""

    @abstractmethod
    def _chance(self, *, true: bool) -> Fraction:
        """The probability of the bit of the answer, and of another one."""

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

    def worst_pairs(self) -> tuple[tuple[int, int, str], ...]:
        """Two answers; all pairs are alike."""
        return ((0, 1, "two answers"),)

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One integer in 0…k−1."""
        answer = integer_array(value)
        if answer.ndim != 0 or not 0 <= answer < self.k:
            raise InputError(f"value is no single answer in 0…{self.k - 1}.")
        return answer

    def _is_answer(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of k bits belongs to the answer, shape (*shape of values, k)."""
        own: NDArray[np.bool_] = np.asarray(values)[..., None] == np.arange(self.k)
        return own

    def tails(self, released: ArrayLike, value: NDArray[Any], rng: np.random.Generator) -> Tails:
        """One choice for each bit that is independent of the others."""
        own = self._is_answer(value)
        chance = np.where(own, *(float(self._chance(true=true)) for true in (True, False)))
        tested = own | self._independent
        bits = np.ravel(released)[tested]
        if not np.isin(bits, (0, 1)).all():
            return Tails(np.zeros(1), np.zeros(1, dtype=bool), np.empty(0))
        masses = np.stack([1 - chance, chance], axis=-1)[tested]
        return choice_tails(masses, bits.astype(np.int64), rng)


@dataclass(frozen=True)
class UnaryEncoding(_Encoding):
    """One bit for each answer: 1 with probability p for the true one, and with q for each other.

    Wang, Blocki, Li and Jha 2017: symmetric with q = 1 − p (basic one-time RAPPOR), optimised with
    p = 1/2. Two bits tell two answers apart, so that ε = ln p(1 − q)/q(1 − p).

    Attributes:
        lie: q, the probability of a 1 for each other answer, in (0, 1).
        keep: p, the probability of a 1 for the true answer, in (0, 1).
    """

    kind: ClassVar[str] = "unary-encoding"
    _independent: ClassVar[bool] = True
    lie: OpenProbability
    keep: OpenProbability = 0.5

    @classmethod
    def calibrated(cls, *, epsilon: float, k: int, symmetric: bool = False) -> Self:
        """The optimised encoding, or the symmetric one, whose ε does not exceed the wish.

        Raises:
            InputError: if ε is not above 0, or no float is so small a probability.
        """
        wish = validate.positive(epsilon=epsilon) / (2 if symmetric else 1)
        if wish > (36 if symmetric else 700):
            raise InputError(f"epsilon is {epsilon}; it must be less, as floats end before.")
        lie = 1 / (math.exp(wish) + 1)
        return _within(epsilon, lie, lambda q: cls(k, q, 1 - q if symmetric else 0.5))

    def _distinct(self) -> tuple[Fraction, Fraction]:
        p, q = Fraction(self.keep), Fraction(self.lie)
        return p * (1 - q), q * (1 - p)

    def _chance(self, *, true: bool) -> Fraction:
        return Fraction(self.keep if true else self.lie)

    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """All bits at once."""
        own = self._is_answer(values)
        return (rng.random(own.shape) < np.where(own, self.keep, self.lie)).astype(np.int64)

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """The same with coins whose biases are exactly the floats."""
        own = self._is_answer(values)
        true, other = source.events(self.keep, values.shape), source.events(self.lie, own.shape)
        return np.where(own, true[..., None], other).astype(np.int64)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over bits."""
        bits, own = np.asarray(outputs), self._is_answer(self.prepare(value))
        chance = np.where(own, self.keep, self.lie)
        log_mass = np.where(bits == 1, np.log(chance), np.log1p(-chance))
        possible = (bits == 0) | (bits == 1)
        return np.asarray(np.where(possible, log_mass, -np.inf).sum(axis=-1), dtype=np.float64)

    def probabilities(self, value: ArrayLike) -> tuple[Fraction, ...]:
        """Of all vectors of bits in lexicographic order; exact.

        Raises:
            UnsupportedError: if there are more than 100 000.
        """
        own = self._is_answer(self.prepare(value))
        _require_few(2**self.k)
        ones, whole = [self._chance(true=bool(each)) for each in own], Fraction(1)
        return tuple(
            math.prod((o if bit else 1 - o for bit, o in zip(bits, ones, strict=True)), start=whole)
            for bits in product((0, 1), repeat=self.k)
        )


@dataclass(frozen=True)
class SubsetSelection(_Encoding):
    """Names a random set of answers, the true one among them but for a lie (Ye and Barg 2018).

    Given that, the set is uniform, and ε = ln (1 − q)(k − ω)/qω for a lie of probability q.

    Attributes:
        lie: q, the probability that the true answer is not named, in (0, 1).
        members: ω, how many answers are named, below k; ω = 1 is randomised response.
    """

    kind: ClassVar[str] = "subset-selection"
    lie: OpenProbability
    members: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.members >= self.k:
            raise InputError(f"members is {self.members}; it must be below k, which is {self.k}.")

    @classmethod
    def calibrated(cls, *, epsilon: float, k: int) -> Self:
        """Sets of about k/(e^ε + 1), which are the best, and the least lie within the wish.

        Raises:
            InputError: if ε is not above 0.
        """
        e = math.exp(min(validate.positive(epsilon=epsilon), 30.0))
        named = max(1, round(validate.integer_at_least(2, k=k) / (e + 1)))
        lie = (k - named) / (named * e + k - named)
        return _within(epsilon, lie, lambda q: cls(k, q, named))

    def _distinct(self) -> tuple[Fraction, Fraction]:
        q, other = Fraction(self.lie), self.k - 1
        return (1 - q) * (self.k - self.members) / other, q * self.members / other

    def _chance(self, *, true: bool) -> Fraction:
        named = 1 - Fraction(self.lie)
        return named if true else (self.members - named) / (self.k - 1)

    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Others in random order, as many as are to be named beside the answer, or without it."""
        own = self._is_answer(values)
        order = np.where(own, np.inf, rng.random(own.shape)).argsort(axis=-1).argsort(axis=-1)
        told = rng.random(values.shape) >= self.lie
        return (np.where(own, told[..., None], order < (self.members - told)[..., None])).astype(
            int
        )

    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """The same with a coin whose bias is exactly the float, and a uniform set."""
        bits = np.zeros((values.size, self.k), dtype=np.int64)
        told = ~source.events(self.lie, (values.size,))
        for row, answer, true in zip(bits, values.ravel().tolist(), told, strict=True):
            others = [each for each in range(self.k) if each != answer]
            for _ in range(self.members - int(true)):
                row[others.pop(source.below(len(others)))] = 1
            row[answer] = true
        return bits.reshape(*values.shape, self.k)

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """That of truth or lie, and of a uniform set of the others."""
        bits, answer = np.asarray(outputs), int(self.prepare(value))
        with_it, without = self._log_masses
        possible = ((bits == 0) | (bits == 1)).all(axis=-1) & (bits.sum(axis=-1) == self.members)
        return np.where(possible, np.where(bits[..., answer] == 1, with_it, without), -np.inf)

    @property
    def _log_masses(self) -> tuple[float, float]:
        """Of one set that has the answer in it, and of one that has not."""
        others, log = self.k - 1, math.lgamma
        sets = log(others + 1) - log(self.members + 1) - log(others - self.members + 1)
        fewer = log(others + 1) - log(self.members) - log(others - self.members + 2)
        return math.log1p(-self.lie) - fewer, math.log(self.lie) - sets

    def probabilities(self, value: ArrayLike) -> tuple[Fraction, ...]:
        """Of all sets, in lexicographic order of the answers in them; exact.

        Raises:
            UnsupportedError: if there are more than 100 000.
        """
        answer, q = int(self.prepare(value)), Fraction(self.lie)
        _require_few(math.comb(self.k, self.members))
        with_it = (1 - q) / math.comb(self.k - 1, self.members - 1)
        without = q / math.comb(self.k - 1, self.members)
        every = combinations(range(self.k), self.members)
        return tuple(with_it if answer in each else without for each in every)


def _require_few(outputs: int) -> None:
    if outputs > _MOST_OUTPUTS:
        raise UnsupportedError(f"there are more than {_MOST_OUTPUTS} outputs; use a smaller k.")


def _within(epsilon: float, lie: float, make: Callable[[float], _Made]) -> _Made:
    """The encoding of the least lie, from a first guess on, whose ε does not exceed the wish."""
    made, step = make(lie), 2.0**-52
    while made.pair(1).pure_epsilon > epsilon:
        lie, step = lie + step * lie, 2 * step
        made = make(lie)
    return made
