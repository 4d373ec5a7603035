"""Accountants whose costs add up: pure ε, μ² of Gaussian releases, and ρ of zCDP.

Sums are exact, and rounded up once at their end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpaudit.accounting.accountant import Accountant, AccountantName, Composition, Interval
from dpaudit.accounting.terms import (
    Term,
    attained,
    pure_sum,
    pure_total,
    slack_of,
    terms,
    unbounded,
)
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import GaussianPair
from dpaudit.mechanisms.pairs import VastPair
from dpaudit.mechanisms.rounding import (
    concentration,
    exp_up,
    least_epsilon,
    minus,
    plus,
    round_up,
    up,
)
from dpaudit.plan import Invocation


@dataclass(frozen=True)
class PureComposition(Composition):
    """Uses whose ε add up (Dwork, McSherry, Nissim and Smith 2006), and whose δ do.

    Attributes:
        total: the sum of ε, exact where all of them are rational.
        slack: the sum of δ of (ε, δ)-private black boxes.
        single: the only use, where there is one; its own curve is then exact.
    """

    total: Fraction
    slack: Fraction
    single: Term | None = None

    def epsilon(self, delta: float) -> Interval:
        """The sum, rounded up once, or for a single use the root of its own curve.

        Infinite for a δ below the slack.
        """
        if self.slack > delta:
            return Interval(None, math.inf)
        total = round_up(self.total)
        if self.single is None:
            return Interval(None, total)
        known = self.single.is_attained
        if delta == 0 or total == math.inf:
            return Interval(math.nextafter(total, 0.0) if known else None, total)
        upper = least_epsilon(lambda asked: self._single_use(asked)[1], delta, total)
        if not known:
            return Interval(None, upper)
        lower = least_epsilon(lambda asked: self._single_use(asked)[0], delta, total)
        return Interval(math.nextafter(lower, 0.0), upper)

    def delta(self, epsilon: float) -> Interval:
        """That of the pair which dominates every ε-private mechanism; of a single use its own.

        With total E it is (e^E − e^ε)/(1 + e^E) (Kairouz, Oh and Viswanath 2015, Theorem 3.3).
        """
        total = round_up(self.total)
        if self.total <= Fraction(epsilon):
            exact = self.single is not None
            return Interval(0.0 if exact else None, round_up(self.slack))
        if self.single is not None:
            lower, upper = self._single_use(epsilon)
            return Interval(lower if self.single.is_attained else None, upper)
        gap = -math.expm1(epsilon - total) / (1 + math.exp(-total)) if total < math.inf else 1.0
        return Interval(None, plus(up(gap, 8), round_up(self.slack)))

    def _single_use(self, epsilon: float) -> tuple[float, float]:
        """The hockey-stick divergence of the single use, less and plus its rounding."""
        if self.single is None or self.total <= Fraction(epsilon):
            return 0.0, 0.0
        own = float(self.single.pair.delta(epsilon))
        # The loss, as a float, is off by some units in its last place.
        error = own * 1e-14 + 2e-15 * min(1 + epsilon, float(self.total))
        return max(0.0, own - error), min(1.0, own + error)

    @property
    def is_exact(self) -> bool:
        """Whether a single use is composed, whose curve is known."""
        return self.single is not None

    @property
    def native(self) -> Mapping[str, Any]:
        """The sum of ε, as a float."""
        total = round_up(self.total)
        native: dict[str, Any] = {"pure_epsilon": None if total == math.inf else total}
        return native | ({"delta": round_up(self.slack)} if self.slack else {})


class PureAccountant(Accountant):
    """Basic composition, in exact arithmetic.

    >>> from dpaudit.mechanisms import Laplace
    >>> from dpaudit.plan.relations import AddRemove, PrivacyUnit, TrustModel
    >>> laplace = Invocation(
    ...     Laplace(20.0), 1.0, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, count=10
    ... )
    >>> PureAccountant().compose([laplace]).epsilon(0.0).upper
    0.5
    """

    kind: ClassVar[str] = AccountantName.PURE

    def compose(self, invocations: Sequence[Invocation]) -> PureComposition:
        """Add up.

        Raises:
            UnsupportedError: if one of them has an unbounded loss.
        """
        parts = terms(invocations)
        unlimited = unbounded(parts)
        if unlimited:
            raise UnsupportedError(f"no pure guarantee: {unlimited[0]} has unbounded loss.")
        slack = slack_of(parts)
        alone = len(parts) == 1 and parts[0].count == 1 and parts[0].amplification is None
        return PureComposition(pure_total(parts), slack, parts[0] if alone and not slack else None)


@dataclass(frozen=True)
class GaussianComposition(Composition):
    """N(μ, 1) against N(0, 1), the exact composition of Gaussian mechanisms.

    Dong, Roth and Su 2022, Corollary 3.3: μ² adds up. Both ends of an interval are the closed form,
    moved by a bound on its floating-point error.

    Attributes:
        mu: the root of the sum of squares, rounded up.
        is_attained: whether the invocations may cost as much, so that there is a lower end.
    """

    is_exact = True  # the composition of Gaussian mechanisms is Gaussian
    mu: float
    is_attained: bool = True

    def epsilon(self, delta: float) -> Interval:
        """The root of δ(ε) = δ, and the first ε below at which δ(ε), rounded down, is larger."""
        upper = GaussianPair(self.mu).least_epsilon(delta)
        if upper == math.inf or not self.is_attained:
            return Interval(None, upper)
        lower, step = upper, max(2.0**-46 * upper, 5e-324)
        while lower > 0 and self._least.delta_ends(lower)[0] <= delta:
            lower, step = max(lower - step, 0.0), 2 * step
        return Interval(lower, upper)

    def delta(self, epsilon: float) -> Interval:
        """Balle and Wang 2018, Theorem 8."""
        lower = self._least.delta_ends(epsilon)[0] if self.is_attained else None
        return Interval(lower, GaussianPair(self.mu).delta_ends(epsilon)[1])

    @property
    def _least(self) -> GaussianPair:
        """The pair of the μ that was rounded up, at least; of floats that stand for less, none."""
        return GaussianPair(self.mu * (1 - 2.0**-50) if self.mu > 1e-290 else 0.0)

    @property
    def native(self) -> Mapping[str, Any]:
        """μ."""
        return {"mu": self.mu if self.mu < math.inf else None}


class GaussianAccountant(Accountant):
    """μ-GDP of ledgers that hold nothing but Gaussian mechanisms without sampling."""

    kind: ClassVar[str] = AccountantName.GAUSSIAN

    def compose(self, invocations: Sequence[Invocation]) -> GaussianComposition:
        """Add up the squares.

        Raises:
            UnsupportedError: if one of them is sampled or not Gaussian.
        """
        parts = terms(invocations)
        return GaussianComposition(_root_of_squares(parts), attained(parts))


def _root_of_squares(parts: Sequence[Term]) -> float:
    """The root of Σ count μ², rounded up."""
    total = Fraction(0)
    for part in parts:
        mu = part.pair.gaussian_mu
        if mu is None or part.amplification is not None:
            raise UnsupportedError(
                f"{part.invocation.describe()} is not a Gaussian mechanism, or is sampled; "
                "the gaussian accountant takes Gaussian mechanisms without sampling."
            )
        if not mu < math.inf:
            return math.inf
        total += part.count * Fraction(up(mu)) ** 2
    if len(parts) == 1 and parts[0].count == 1:
        return up(float(parts[0].pair.gaussian_mu or 0.0))
    try:
        # Scaled where the square would underflow.
        scale = 2**600 if total < Fraction(1e-200) else 1
        return up(math.sqrt(total * scale**2) / scale, 2)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class ZcdpComposition(Composition):
    """ρ-zCDP, but for an event of probability ``slack`` (Bun and Steinke 2016, Definition 8.1).

    Attributes:
        rho: the sum of ρ, rounded up.
        cap: the pure ε of the same uses, or infinity.
        slack: the sum of δ of (ε, δ)-private black boxes.
    """

    rho: float
    cap: float
    slack: float = 0.0

    def epsilon(self, delta: float) -> Interval:
        """The best conversion over all orders, capped by the pure ε."""
        if delta < self.slack:
            return Interval(None, math.inf)
        left = minus(delta, self.slack)
        return Interval(None, min(self.cap, zcdp_epsilon(self.rho, left)))

    def delta(self, epsilon: float) -> Interval:
        """The best conversion over all orders; 0 from the pure ε on."""
        own = 0.0 if epsilon >= self.cap else zcdp_delta(self.rho, epsilon)
        return Interval(None, plus(own, self.slack))

    @property
    def native(self) -> Mapping[str, Any]:
        """ρ, and δ where it is not 0."""
        native: dict[str, Any] = {"rho": self.rho if self.rho < math.inf else None}
        return native | ({"delta": self.slack} if self.slack else {})


class ZcdpAccountant(Accountant):
    """Additive ρ (Bun and Steinke 2016, Lemma 1.7); it stays valid for adaptive choices."""

    kind: ClassVar[str] = AccountantName.ZCDP

    def compose(self, invocations: Sequence[Invocation]) -> ZcdpComposition:
        """Add up.

        Raises:
            UnsupportedError: if one of them is not zero-concentrated.
        """
        parts = terms(invocations)
        each = [rho_of(part) for part in parts]
        slack = round_up(slack_of(parts))
        if math.inf in each:
            return ZcdpComposition(math.inf, pure_sum(parts), slack)
        total = sum(
            (Fraction(rho) * part.count for rho, part in zip(each, parts, strict=True)), Fraction(0)
        )
        return ZcdpComposition(round_up(total), pure_sum(parts), slack)


def rho_of(part: Term) -> float:
    """ρ of one use.

    Sampling never raises it, by joint quasi-convexity of the Rényi divergence, and lowers the pure
    ε, of which it is at most half the square; zCDP has no better amplification for Gaussian noise.

    Raises:
        UnsupportedError: if there is none.
    """
    rho = part.pair.zcdp_rho
    if part.amplification is not None:
        rho = min(rho, concentration(part.sampled_epsilon, 0.5))
    vast = isinstance(part.pair, GaussianPair | VastPair)
    if math.isnan(rho) or (rho == math.inf and not vast):
        raise UnsupportedError(f"{part.invocation.describe()} is not zero-concentrated.")
    return rho


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The least ε of ρ-zCDP at δ, over all orders α > 1.

    ε(α) = αρ + ln((α − 1)/α) − (ln δ + ln α)/(α − 1) (Canonne, Kamath and Steinke 2020,
    Proposition 12) has the derivative ρ + (ln δ + ln α)/(α − 1)², whose one root is bracketed here;
    any order near it gives a valid ε.

    >>> round(zcdp_epsilon(0.5, 1e-5), 4)
    4.7284
    """
    if rho == 0:
        return 0.0
    if delta <= 0 or not rho < math.inf:
        return math.inf
    log_delta = math.log(delta)

    def slope(x: float) -> float:
        return rho * x * x + math.log1p(x) + log_delta

    x = _root(slope, high=math.sqrt(-log_delta / rho))
    epsilon = rho * (1 + x) - math.log1p(1 / x) - (log_delta + math.log1p(x)) / x
    return up(max(epsilon, 0.0), 16)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least δ of ρ-zCDP at ε ≥ 0, over all orders α > 1.

    ln δ(α) = (α − 1)(αρ − ε) − ln(α − 1) + α ln(1 − 1/α), with derivative
    (2α − 1)ρ − ε + ln(1 − 1/α), increasing in α and positive where (α − 1)ρ ≥ ε + √ρ.
    """
    if rho == 0:
        return 0.0
    if not rho < math.inf:
        return 1.0

    def slope(x: float) -> float:
        return (2 * x + 1) * rho - epsilon - math.log1p(1 / x)

    x = _root(slope, high=epsilon / rho + 1 / math.sqrt(rho) + 2)
    exponent = x * ((1 + x) * rho - epsilon) - math.log(x) - (1 + x) * math.log1p(1 / x)
    return exp_up(exponent, x * (1 + x) * rho + x * epsilon + 2 * abs(math.log(x)))


def _root(slope: Callable[[float], float], high: float) -> float:
    """An x = α − 1 > 0 next to the root of an increasing slope, by bisection of ln x."""
    top = min(max(high, 1e-12), 1e300)
    while slope(top) < 0 and top < 1e300:
        top *= 2
    low, up_to = math.log(top) - 1, math.log(top)
    while slope(math.exp(low)) > 0 and low > -600:
        low -= 8
    for _ in range(60):
        middle = (low + up_to) / 2
        if slope(math.exp(middle)) > 0:
            up_to = middle
        else:
            low = middle
    return math.exp((low + up_to) / 2)
