"""The cost of the best of a random number of runs, from that of one run.

Let Q and Q' be what one run releases on two neighbours, ordered by score, K the number of runs, and
f(x) = E[x^K]. The best of K has the law A(y) = ∫ f'(x) dx from Q(< y) to Q(≤ y), so that its
density to Q is f'(q) with q a quantile of Q, and likewise f'(q') with the quantile of Q' of the
same event. Two facts follow for whatever bounds f'(q)/f'(q') ≤ R:

* H_{e^(ε + ln R)}(A‖A') ≤ ∫ f'(q) (Q − e^ε Q')₊ ≤ E[K] H_{e^ε}(Q‖Q'), as f' is at most f'(1) = E[K]
  (Koskela, Redberg and Wang 2024, *Privacy profiles for private selection*);
* E_{A'}[(A/A')^α] ≤ P[K = 0] + e^((α−1) D_α(Q‖Q')) sup f'(q)^α f'(q')^(1−α) (Papernot and Steinke
  2022, Lemma 7; the mass of no run at all is the same on both sides).

For the truncated negative binomial law f'(x) = E[K] (γ/(1 − (1 − γ)x))^(1+η). If a run is
(ε̂, δ̂)-private, 1 − q' ≤ e^ε̂ (1 − q) + δ̂, hence R ≤ (e^ε̂ + (1/γ − 1) δ̂)^(1+η); and by the
divergence of order α̂ of a run the supremum is at most E[K] e^((α−1) g) with g = (1 + η)((1 −
1/α̂) D_α̂ + ln(1/γ)/α̂) (Papernot and Steinke 2022, Theorem 2). For the Poisson law f'(x) = μ
e^(μ(x−1)): R ≤ e^(μ T) with T the total variation of a run, and g = μ δ̂ where e^ε̂ = α/(α − 1)
(Theorem 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.closed_forms import RdpAccountant
from dpaudit.accounting.closed_forms.rdp import RdpComposition
from dpaudit.accounting.group import for_group
from dpaudit.accounting.guarantees import compose
from dpaudit.accounting.orders import ORDERS
from dpaudit.accounting.work import seconds_of_proof
from dpaudit.base.by_class import implementation
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import ProfileBlackBox
from dpaudit.mechanisms.base import changes
from dpaudit.mechanisms.pairs import DominatingPair, Floats, costless_pair
from dpaudit.mechanisms.pairs.finite import FiniteBound, profile_masses
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import NegativeBinomialRuns, Plan, PrivateSelection, Runs

_DELTAS: Floats = np.concatenate(
    [np.geomspace(1e-18, 1e-2, 129), [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9]]
)
"""Where the curve of a run is looked up."""
_ROUNDING = 1 + 1e-12


@dataclass(frozen=True, eq=False)
class SelectionPair(FiniteBound):
    """The curve of a selection at some points, and its Rényi divergences.

    Attributes:
        divergences: at :data:`~dpaudit.accounting.orders.ORDERS`, infinite where there is no bound.
    """

    divergences: Floats = field(default_factory=lambda: np.full(ORDERS.size, np.inf))

    def renyi(self, orders: ArrayLike) -> Floats:
        """The divergence at the next order that is kept, as they rise with it."""
        asked = np.asarray(orders, dtype=np.float64)
        kept = np.append(self.divergences, np.inf)[np.searchsorted(ORDERS, asked)]
        return np.asarray(np.fmin(kept, super().renyi(asked)))

    @property
    def pure_epsilon(self) -> Fraction | float:
        """The bound, where there is one."""
        return math.inf if self.bound is None else self.bound


@implementation(PrivateSelection.pair, PrivateSelection)
def _pair(selection: PrivateSelection, sensitivity: float) -> DominatingPair:
    return _selected(selection) if changes(sensitivity, selection.kind) else costless_pair()


@implementation(PrivateSelection.work, PrivateSelection)
def _work(selection: PrivateSelection, sensitivity: float) -> float:
    return 1e8 * seconds_of_proof(selection.run)


@implementation(PrivateSelection.for_group, PrivateSelection)
def _for_group(selection: PrivateSelection, size: int) -> ProfileBlackBox | None:
    try:
        pair = _selected(replace(selection, run=for_group(selection.run, size)))
    except UnsupportedError:
        return None
    at = np.append(0.0, pair.losses[pair.losses > 0])
    curve = zip(at.tolist(), (pair.delta(at) * _ROUNDING).tolist(), strict=True)
    exact = () if pair.pure_epsilon == math.inf else ((round_up(Fraction(pair.pure_epsilon)), 0.0),)
    return ProfileBlackBox((*((e, d) for e, d in curve if d < 1), *exact))


@lru_cache(maxsize=256)
def _selected(selection: PrivateSelection) -> SelectionPair:
    runs, run = selection.runs, compose(selection.run)
    mean, pure = runs.expected * _ROUNDING, run.epsilon(0.0).upper
    own = run.epsilons(_DELTAS)
    known = np.isfinite(own) & (own < 600)  # e^ε is then a float
    epsilons, deltas = own[known], _DELTAS[known]
    own_curve = FiniteBound(*profile_masses(epsilons, deltas, run.delta(0.0).upper, pure))
    divergences = _divergences_of(selection.run)
    growth = _growth(runs, epsilons, deltas, pure)
    bound = None if pure == math.inf else Fraction(pure) + Fraction(growth)
    if bound is not None and isinstance(runs, NegativeBinomialRuns):
        bound = min(bound, (2 + Fraction(runs.shape)) * Fraction(pure))  # which is exact
    cap = math.inf if bound is None else round_up(bound)
    grown = _grown(runs, divergences, own_curve, growth)
    renyi = RdpComposition(np.minimum(grown, cap), cap)
    least = np.minimum(epsilons + growth, cap) * _ROUNDING
    deltas = np.minimum(mean * deltas, 1.0)
    least = np.minimum(least, renyi.epsilons(deltas))
    masses = profile_masses(least, deltas, renyi.delta(0.0).upper, cap)
    return SelectionPair(*masses, bound, renyi.divergences)


def _divergences_of(run: Plan) -> Floats:
    """Those of the worst group of units; infinite where there is no theorem."""
    try:
        groups = [RdpAccountant().compose(own) for own in run.by_unit()]
    except UnsupportedError:
        return np.full(ORDERS.size, np.inf)
    # A failure that is charged apart has no divergence.
    found = [each.divergences + (np.inf if each.slack else 0.0) for each in groups]
    return np.asarray(np.maximum.reduce(found))


def _growth(runs: Runs, epsilons: Floats, deltas: Floats, pure: float) -> float:
    """Ln R, the least of those that follow from points of the curve of a run."""
    epsilons, deltas = np.append(epsilons, pure), np.append(deltas, 0.0)
    if isinstance(runs, NegativeBinomialRuns):
        with np.errstate(divide="ignore"):
            failing = np.log(deltas) + math.log(1 / runs.gamma - 1)
        found = (1 + runs.shape) * np.logaddexp(epsilons, failing)
    else:
        shrunk = np.exp(-epsilons)  # next to 1 where ε is small, so 1 less it is another function
        found = runs.expected * (-np.expm1(-epsilons) + 2 * deltas * shrunk) / (1 + shrunk)
    return float(found.min()) * _ROUNDING


def _grown(runs: Runs, divergences: Floats, run: FiniteBound, growth: float) -> Floats:
    """The divergences of the selection, none above those of larger orders."""
    order = ORDERS - 1
    if isinstance(runs, NegativeBinomialRuns):
        other = (1 - 1 / ORDERS) * divergences - math.log(runs.gamma) / ORDERS
        growth, none = min(growth, (1 + runs.shape) * float(other.min())), 0.0
        total = divergences + growth + math.log(runs.expected * _ROUNDING) / order
    else:
        own = runs.expected * run.delta(-np.log1p(-1 / ORDERS) * (1 - 1e-9))
        total = divergences + np.minimum(growth, own) + math.log(runs.expected) / order
        none = -runs.expected
        total = np.logaddexp(none, order * total) / order
    total = np.maximum(total * _ROUNDING + 1e-14 / order, 0.0)
    least: Floats = np.minimum.accumulate(total[::-1])[::-1]
    return least
