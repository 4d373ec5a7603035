"""Reports of many users, randomised one by one and released without their order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Count
from dpaudit.mechanisms.base import Mechanism, Norm, changes
from dpaudit.mechanisms.enumerated import Enumerated, require_few
from dpaudit.mechanisms.pairs import DominatingPair, FinitePair, Floats, costless_pair
from dpaudit.mechanisms.randomized_response import RandomizedResponse
from dpaudit.mechanisms.rounding import as_float, up

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

    Attributes:
        local: what each user's report is drawn by; it must protect the whole answer, and have a
            pure ε. Randomised response can be run, others are certified alone.
        reports: how many users there are; the number is public.
    """

    is_tight = False  # more is told than is released
    kind: ClassVar[str] = "shuffled"
    norm: ClassVar[Norm] = Norm.CHANGE
    local: Mechanism
    reports: Count

    def __post_init__(self) -> None:
        super().__post_init__()
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
            raise UnsupportedError(f"{self.local.kind} has no pure ε, without which none is known.")
        if not _LEAST < epsilon <= 30 or self.reports == 1:
            return pair
        return _blanket(min(self.reports, _MOST_REPORTS), epsilon, answers)

    @property
    def shuffled_reports(self) -> tuple[int, str]:
        """One of each user, by the local mechanism."""
        return self.reports, self.local.kind

    def work(self, sensitivity: float) -> float:
        """That of the table of losses."""
        return 3e8

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """One answer for each user, shape (n,)."""
        self._response()
        answers = self.local.prepare(value)
        if answers.shape != (self.reports,):
            raise InputError(f"value must be the answers of {self.reports} users, in one row.")
        return answers

    def _response(self) -> RandomizedResponse:
        if not isinstance(self.local, RandomizedResponse):
            raise UnsupportedError(f"{self.local.kind} reports are not drawn here; shuffle them.")
        return self.local

    # -- law -------------------------------------------------------------------------------------

    def outputs(self, value: NDArray[Any]) -> NDArray[Any]:
        """List all numbers of ones, of two answers."""
        if self._response().k != 2:
            raise UnsupportedError(f"{self.kind} lists the reports of two answers alone.")
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
