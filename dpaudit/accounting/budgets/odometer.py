"""What adaptive releases have cost so far, where no budget was fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.accounting.budgets.filters import Protected, refuse_others, refuse_slack
from dpaudit.accounting.closed_forms.additive import rho_of
from dpaudit.accounting.terms import terms
from dpaudit.base.fields import Checked, OpenProbability, Positive
from dpaudit.mechanisms.rounding import round_up, up
from dpaudit.plan import Invocation

_RATIO = 1.5
"""Of the budgets between which the odometer is read."""


@dataclass(eq=False)
class Odometer(Checked):
    """Admits every release, and says at any time what all of them have cost.

    Rogers, Roth, Ullman and Vadhan 2016: with probability 1 − δ over what was released, the privacy
    loss is at most :attr:`epsilon` at all times at once, however releases and the end were chosen.
    For a fixed order a the process exp((a − 1) L − a(a − 1) Σ ρ) is a supermartingale, so that by
    Ville's inequality L exceeds ρ_k + 2 √(ρ_k ln 1/δ_k) while Σ ρ ≤ ρ_k with probability of at most
    δ_k. Read is the least of the budgets ρ_k = 1.5^k ``start`` that is not exceeded, with
    δ_k = δ/(k + 1)(k + 2), which add up to δ; or the sum of pure ε, if that is less.

    >>> from dpaudit import AddRemove, Gaussian, PrivacyUnit, TrustModel
    >>> spent, about = Odometer(1e-5), (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    >>> spent.admit(Invocation(Gaussian(10.0), 1.0, *about))
    >>> round(spent.epsilon, 3)
    0.555

    Attributes:
        delta: δ, the probability that the loss is ever larger.
        start: ρ of the first budget.
        admitted: number of invocations charged so far.
    """

    delta: OpenProbability
    start: Positive = 1e-3
    admitted: int = field(default=0, init=False)
    _rho: Fraction = field(default=Fraction(0), init=False, repr=False)
    _pure: Fraction | float = field(default=Fraction(0), init=False, repr=False)
    _protected: Protected | None = field(default=None, init=False, repr=False)

    def admit(self, invocation: Invocation) -> None:
        """Charge an invocation, before it is run.

        Raises:
            UnsupportedError: if it is not zero-concentrated, or has a δ of its own.
            InputError: if it protects another unit or relation than those before.
        """
        protected = refuse_others(invocation, self._protected)
        rho, pure = self._rho, self._pure
        for part in terms([invocation]):
            refuse_slack(part)
            own = rho_of(part)
            rho = rho + part.count * Fraction(own) if own < math.inf else Fraction(10) ** 400
            pure = pure + part.count * part.sampled_epsilon
        self._rho, self._pure, self._protected = rho, pure, protected
        self.admitted += 1

    @property
    def spent(self) -> float:
        """The sum of ρ, rounded up."""
        return round_up(self._rho)

    @property
    def epsilon(self) -> float:
        """The ε that the privacy loss has not exceeded, rounded up; 0 before the first release."""
        pure = self._pure if isinstance(self._pure, float) else round_up(self._pure)
        rho = self.spent
        if rho in (0.0, math.inf):
            return pure if rho else 0.0
        stage = max(math.ceil(math.log(rho / self.start) / math.log(_RATIO) - 1e-9), 0)
        budget = max(up(self.start * _RATIO**stage, 4), rho)
        tail = math.log((stage + 1) * (stage + 2)) - math.log(self.delta)
        return min(up(budget + 2 * math.sqrt(budget * tail), 8), pure)
