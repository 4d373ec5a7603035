"""How long a proof would take, told from the plan before anything is computed.

Commands, servers and the checker refuse what would take too long. An estimate may be too large,
but must grow with all that makes a proof long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dpaudit.accounting.amplification import Amplification, amplification, cover
from dpaudit.accounting.guarantees import undominated
from dpaudit.accounting.terms import merged
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms.pairs import GaussianPair
from dpaudit.plan import Invocation, Plan

MOST_SECONDS = 120.0
"""What a proof that somebody else asks for may take, by the estimate."""

# Measured at δ = 1e-6 with best, in seconds of one processor core, and rounded up.
_READ = 1e-3
"""Of an invocation, to read, hash and group it."""
_ALONE = 10.0
"""Of any composition: its grids, for each decade of the curve."""
_FIRST, _FURTHER, _MANY = 0.35, 0.08, 64
"""Of a distinct pair: of each of the first ones for each decade, of all others once."""
_SAMPLED = 1.7
"""Times as much for a pair that is sampled."""
_OFTEN, _OFTEN_MORE = 10**10, 30.0
"""Of a pair that is used more often than that, whose grids are the largest there are."""
_OPERATIONS = 1e8
"""Of those that mechanisms speak of, a second."""
_MOST_MEMBERS = 10**6
"""Invocations of all kinds of units, each counted in every kind; more are not even compared."""


def seconds_of_proof(plan: Plan) -> float:
    """Estimate the seconds of one core that ``guarantee`` takes; rather too many.

    It follows from the number of invocations, of kinds of units, and of distinct uses in each of
    them, and from what mechanisms say of their pairs (:meth:`dpaudit.mechanisms.Mechanism.work`).

    >>> from dpaudit import AddRemove, Gaussian, PrivacyUnit, TrustModel
    >>> one = Invocation(Gaussian(4.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    >>> seconds_of_proof(Plan.of(one)) < 0.1
    True
    """
    uses = merged(plan.invocations)
    pairs = sum(one.mechanism.work(one.sensitivity) for one, _ in uses) / _OPERATIONS
    seconds = _READ * len(plan.invocations) + pairs
    members = plan.kinds_of_unit * _largest_kind(plan)
    if seconds > MOST_SECONDS or members > _MOST_MEMBERS:
        return seconds + _READ * members
    return seconds + sum(map(_seconds_of_unit, undominated(plan.by_unit())))


def require_affordable(plan: Plan, *, times: float = 1.0) -> None:
    """Refuse a proof that would take too long.

    Args:
        plan: what is to be proved.
        times: how often, about.

    Raises:
        InputError: if the estimate is above :data:`MOST_SECONDS`.
    """
    seconds = times * seconds_of_proof(plan)
    if seconds > MOST_SECONDS:
        raise InputError(
            f"the plan's proof would take about {seconds:.0f} s, but only {MOST_SECONDS:.0f} "
            "s are allowed; --allow-work computes it anyway."
        )


def _largest_kind(plan: Plan) -> int:
    """How many invocations one unit is touched by, at most: those of all, and of two groups."""
    groups = Counter(one.group for one in plan.invocations)
    everyone = groups.pop(None, 0)
    return everyone + sum(number for _, number in groups.most_common(2))


def _seconds_of_unit(invocations: Sequence[Invocation]) -> float:
    """Estimate those of one composition."""
    uses = [one for one, _ in merged(invocations) if one.sensitivity > 0]
    try:
        uses = list(map(cover, uses))
        sampling = [amplification(one.sampling, one) for one in uses]
        if all(map(_is_closed, uses, sampling)):
            return _READ * len(uses)
    except UnsupportedError:
        return _READ * len(uses)  # and so there is nothing to compose
    first, further = uses[:_MANY], uses[_MANY:]
    share = 1 + (_SAMPLED - 1) * sum(one is not None for one in sampling) / len(uses)
    often = sum(count > _OFTEN for _, count in merged(invocations))
    return _ALONE + _OFTEN_MORE * often + share * (_FIRST * len(first) + _FURTHER * len(further))


def _is_closed(one: Invocation, sampling: Amplification | None) -> bool:
    """Tell whether a closed form is exact, so that no grid is computed."""
    pair = one.mechanism.pair(one.sensitivity)
    return sampling is None and isinstance(pair, GaussianPair)
