"""What a plan declares of a training: its invocations by label, and how a clip norm may follow.

Every kind of training reads its plan here, whatever library it trains with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PlanMismatchError, UnsupportedError
from dpaudit.base.fields import Checked, OpenProbability, Positive
from dpaudit.base.finding_table import Severity
from dpaudit.ledger import Ledger
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import FixedSizeSampling, Invocation, PoissonSampling, PrivacyUnit, TrustModel

_FARTHEST = 100.0
"""Power of e by which a clip norm moves at most: by a small divisor noise may ask for any."""


def invocations_at(ledger: Ledger, label: str) -> tuple[Invocation, ...]:
    """Return the invocations of a label: itself, or its phases or epochs in their order.

    Raises:
        InputError: if the plan has no such label.
        UnsupportedError: if a training does not do what they say: it holds the rows of all units,
            and each step is of all of them.
    """
    validate.text(at=label)
    found = tuple(
        each
        for each in ledger.plan.invocations
        if each.at == label or each.at.startswith(f"{label}, ")
    )
    if not found:
        places = ", ".join(repr(each.at) for each in ledger.plan.invocations)
        raise InputError(f"at is {label!r}; the ledger's plan declares {places}.")
    if any(each.trust is TrustModel.LOCAL for each in found):
        raise UnsupportedError(
            f"{found[0].describe()} is declared under local trust, but a training holds the rows "
            "of all units; declare trust central."
        )
    if len({each.group for each in found}) > 1:
        raise UnsupportedError(
            f"{label!r} has invocations of several groups, but one training takes each step on all "
            "units; declare them without groups, or train each group by a label of its own."
        )
    return found


def is_correlated(declared: tuple[Invocation, ...]) -> bool:
    """Tell whether noise is declared that is correlated over the steps."""
    return isinstance(declared[0].mechanism, Continual)


def is_sampled(each: Invocation) -> bool:
    """Tell whether less than all units take part, so that amplification is claimed."""
    match each.sampling:
        case PoissonSampling(rate=1.0) | None:
            return False
        case FixedSizeSampling(size=size, population=population):
            return size < population
    return True


def unobserved(declared: Iterable[Invocation]) -> Severity:
    """Return how much it weighs that nobody saw how batches were drawn."""
    claimed = any(is_sampled(each) or each.releases > each.count for each in declared)
    return Severity.ERROR if claimed else Severity.WARNING


def require_unit(unit: PrivacyUnit, *, drawn: bool, clipped: bool) -> None:
    """Refuse a training that draws or clips other units, users or rows, than its plan protects.

    A row that leaves a user may turn the user's clipped gradient round: by two clip norms.

    Raises:
        PlanMismatchError: if it does.
    """
    if not drawn == clipped == (not unit.is_row):
        kinds = [("rows", "users")[each] for each in (drawn, clipped)]
        raise PlanMismatchError(
            f"unit is {unit.name!r}, but the training draws {kinds[0]} and clips {kinds[1]}; "
            "to protect users, give their names as users (with opacus to PoissonLoader or "
            "PrivateTrainer), and declare unit='user'; to protect rows, give no users and "
            "declare unit='row'."
        )


@dataclass(frozen=True)
class Adaptive(Checked):
    """The rule by which the clip norm C follows the updates, within the declared noise.

    Andrew, Thakkar, McMahan & Ramaswamy 2021, Algorithm 1, as one release: a unit adds its clipped
    update over C, times √(1 − s²), and s or −s, by whether it was clipped. So it adds a vector of
    length 1 at most.

    Attributes:
        quantile: of norms that the clip norm is to be.
        rate: by which it moves.
        share: s, of the noise that the number of unclipped updates takes; its own is z/(2·share).
    """

    quantile: OpenProbability = 0.5
    rate: Positive = 0.2
    share: OpenProbability = 0.1

    @property
    def of_sum(self) -> float:
        """√(1 − s²), by which updates are measured beside their number."""
        return math.sqrt(1 - self.share**2)

    def moved(self, norm: float, signs: float, expected: float) -> float:
        """Return the next clip norm.

        Args:
            norm: the last one.
            signs: noisy sum of s for each update that was not clipped, and −s for each other.
            expected: a public number of updates.
        """
        unclipped = 0.5 + signs / (2 * self.share) / expected
        power = -self.rate * (unclipped - self.quantile)
        return norm * math.exp(min(max(power, -_FARTHEST), _FARTHEST))
