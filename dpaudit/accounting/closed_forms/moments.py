"""The classic moments accountant, for reproducing the figures of papers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.accounting.accountant import Accountant, Composition, Interval
from dpaudit.accounting.proved import AccountantName
from dpaudit.accounting.terms import Term, require_law, slack_of, terms
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import exp_up, minus, plus, round_up
from dpaudit.plan import Invocation

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
