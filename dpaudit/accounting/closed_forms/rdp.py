"""Rényi differential privacy on a grid of orders, and the classic moments accountant.

The moments accountant is there to reproduce the figures of papers; its bound is looser.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.accountant import Accountant, AccountantName, Composition, Interval
from dpaudit.accounting.amplification import Amplification
from dpaudit.accounting.orders import ORDERS
from dpaudit.accounting.terms import Term, pure_sum, require_law, slack_of, terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import DominatingPair, Mechanism
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float, exp_up, minus, plus, round_up, up
from dpaudit.plan import Invocation


@dataclass(frozen=True, eq=False)
class RdpComposition(Composition):
    """Divergences that add up order by order (Mironov 2017, Proposition 1).

    Attributes:
        divergences: the sum of Rényi divergences at :data:`~dpaudit.accounting.orders.ORDERS`,
            rounded up; infinite where there is no bound.
        cap: the pure ε of the same uses, or infinity.
        slack: the sum of δ of (ε, δ)-private black boxes.
    """

    divergences: Floats
    cap: float
    slack: float = 0.0

    def epsilon(self, delta: float) -> Interval:
        """The best order's conversion, capped by the pure ε."""
        return Interval(None, float(self.epsilons(delta)))

    def delta(self, epsilon: float) -> Interval:
        """The best order's conversion; 0 from the pure ε on."""
        return Interval(None, float(self.deltas(epsilon)))

    def epsilons(self, deltas: ArrayLike) -> Floats:
        """Upper ends for an array of δ."""
        deltas = np.asarray(deltas, dtype=np.float64)
        left = np.maximum(deltas - self.slack, 0.0) * (1 - 2.0**-52 * (self.slack > 0))
        found = np.minimum((self.divergences + _penalty(left)).min(axis=-1), self.cap)
        epsilons: Floats = np.where(deltas < self.slack, np.inf, _round_up(np.maximum(found, 0.0)))
        return np.minimum(epsilons, np.where(deltas < self.slack, np.inf, self.cap))

    def deltas(self, epsilons: ArrayLike) -> Floats:
        """Upper ends for an array of ε."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        order = ORDERS - 1
        with np.errstate(over="ignore"):
            gain = order * (self.divergences - epsilons[..., None])
            size = order * (self.divergences + epsilons[..., None])
        exponent = gain - np.log(order) + ORDERS * np.log1p(-1 / ORDERS)
        exponent += 1e-15 * (size + abs(np.log(order)) + 4)
        own = np.maximum(np.exp(np.minimum(exponent.min(axis=-1), 0.0)), 5e-324)
        own = np.where(epsilons >= self.cap, 0.0, own)
        total = own + self.slack
        grown = np.where((own > 0) & (self.slack > 0), np.nextafter(total, np.inf), total)
        return np.minimum(grown, 1.0)

    @property
    def native(self) -> Mapping[str, Any]:
        """A dozen orders with their divergences."""
        wanted = (1.1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256)
        chosen = sorted({int(np.argmin(np.abs(ORDERS - order))) for order in wanted})
        finite = [at for at in chosen if math.isfinite(self.divergences[at])]
        native: dict[str, Any] = {
            "orders": [float(ORDERS[at]) for at in finite],
            "divergences": [float(self.divergences[at]) for at in finite],
        }
        return native | ({"delta": self.slack} if self.slack else {})


class RdpAccountant(Accountant):
    """Sums of Rényi curves, one cached curve for each distinct mechanism."""

    kind: ClassVar[str] = AccountantName.RDP

    def compose(self, invocations: Sequence[Invocation]) -> RdpComposition:
        """Add up.

        Raises:
            UnsupportedError: if one of them has no Rényi divergence.
        """
        parts = terms(invocations)
        total = np.zeros(ORDERS.size)
        with np.errstate(over="ignore"):
            for part in parts:
                total += part.count * renyi_curve(part)
            total *= 1 + 1e-15 * (len(parts) + 2)
        return RdpComposition(total, pure_sum(parts), round_up(slack_of(parts)))

    def epsilon_after_rounds(
        self, invocations: Sequence[Invocation], delta: float, rounds: ArrayLike
    ) -> Floats:
        """ε after each number of rounds; the divergences of one are multiplied."""
        one = self.compose(invocations)
        counts = np.asarray(rounds, dtype=np.float64)
        left = delta - counts * up(one.slack)
        found = np.full(counts.shape, np.inf)
        held = left >= 0
        for chunk in np.array_split(np.flatnonzero(held), max(1, counts.size // 2000)):
            with np.errstate(over="ignore"):
                grown = counts[chunk, None] * one.divergences
            found[chunk] = (grown + _penalty(left[chunk])).min(axis=-1)
        capped = np.minimum(_round_up(np.maximum(found, 0.0)), _round_up(counts * one.cap))
        return np.where(held, capped, np.inf)


def renyi_curve(part: Term) -> Floats:
    """Rényi divergences of one use at the orders in use, rounded up; not to be written to."""
    mechanism, sensitivity = part.invocation.mechanism, part.invocation.sensitivity
    try:
        return _curve(mechanism, sensitivity, part.amplification, _UnkeyedPair(part.pair))
    except UnsupportedError as error:
        raise UnsupportedError(f"{part.invocation.describe()}: {error}") from None


class _UnkeyedPair:
    """A pair that takes no part in the key of the cache."""

    def __init__(self, pair: DominatingPair) -> None:
        self.pair = pair

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _UnkeyedPair)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=2**15)
def _curve(
    mechanism: Mechanism, sensitivity: float, drawn: Amplification | None, held: _UnkeyedPair
) -> Floats:
    pair = held.pair
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        base = np.fmin(pair.renyi(ORDERS), ORDERS * pair.zcdp_rho)
        base = np.where(np.isnan(base), np.inf, base)
        if drawn is not None:
            require_law(pair)
            base = np.fmin(base, drawn.log_moments(pair) / (ORDERS - 1))
        # Curves near order 1 are quotients of two small numbers; the slack covers their rounding.
        curve = base * (1 + 1e-12) + 2.0**-50 / (ORDERS - 1)
    curve = np.minimum(curve, up(as_float(pair.pure_epsilon)))
    if not np.isfinite(curve).any() and not isinstance(pair.gaussian_mu, float):
        raise UnsupportedError("its Rényi divergences are infinite.")
    curve.setflags(write=False)
    return curve


def _penalty(deltas: Floats) -> Floats:
    """Return what the conversion adds at each order, shape (*deltas.shape, orders).

    ln((α − 1)/α) − (ln δ + ln α)/(α − 1) (Canonne, Kamath and Steinke 2020, Proposition 12).
    """
    with np.errstate(divide="ignore"):
        log_delta = np.log(deltas)[..., None]
    penalty: Floats = np.log1p(-1 / ORDERS) - (log_delta + np.log(ORDERS)) / (ORDERS - 1)
    return penalty


def _round_up(values: Floats) -> Floats:
    """A few units in the last place above."""
    with np.errstate(over="ignore"):
        return values * (1 + 2.0**-49)


MOMENTS: Floats = np.arange(1.0, 33.0)
"""The integer moments l of Abadi et al. 2016."""


@dataclass(frozen=True, eq=False)
class MomentsComposition(Composition):
    """Log-moments α(l) = l D_(l+1) that add up (Abadi et al. 2016, Theorem 2).

    Neither the conversion nor the orders are the best known, and no pure ε caps them: the figures
    are those that papers print.

    Attributes:
        log_moments: α(l) for l = 1…32.
        slack: the sum of δ of (ε, δ)-private black boxes.
    """

    log_moments: Floats
    slack: float = 0.0

    def epsilon(self, delta: float) -> Interval:
        """Min (α(l) + ln 1/δ)/l."""
        if delta <= self.slack:
            return Interval(None, math.inf)
        tail = -math.log(minus(delta, self.slack))
        found = float(((self.log_moments + tail) / MOMENTS).min())
        return Interval(None, max(found, 0.0) * (1 + 2.0**-50))

    def delta(self, epsilon: float) -> Interval:
        """Min exp(α(l) − lε)."""
        least = int(np.argmin(self.log_moments - MOMENTS * epsilon))
        moment, paid = float(self.log_moments[least]), float(MOMENTS[least]) * epsilon
        own = exp_up(moment - paid, moment + paid) if moment < math.inf else 1.0
        return Interval(None, plus(own, self.slack))

    @property
    def native(self) -> Mapping[str, Any]:
        """α(l) at some orders l."""
        chosen = [l for l in (1, 2, 4, 8, 16, 32) if math.isfinite(self.log_moments[l - 1])]  # noqa: E741
        return {
            "moments": chosen,
            "log_moments": [float(self.log_moments[moment - 1]) for moment in chosen],
        }


class MomentsAccountant(Accountant):
    """Integer moments to 32 and the Markov bound (Abadi et al. 2016)."""

    kind: ClassVar[str] = AccountantName.MOMENTS

    def compose(self, invocations: Sequence[Invocation]) -> MomentsComposition:
        """Add up.

        Raises:
            UnsupportedError: if one of them has no finite moment, or is sampled in fixed size.
        """
        parts = terms(invocations)
        total = np.zeros(MOMENTS.size)
        with np.errstate(over="ignore"):
            for part in parts:
                total += part.count * _log_moments(part)
            total *= 1 + 1e-15 * (len(parts) + 2)
        return MomentsComposition(total, round_up(slack_of(parts)))


def _log_moments(part: Term) -> Floats:
    drawn = part.amplification
    if drawn is None:
        with np.errstate(over="ignore"):
            return MOMENTS * part.pair.renyi(MOMENTS + 1) * (1 + 1e-14)
    try:
        require_law(part.pair)
        return drawn.integer_moments(part.pair, tuple(range(2, 34)))
    except UnsupportedError as error:
        raise UnsupportedError(f"{part.invocation.describe()}: {error}") from None
