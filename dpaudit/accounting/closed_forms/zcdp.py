"""Zero-concentrated differential privacy: ρ adds up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpaudit.accounting.accountant import Accountant, Composition, Interval
from dpaudit.accounting.proved import AccountantName
from dpaudit.accounting.terms import Term, pure_sum, slack_of, terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms import GaussianPair
from dpaudit.mechanisms.pairs import VastPair
from dpaudit.mechanisms.rounding import concentration, exp_up, minus, plus, round_up, up
from dpaudit.plan import Invocation


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
    epsilon = rho * (1 + x) + math.log(x / (1 + x)) - (log_delta + math.log1p(x)) / x
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
