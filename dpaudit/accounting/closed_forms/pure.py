"""Pure ε: exact sums of what each use costs at most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpaudit.accounting.accountant import Accountant, Composition, Interval
from dpaudit.accounting.proved import AccountantName
from dpaudit.accounting.terms import Term, pure_total, slack_of, terms, unbounded
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms.inversion import least_epsilon
from dpaudit.mechanisms.rounding import plus, round_up, up
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
