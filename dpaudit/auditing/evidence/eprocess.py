"""Sequential tests of a privacy claim that may be stopped at any time.

**Theorem** (Ville 1939; Shafer, Shen, Vereshchagin and Vovk 2011). Let ``E_0 = 1`` and let ``E_t``
be a non-negative process with ``E[E_t | past] <= E_{t-1}`` under every distribution of the null
hypothesis. Then ``P(sup_t E_t >= 1 / alpha) <= alpha``.

*Why it applies.* The null is that for every epsilon and every event S, in both directions,
``P(x in S) <= exp(epsilon) P(x' in S) + delta(epsilon)``. Every bet of :mod:`.bets` multiplies its
wealth by a non-negative factor whose mean, given the past, is at most 1 under the null, whatever
the dependence between the two runs of a pair; so its wealth is a supermartingale. An average of
supermartingales with fixed weights is one too, which pays for looking at many events, stakes,
values of epsilon and both directions. The edges come from a pilot of the first pairs, on which
nothing is staked, and so do the weights: each bet's prior mass times what it would have won there,
so that both are known before the first bet. *Proof of Ville's inequality*: stop
at the first ``t`` with ``E_t >= 1 / alpha``; by optional stopping and Markov's inequality
``P(stopped) / alpha <= E[E_stopped] <= 1``. Looking only at the ends of batches can only miss
crossings, never add any.

The pairs must be independent of each other; the two runs within a pair need not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.bets import NullPoint
from dpaudit.auditing.evidence.types import confidence_failure, deltas_of
from dpaudit.auditing.evidence.wealth import Wealth
from dpaudit.base.errors import InputError
from dpaudit.base.validate import probability, real_array
from dpaudit.mechanisms.pairs import Floats

Curve = Callable[[Floats], ArrayLike]

_LARGEST_EPSILON = 64.0
MOST_CORNERS = 12


def _curve_end(curve: Curve) -> float:
    """The smallest epsilon (to 1e-9) at which the curve is within 1e-6 of its end."""
    last = float(deltas_of(curve, np.array([_LARGEST_EPSILON]))[0]) + 1e-6
    low, high = 0.0, 1.0
    while deltas_of(curve, np.array([high]))[0] > last and high < _LARGEST_EPSILON:
        low, high = high, 2 * high
    if deltas_of(curve, np.array([0.0]))[0] <= last:
        return 0.0
    while high - low > 1e-9 * max(1.0, high):
        middle = (low + high) / 2
        if deltas_of(curve, np.array([middle]))[0] > last:
            low = middle
        else:
            high = middle
    return high


def curve_points(curve: Curve, epsilons: ArrayLike | None = None) -> list[NullPoint]:
    """Points of a claimed curve to bet against, the first with half of the wealth.

    Unless ``epsilons`` are given they run from 0, where most of a too-small noise shows, to the
    first value at which delta is practically 0 (for a pure claim: its epsilon), with the
    ``corners`` of a curve that has some.

    Args:
        curve: delta as a function of an array of epsilons of at least 0.
        epsilons: the values to use.

    Raises:
        InputError: if a delta or an epsilon is negative or not finite, or a shape is wrong.
    """
    if epsilons is None:
        corners = list(getattr(curve, "corners", ()))
        corners = corners[:: -(-len(corners) // MOST_CORNERS)] if corners else []
        values = np.unique([*np.linspace(0.0, _curve_end(curve), 6), *corners])
    else:
        values = np.unique(real_array(epsilons=epsilons))
        if values.size == 0 or values[0] < 0:
            raise InputError("epsilons is empty or has a negative value; all must be at least 0.")
    weights = [1.0, *([1.0 / max(1, values.size - 1)] * (values.size - 1))]
    return [
        NullPoint(float(epsilon), float(delta), weight)
        for epsilon, delta, weight in zip(values, deltas_of(curve, values), weights, strict=True)
    ]


class CurveEProcess(Wealth):
    """Anytime-valid test of a whole claimed privacy curve on one pair of neighbours.

    The null hypothesis is the curve at *every* epsilon and in both directions. Refutation at level
    ``alpha`` means that an e-value has reached ``1 / alpha``; a mechanism that satisfies its claim
    is refuted with probability at most ``alpha``, however often one looks and whenever one stops.

    Args:
        curve: claimed delta for an array of epsilons (rounded up).

    Raises:
        InputError: if the curve is out of range.
    """

    def __init__(self, curve: Curve) -> None:
        super().__init__([curve_points(curve)])

    @property
    def e_value(self) -> float:
        """The present e-value (``inf`` beyond the range of floats)."""
        return float(np.exp(np.minimum(self.log_wealth[0], 709.0)))


class EpsilonEProcess(Wealth):
    """Anytime-valid lower bound on epsilon at a given delta.

    One e-process per null (epsilon_j, delta) on a grid. The bound is the largest grid value up to
    which *every* null has been refuted: if it exceeded the true epsilon, the first grid value at or
    above the truth, whose null is true, would have been refuted, which happens with probability at
    most ``1 - confidence``. So one error rate pays for the whole grid.

    Args:
        delta: the delta in [0, 1) at which epsilon is bounded.
        epsilons: grid of null values.

    Raises:
        InputError: if delta or the epsilons are out of range.
    """

    def __init__(self, delta: float, epsilons: ArrayLike) -> None:
        probability(delta=delta)
        self._epsilons = np.unique(real_array(epsilons=epsilons))
        constant = lambda e: np.full_like(e, delta)  # noqa: E731
        super().__init__([curve_points(constant, [each]) for each in self._epsilons])

    def lower_bound(self, confidence: float) -> float:
        """The bound so far; valid at any stopping time.

        Raises:
            InputError: if ``confidence`` is not in (0, 1).
        """
        threshold = -math.log(confidence_failure(confidence))
        refuted = np.logical_and.accumulate(self.log_peak >= threshold)
        return float(self._epsilons[refuted].max(initial=0.0))
