"""Local reports: randomised response, unary encodings, subset selection, and their shuffles."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Count, OpenProbability, Rate, at_least
from dpaudit.mechanisms.base import Mechanism, Norm, changes, integer_array, sum_over_entries
from dpaudit.mechanisms.choice import Enumerated, require_few
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair
from dpaudit.mechanisms.rounding import as_float, log_up, up

_MOST_OUTPUTS = 10**6


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """With probability p a uniform answer out of k, otherwise the truth (Warner 1965).

    The truth is thus released with probability 1 − p + p/k, and ε = ln(1 + k(1 − p)/p).

    Attributes:
        p: probability of the uniform answer, in (0, 1].
        k: number of answers, at least 2; answers are the integers 0…k−1.
    """

    kind: ClassVar[str] = "randomized-response"
    norm: ClassVar[Norm] = Norm.CHANGE
    p: Rate
    k: Annotated[int, at_least(2, 2**53)] = 2

    @classmethod
    def calibrated(cls, *, epsilon: float, k: int = 2) -> RandomizedResponse:
        """Find about the least p whose ε, rounded up, does not exceed the wish.

        Raises:
            InputError: if ε is not above 0, or k below 2.
        """
        epsilon = validate.positive(epsilon=epsilon)
        k = validate.integer_at_least(2, k=k)
        p, step = k / (math.expm1(min(epsilon, 700.0)) + k), 2.0**-53
        if epsilon > 700:
            p = max(k * math.exp(-epsilon), 5e-324)
        while cls(p, k).pair(1).pure_epsilon > epsilon:
            p, step = min(math.nextafter(p + step * p, 1.0), 1.0), 2 * step
        return cls(p, k)

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> DominatingPair:
        """Two different answers: losses −ε, 0 and ε. A sensitivity of 0 costs nothing.

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
        """
        if not changes(sensitivity, self.kind) or self.p == 1:
            return costless_pair()
        lie, truth = self.answer_probabilities
        odds = self.k * (1 - self.p) / self.p
        if odds < math.inf:
            epsilon = math.nextafter(math.log1p(odds), math.inf)
        else:  # the 1 beside it is nothing
            epsilon = up(math.log(self.k) + math.log1p(-self.p) - math.log(self.p), 8)
        return FinitePair(
            np.array([-epsilon, 0.0, epsilon]),
            np.array([lie, (self.k - 2) * lie, truth]),
            np.array([truth, (self.k - 2) * lie, lie]),
        )

    @property
    def answer_probabilities(self) -> tuple[float, float]:
        """Probability of one wrong answer, and of the true one."""
        return self.p / self.k, 1 - self.p + self.p / self.k

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float]:
        """−p, for k answers: with more uniform answers it is a post-processing."""
        return (self.k, sensitivity), -self.p

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """1 for each answer: any may become any other."""
        return float(entries)

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Integers in 0…k−1."""
        answers = integer_array(value)
        if ((answers < 0) | (answers >= self.k)).any():
            raise InputError(f"value has an answer outside 0…{self.k - 1}.")
        return answers

    # -- law -------------------------------------------------------------------------------------

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over entries of the log-probability of truth or lie."""
        outputs = np.asarray(outputs)
        lie, truth = self.answer_probabilities
        log_mass = np.where(outputs == self.prepare(value), math.log(truth), math.log(lie))
        possible = (outputs >= 0) & (outputs < self.k) & (outputs == np.floor(outputs))
        return sum_over_entries(np.where(possible, log_mass, -np.inf))

    def probabilities(self, value: ArrayLike) -> tuple[Fraction, ...]:
        """List all vectors of answers in lexicographic order, each answer independent; exact.

        Raises:
            UnsupportedError: if there are more than a million.
        """
        answers = np.ravel(self.prepare(value)).tolist()
        if self.k ** len(answers) > _MOST_OUTPUTS:
            raise UnsupportedError(
                f"{len(answers)} answers of {self.k} have more than {_MOST_OUTPUTS} outputs; "
                "audit one answer, because answers are independent."
            )
        lie = Fraction(self.p) / self.k
        truth = 1 - Fraction(self.p) + lie
        joint = [Fraction(1)]
        for answer in answers:
            row = [truth if output == answer else lie for output in range(self.k)]
            joint = [mass * chance for mass in joint for chance in row]
        return tuple(joint)


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
            raise InputError(f"value is not a single answer in 0…{self.k - 1}.")
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


_ROUNDING = 1e-13
"""Times 100 + √n: of all masses, sums of up to 9√n logarithms below 64, three times over; beyond
nine deviations lie, by Bernstein's inequality, less than 1e-17."""
_MOST_REPORTS, _MOST_OF_MANY_ANSWERS = 10**7, 10**5
_ROWS, _ROWS_OF_MANY_ANSWERS = 1024, 16
_FINE, _COARSE = 640, 80
"""Losses above 0: up to ten standard deviations, and from there to ε₀."""

_LEAST = 1e-12
"""Of an ε of less, rounding would eat what shuffling gains."""


@dataclass(frozen=True)
class Shuffled(Enumerated):
    """The reports of n users by one local mechanism, sorted: nobody knows which one is whose.

    The value is all answers, one for each user, of whom one is replaced. Let P and Q be the laws of
    a report of two answers, p = e^ε₀, and μ be below the law of any report: all other users report
    by μ by chance, and else what is told. Let G be d(P − e^ε Q)/dμ where μ draws, else 0. Then
    δ(ε) ≤ E(G₁ + … + G_n)₊/n of independent G (Balle, Bell, Gascón and Nissim 2019, *The privacy
    blanket of the shuffle model*).

    Of any mechanism μ = max(P, Q)/p. Let P − Q = (p − 1)(a − b), a and b apart, of mass α each:
    P = pa + b + r, Q = a + pb + r, μ = a + b + r/p, with r ≥ 0. So G is p − e^ε or 1 − pe^ε, with
    probability α each, or p(1 − e^ε). The mean 1 − e^ε does not depend on α, and in convex order G
    is largest for r = 0 and α = 1/(p + 1), as E(G − k)₊ shows by p/(p + 1) ≥ 1 − 1/p: these are
    the clones of Feldman, McMillan and Talwar 2023, *Stronger privacy amplification by shuffling
    for Rényi and approximate differential privacy*. Of randomised response of k answers μ is
    α = 1/(p + k − 1) at each. Either way M reports, the user's and Bin(n − 1, kα) others, are
    uniform of k answers, of which N₀ and N₁ are the two, times M + (p − 1)N₀ or M + (p − 1)N₁.

    With several questions the value has a row of answers for each user, one for each question; the
    shuffler draws who is asked which, and tells nobody. Then all users hide each other, whatever
    they are asked: given where those are who do not draw by μ, the user is at each of the other M
    places with the same probability, so that again δ(ε) ≤ E(G₁ + … + G_M)₊/M. Where both records
    have the same answer G is (1 − e^ε)p or 1 − e^ε; where they differ it is p − e^ε or 1 − pe^ε in
    their place, of the same sum and further apart. So records that differ everywhere cost most.

    Attributes:
        local: what each user's report is drawn by; it must protect the whole answer, and have a
            pure ε. Randomised response can be run, others are certified alone.
        reports: how many users there are; the number is public.
        questions: how many questions there are, of randomised response; each is put to as many
            users, the first ones to one more. None for one, and a value without rows.
    """

    is_tight = False  # more is told than is released
    kind: ClassVar[str] = "shuffled"
    norm: ClassVar[Norm] = Norm.CHANGE
    local: Mechanism
    reports: Count
    questions: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.questions is not None:
            self._response()
            if self.questions > self.reports:
                raise InputError(
                    f"questions is {self.questions}; it must be at most the {self.reports} reports."
                )
        if self.local.norm is not Norm.CHANGE:
            raise InputError(
                f"local is {self.local.kind}; it must protect a whole answer, as "
                "randomized-response and pure-black-box do."
            )

    def pair(self, sensitivity: float) -> DominatingPair:
        """Follow the formula, with losses moved outwards onto a grid, P- and Q-mass kept.

        Raises:
            InputError: if the sensitivity is neither 0 nor 1.
            UnsupportedError: if the local mechanism has no pure ε.
        """
        if not changes(sensitivity, self.kind):
            return costless_pair()
        pair = self.local.pair(1.0)
        epsilon = as_float(pair.pure_epsilon)
        answers = self.local.k if isinstance(self.local, RandomizedResponse) else 2
        if self.reports > _MOST_OF_MANY_ANSWERS:
            answers = 2
        if epsilon == math.inf:
            raise UnsupportedError(
                f"{self.local.kind} has no pure ε, and no bound is known without one."
            )
        if not _LEAST < epsilon <= 30 or self.reports == 1:
            return pair
        return _blanket(min(self.reports, _MOST_REPORTS), epsilon, answers)

    @property
    def protects(self) -> tuple[Any, Any] | None:
        """What the law of a report protects."""
        return self.local.protects

    @property
    def shuffled_reports(self) -> tuple[int, str]:
        """One of each user, by the local mechanism."""
        return self.reports, self.local.kind

    def work(self, sensitivity: float) -> float:
        """That of the table of losses."""
        return 3e8

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One answer for each user, shape (n,), or to each question, (n, questions)."""
        self._response()
        answers = self.local.prepare(value)
        many = self.questions
        if answers.shape != ((self.reports,) if many is None else (self.reports, many)):
            raise InputError(
                f"value must be the answers of {self.reports} users, "
                + ("in one row." if many is None else f"{many} in a row of each.")
            )
        return answers

    @property
    def asked(self) -> NDArray[np.intp]:
        """The question of each report in a release, from 0, in increasing order, (n,)."""
        return np.sort(np.arange(self.reports) % (self.questions or 1))

    def answers(self, values: NDArray[Any], order: NDArray[Any]) -> NDArray[Any]:
        """What is asked of users in a drawn order, (…, n), of all their answers (…, n, questions).

        Args:
            values: prepared, several in a batch.
            order: a permutation of the users for each of them, (…, n).
        """
        rows = np.take_along_axis(values, order[..., None], axis=-2)
        return np.asarray(rows[..., np.arange(self.reports), self.asked])

    def sorted(self, reports: NDArray[Any]) -> NDArray[Any]:
        """The reports (…, n) in increasing order, those about one question among themselves."""
        reports = np.asarray(reports)
        keys = reports + self.asked * (self._response().k if self.questions else 0)
        return np.take_along_axis(reports, keys.argsort(axis=-1, kind="stable"), axis=-1)

    def _response(self) -> RandomizedResponse:
        if not isinstance(self.local, RandomizedResponse):
            raise UnsupportedError(f"{self.local.kind} reports are not drawn here; shuffle them.")
        return self.local

    # -- law -------------------------------------------------------------------------------------

    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """List all numbers of ones, of two answers."""
        if self._response().k != 2 or self.questions is not None:
            raise UnsupportedError(
                f"{self.kind} can list its outputs only for two answers to one question."
            )
        require_few(self.reports**2, self.kind)
        return np.tri(self.reports + 1, self.reports, -1, dtype=np.int64)[:, ::-1]

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Convolve how many ones come of the zeros, and of the ones, of two answers."""
        from scipy.stats import binom

        reports, ones = np.asarray(outputs), int(self.prepare(value).sum())
        every = self.outputs(np.asarray(value))
        lie = self._response().p / 2
        zeros = self.reports - ones
        masses = np.convolve(
            binom.pmf(np.arange(zeros + 1), zeros, lie),
            binom.pmf(np.arange(ones + 1), ones, 1 - lie),
        )
        found = (reports[:, None] == every).all(axis=2)
        with np.errstate(divide="ignore"):
            log: Floats = np.where(found, np.log(masses), -np.inf).max(axis=1)
        return log


@lru_cache(maxsize=64)
def _blanket(reports: int, epsilon: float, answers: int) -> FinitePair:
    """The pair of the formula."""
    odds = up(math.exp(epsilon), 4)
    cells = list(_cells(reports, odds, answers))
    square = sum(float(mass @ loss**2) for mass, loss in cells)
    bulk = min(10 * math.sqrt(square), epsilon)
    nodes = np.linspace(0.0, bulk, _FINE + 1)
    nodes = np.append(nodes[:-1], np.geomspace(bulk, epsilon, _COARSE)) if bulk < epsilon else nodes
    nodes[-1] = epsilon
    held = np.zeros(len(nodes))  # of Q at losses of at least 0; P at their opposites
    for mass, loss in cells:
        at = np.clip(np.searchsorted(nodes, loss, side="right") - 1, 0, len(nodes) - 2)
        share = np.clip(np.expm1(loss - nodes[at]) / np.expm1(np.diff(nodes)[at]), 0.0, 1.0)
        held += np.bincount(at, mass * (1 - share), len(nodes))
        held += np.bincount(at + 1, mass * share, len(nodes))
    held *= 1 - _ROUNDING * (100 + math.sqrt(reports))
    held[-1] += (1 - float(held @ (1 + np.exp(nodes)))) / (1 + math.exp(epsilon))
    whole = np.append(held[:0:-1] * np.exp(nodes[:0:-1]), np.append(2 * held[0], held[1:]))
    losses = np.append(-nodes[:0:-1], nodes)
    return FinitePair(losses, whole[::-1].copy(), whole, bound=Fraction(epsilon))


def _cells(reports: int, odds: float, answers: int) -> Iterator[tuple[Floats, Floats]]:
    """Q-masses and losses of at least 0; half of what is at 0. Fewer clones stand for more."""
    share = 1 / (odds + answers - 1)
    numbers, clones = _binomial(reports - 1, answers * share)
    width = -(-len(clones) // (_ROWS if answers == 2 else _ROWS_OF_MANY_ANSWERS))
    for start in range(0, len(clones), width):
        weight, whole = clones[start : start + width].sum(), int(numbers[start]) + 1
        for one, other, mass in _counts(whole, answers):
            p, q = (whole + (odds - 1) * n for n in (one, other))
            half = np.where(one > other, 1.0, 0.5 * (one == other))
            scaled = weight * answers * share / whole * mass * q * half
            yield scaled[half > 0], np.log(p / q)[half > 0]


def _counts(whole: int, answers: int) -> Iterator[tuple[Floats, Floats, Floats]]:
    """The numbers N₀ and N₁ of two of so many uniform answers, and their masses."""
    own, masses = _binomial(whole, 1 / answers)
    if answers == 2:
        yield own, whole - own, masses
        return
    for number, mass in zip(own, masses, strict=True):
        other, rest = _binomial(whole - int(number), 1 / (answers - 1))
        yield np.full(len(rest), number), other, mass * rest


def _binomial(count: int, rate: float) -> tuple[Floats, Floats]:
    """Numbers within about 9 standard deviations of the mean, and their masses."""
    reach = 9 * math.sqrt(count * rate * (1 - rate)) + 40
    low = max(0, math.floor(count * rate - reach))
    n = np.arange(low, min(count, math.ceil(count * rate + reach)) + 1, dtype=np.float64)
    steps = np.log((count - n[:-1]) / n[1:]) + math.log(rate / (1 - rate))
    logs = np.append(0.0, np.cumsum(steps))
    masses = np.exp(logs - logs.max())
    return n, masses / masses.sum()
