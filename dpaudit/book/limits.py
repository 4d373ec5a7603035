"""How much a budget admits, over which time, and what a plan takes of it: vectors of whole numbers.

A cost is rounded up, and a limit down, to units of about 10^-40. Sums of whole numbers are exact in
any order and any database, so that what is given back leaves nothing behind. Each limit is that of
a filter of :mod:`dpaudit.accounting.budgets`, which says by which theorem plans may be chosen from
what was released before, and their releases interleaved.

A budget adds up in buckets, in UTC. One for ever has one bucket. One of a calendar period has a
bucket for each, which is charged by every release that reads data of it. One of a rolling window
has a bucket for each day on which something was reserved, and so many days in a row add up.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from dpaudit.accounting import RenyiFilter, ZcdpFilter
from dpaudit.accounting.closed_forms.additive import rho_of, zcdp_epsilon
from dpaudit.accounting.closed_forms.rdp import renyi_curve
from dpaudit.accounting.guarantees import undominated
from dpaudit.accounting.orders import ORDERS
from dpaudit.accounting.terms import Term, terms
from dpaudit.base import numbers, toml_tables
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Kinded, NonNegative, OpenProbability, Positive
from dpaudit.base.validate import shown
from dpaudit.mechanisms import Gaussian
from dpaudit.mechanisms.rounding import round_up, up
from dpaudit.plan import Plan

EVER = "ever"
_FORMATS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}
PERIODS = tuple(_FORMATS)
_MOST_DAYS = 3660
"""Of the data that one release reads, or of a rolling window."""
_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
_PAUSE = 31
"""Days in which nothing may happen in any book, whatever its windows."""

Span = tuple[date, date]


def checked_window(**field: object) -> str:
    """Check a window: ``ever``, a calendar period, or ``N days``.

    Raises:
        InputError: if it is none of them.
    """
    ((name, value),) = field.items()
    text = str(value)
    if text not in (EVER, *PERIODS) and not 1 <= days_of(text) <= _MOST_DAYS:
        raise InputError(
            f"{name} is {shown(value)}; it must be {EVER}, {', '.join(PERIODS)}, or "
            "a rolling window such as '30 days'."
        )
    return text


def days_of(window: str) -> int:
    """Count how many days a rolling window has; 0 where it is none."""
    found = re.fullmatch(r"([0-9]{1,4}) days?", window)
    return int(found[1]) if found else 0


def longest_pause(window: str) -> int:
    """Return the days of rest after which a budget begins anew; 0 for one for ever.

    It is one period, and at least a month: a daily budget may rest over the holidays.

    >>> longest_pause("year"), longest_pause("day"), longest_pause("ever")
    (366, 31, 0)
    """
    return 0 if window == EVER else max(_PAUSE, _DAYS.get(window) or days_of(window))


def charged_buckets(window: str, span: Span, today: date) -> tuple[str, ...]:
    """Return the buckets that a release charges, which reads data of some days.

    >>> charged_buckets("week", (date(2026, 11, 20), date(2026, 11, 23)), date(2026, 11, 24))
    ('2026-W47', '2026-W48')
    """
    if window == EVER:
        return (EVER,)
    if window not in _FORMATS:
        return (today.isoformat(),)
    first, last = span
    days = (first + timedelta(n) for n in range((last - first).days + 1))
    return tuple(dict.fromkeys(each.strftime(_FORMATS[window]) for each in days))


def joint_buckets(window: str, bucket: str) -> tuple[str, ...]:
    """Return the buckets that add up with one that is charged, itself included."""
    length = days_of(window)
    if not length:
        return (bucket,)
    last = date.fromisoformat(bucket)
    return tuple((last - timedelta(n)).isoformat() for n in range(length))


def span_of(text: str | None, today: date) -> Span:
    """Return the days whose data are read; today where nothing is said.

    It is a day, a week, a month or a year, or two of them with ``..`` between, from the first day
    of the one to the last day of the other.

    >>> [day.isoformat() for day in span_of("2026-W47", date(2026, 11, 23))]
    ['2026-11-16', '2026-11-22']

    Raises:
        InputError: if it is something else, or too long.
    """
    first, dots, last = (text or today.isoformat()).partition("..")
    try:
        span = _days(first)[0], _days(last if dots else first)[1]
    except (ValueError, OverflowError):
        raise InputError(
            f"period is {shown(text)}; it must be a day, a week, a month or a year, such as "
            "2026-11-16, 2026-W47, 2026-11 or 2026, or two of them, such as 2026-11-16..2026-11-22."
        ) from None
    if not 0 <= (span[1] - span[0]).days < _MOST_DAYS:
        raise InputError(
            f"period is {shown(text)}; it must end after it begins, within {_MOST_DAYS} days."
        )
    return span


def _days(text: str) -> Span:
    """Return the first and the last day of a day, a week, a month or a year."""
    if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        day = date.fromisoformat(text)
        return day, day
    if re.fullmatch("[0-9]{4}-W[0-9]{2}", text):
        monday = date.fromisoformat(text)
        return monday, monday + timedelta(6)
    if re.fullmatch("[0-9]{4}", text):
        return date(int(text), 1, 1), date(int(text), 12, 31)
    if not re.fullmatch("[0-9]{4}-[0-9]{2}", text):
        raise ValueError(text)
    first = date.fromisoformat(f"{text}-01")
    return first, first.replace(day=monthrange(first.year, first.month)[1])


Cost = tuple[int, ...]
UNIT = 10**24 * math.lcm(*range(1, 41))
"""So many units make 1: decimal fractions, thirds, sevenths … are whole numbers of them."""
ENDLESS = UNIT**2
"""Stands for an infinite cost; no limit is nearly so large."""
_LARGEST = 10**6
_FREE = 10**15
_DELTA = 1e-6


@dataclass(frozen=True)
class Limit(Kinded, ABC):
    """A bound on all that is released about one unit; subclasses are ways to say it."""

    family: ClassVar[str] = "limit"
    any_will_do: ClassVar[bool] = False
    """Whether it is kept while one number is within its bound; else all must be."""
    used_of: ClassVar[str] = ""
    """What the share that is used is a share of, where that is not what the limit states."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if max(self.bounds) > _LARGEST * UNIT:
            raise InputError(f"limit is above {_LARGEST}, which protects nobody; lower it.")

    @cached_property
    def bounds(self) -> Cost:
        """The sums that the limit states, rounded down."""
        return tuple(math.floor(Fraction(each) * UNIT) for each, _ in self._bounds())

    @cached_property
    def admitted(self) -> Cost:
        """The largest sums with which the limit holds as a claim does, rounded down."""
        return tuple(
            math.floor((Fraction(each) + numbers.most(of) - numbers.stated(of)) * UNIT)
            for each, of in self._bounds()
        )

    @abstractmethod
    def _bounds(self) -> Sequence[tuple[Fraction | float, float]]:
        """Return each with the number that somebody claims by it, 0 for none."""

    @abstractmethod
    def _of(self, part: Term) -> Sequence[Fraction | float]:
        """Return what some uses cost, in each number."""

    @property
    def point(self) -> tuple[float, float]:
        """An (ε, δ) that it stands for."""
        return getattr(self, "epsilon", math.inf), getattr(self, "delta", 0.0)

    def reached(self, total: Sequence[int]) -> dict[str, float]:
        """Return what sums prove, in the words of the limit, rounded up."""
        return {}

    def described(self, total: Sequence[int]) -> str:
        """Return what sums prove, in words, rounded up; of a curve the share that they take."""
        found = self.reached(total) or {"share": self.share(total)}
        found |= {"slack": _float(total[1])} if hasattr(self, "slack") and total[1] else {}
        return ", ".join(f"{name} = {numbers.up(value)}" for name, value in found.items())

    def used(self, total: Sequence[int]) -> str:
        """Return the share that sums take, in words, rounded up."""
        return share_text(self.share(total))

    def cost(self, plan: Plan) -> Cost:
        """Count what a plan takes, rounded up; of disjoint groups each number of the dearest.

        Raises:
            UnsupportedError: if no theorem covers an invocation under this kind of limit.
        """
        return _cost(self, plan)

    def _exactly(self, part: Term) -> Sequence[Fraction | float]:
        """Do as ``_of`` in a plan of one group, where no other one was left out as no dearer."""
        return self._of(part)

    def of_group(self, parts: Sequence[Term], *, alone: bool = False) -> Cost:
        """Give what the uses that touch one unit take; whether all that is released touches it."""
        of = self._exactly if alone else self._of
        each = [tuple(map(_units, of(part))) for part in parts]
        return tuple(map(sum, zip(*each, strict=True))) if each else (0,) * len(self.bounds)

    def admits(self, total: Sequence[int]) -> bool:
        """Tell whether sums are within the limit."""
        kept = (own <= most for own, most in zip(total, self.admitted, strict=True))
        return any(kept) if self.any_will_do else all(kept)

    def times(self, cost: Cost, total: Sequence[int]) -> int | None:
        """Count how often a cost is admitted on top of sums; None where it is free.

        What a limit admits beyond what it states, against rounding, is no room to be planned with.
        """
        if not any(cost):
            return None
        found = [
            _FREE * (most >= own)
            if not one
            else (most - own) // one
            if own + most - bound < bound
            else 0
            for one, own, bound, most in zip(cost, total, self.bounds, self.admitted, strict=True)
        ]
        return max(0, max(found) if self.any_will_do else min(found))

    def share(self, total: Sequence[int]) -> float:
        """Return the share that is used up, rounded up; where any number will do, of the best."""
        shares = [
            math.nextafter(own / most, math.inf) if own and most > 0 else math.inf if own else 0.0
            for own, most in zip(total, self.bounds, strict=True)
            if own or most > 0
        ]
        return (min if self.any_will_do else max)(shares, default=0.0)

    def __str__(self) -> str:
        said = {name: each for name, each in self.to_dict().items() if name != "kind" and each}
        return ", ".join(f"{name} = {value}" for name, value in said.items()) + f" ({self.kind})"


@dataclass(frozen=True)
class PureLimit(Limit):
    """ε of the whole, by the sum (:class:`~dpaudit.accounting.AdaptiveFilter` without δ)."""

    kind: ClassVar[str] = "pure"
    epsilon: Positive

    def _bounds(self) -> Sequence[tuple[Fraction | float, float]]:
        return (numbers.stated(self.epsilon), self.epsilon), (0.0, 0.0)

    def reached(self, total: Sequence[int]) -> dict[str, float]:
        """Return ε."""
        return {"epsilon": _float(total[0])}

    def _of(self, part: Term) -> Sequence[Fraction | float]:
        if part.sampled_epsilon == math.inf:
            raise UnsupportedError(
                f"{part.invocation.describe()} has no pure ε; give the data set a budget with δ."
            )
        return Fraction(part.sampled_epsilon) * part.count, part.slack


class _Concentrated(Limit):
    """Sums of ρ, and of δ of what is ρ-zCDP but for a failure; sampling hardly amplifies it."""

    def _of(self, part: Term) -> Sequence[Fraction | float]:
        rho = rho_of(part)
        return rho if rho == math.inf else Fraction(rho) * part.count, part.slack

    def _exactly(self, part: Term) -> Sequence[Fraction | float]:
        """Take μ²/2 itself where μ is a float, so that a cost may be all of a limit."""
        own, mu = part.invocation.mechanism, part.pair.gaussian_mu or math.inf
        if part.amplification or not isinstance(own, Gaussian) or mu == math.inf:
            return self._of(part)
        if Fraction(mu) * Fraction(own.sigma) != part.invocation.sensitivity:
            return self._of(part)
        return Fraction(mu) ** 2 / 2 * part.count, part.slack


@dataclass(frozen=True)
class RhoLimit(_Concentrated):
    """ρ of the whole (:class:`~dpaudit.accounting.ZcdpFilter`)."""

    kind: ClassVar[str] = "rho"
    rho: Positive
    slack: NonNegative = 0.0

    def _bounds(self) -> Sequence[tuple[Fraction | float, float]]:
        return (numbers.stated(self.rho), self.rho), (self.slack, 0.0)

    @property
    def point(self) -> tuple[float, float]:
        """At a small δ."""
        return zcdp_epsilon(self.rho, _DELTA), _DELTA

    def reached(self, total: Sequence[int]) -> dict[str, float]:
        """Return ρ."""
        return {"rho": _float(total[0])}


@dataclass(frozen=True)
class ZcdpLimit(_Concentrated):
    """ε at δ of the whole, by the sum of ρ (:class:`~dpaudit.accounting.ZcdpFilter`)."""

    kind: ClassVar[str] = "zcdp"
    used_of: ClassVar[str] = "the ρ that the limit allows"
    epsilon: Positive
    delta: OpenProbability
    slack: NonNegative = 0.0

    def _bounds(self) -> Sequence[tuple[Fraction | float, float]]:
        rho = ZcdpFilter(self.epsilon, self.delta, slack=self.slack).rho
        return (rho, rho), (self.slack, 0.0)

    def reached(self, total: Sequence[int]) -> dict[str, float]:
        """Return ε at δ."""
        left = math.nextafter(self.delta - self.slack, 0.0)
        return {"epsilon": zcdp_epsilon(_float(total[0]), left)}


@dataclass(frozen=True)
class RenyiLimit(Limit):
    """ε at δ of the whole, at some Rényi order (:class:`~dpaudit.accounting.RenyiFilter`)."""

    kind: ClassVar[str] = "renyi"
    any_will_do: ClassVar[bool] = True
    used_of: ClassVar[str] = "the Rényi divergences that the limit allows, at the best order"
    epsilon: Positive
    delta: OpenProbability

    @cached_property
    def _filter(self) -> RenyiFilter:
        return RenyiFilter(self.epsilon, self.delta)

    def _bounds(self) -> Sequence[tuple[float, float]]:
        # Negative where an order is of no use.
        return [(each, self.epsilon) for each in self._filter.budgets.tolist()]

    def reached(self, total: Sequence[int]) -> dict[str, float]:
        """Return ε at δ, by the best order: as much below ε as its sum is below its bound."""
        if not any(total):
            return {"epsilon": 0.0}
        own = min(own - bound for own, bound in zip(total, self.bounds, strict=True))
        return {"epsilon": max(0.0, round_up(Fraction(own, UNIT) + Fraction(self.epsilon)))}

    def _of(self, part: Term) -> Sequence[Fraction | float]:
        return _divergences(part, self._filter.orders)


@dataclass(frozen=True)
class CurveLimit(Limit):
    """Rényi divergences of the whole, at every order that is named.

    Attributes:
        curve: pairs of an order above 1 and the divergence there.
    """

    kind: ClassVar[str] = "curve"
    curve: tuple[Any, ...]

    def __post_init__(self) -> None:
        try:
            pairs = tuple((float(order), float(most)) for order, most in self.curve)
            fine = pairs and all(1 < a <= ORDERS[-1] and 0 < e < math.inf for a, e in pairs)
        except (TypeError, ValueError):
            fine = False
        if not fine:
            raise InputError(
                f"curve is {shown(self.curve)}; it must be pairs of an order above 1 and a "
                "divergence above 0, such as [[2, 0.1], [32, 1.0]]."
            )
        self._set("curve", pairs)
        super().__post_init__()

    def _bounds(self) -> Sequence[tuple[Fraction, float]]:
        return [(numbers.stated(largest), largest) for _, largest in self.curve]

    @property
    def point(self) -> tuple[float, float]:
        """At a small δ, by the best order (Mironov 2017, Proposition 3)."""
        return min(up(e - math.log(_DELTA) / (a - 1), 4) for a, e in self.curve), _DELTA

    def _of(self, part: Term) -> Sequence[Fraction | float]:
        return _divergences(part, [order for order, _ in self.curve])


def used_note(limits: Iterable[Limit]) -> str:
    """Say how the share used and the ε beside it go together; empty where they are one number.

    >>> used_note([limit_of({"epsilon": 1.0})])
    ''
    """
    named = ", or of ".join(dict.fromkeys(each.used_of for each in limits if each.used_of))
    if not named:
        return ""
    return (
        f"“Used” is the share of {named}, which adds up from release to release. The ε at δ that "
        "follows from it does not add up, so its share of the limit's ε is another number."
    )


def share_text(share: float) -> str:
    """Return a share of a budget in words, rounded up."""
    return numbers.percent(share) if share <= 1 else "more than 100 %"


def limit_of(stated: Mapping[str, Any]) -> Limit:
    """Return the limit that some keys state.

    >>> print(limit_of({"epsilon": 1.0, "delta": 1e-6}))
    epsilon = 1.0, delta = 1e-06 (renyi)

    Raises:
        InputError: if they state none, or a value is wrong.
    """
    if stated.keys().isdisjoint(("epsilon", "rho", "curve")):
        toml_tables.table("limit", stated, {"epsilon", "delta", "rho", "curve", "kind", "slack"})
        raise InputError("limit is missing; give one such as 'epsilon = 1, delta = 1e-6'.")
    usual = "renyi" if "delta" in stated else "pure"
    kind = next((key for key in ("rho", "curve") if key in stated), usual)
    return Limit.parse({"kind": kind, **stated})


@lru_cache(maxsize=4096)
def _cost(limit: Limit, plan: Plan) -> Cost:
    groups = plan.by_unit()
    alone = len(groups) == 1
    each = [limit.of_group(terms(group), alone=alone) for group in undominated(groups)]
    return tuple(map(max, zip(*each, strict=True)))


def _divergences(part: Term, orders: Sequence[float]) -> Sequence[Fraction | float]:
    """Take the next orders of the grid: divergences grow with the order."""
    if part.slack:
        raise UnsupportedError(
            f"{part.invocation.describe()} has a δ of its own; give the data set a budget of the "
            "kind 'zcdp' with slack."
        )
    curve = renyi_curve(part)[np.searchsorted(ORDERS, orders)].tolist()
    return [part.count * Fraction(each) if each < math.inf else each for each in curve]


def _units(value: Fraction | float) -> int:
    return ENDLESS if value == math.inf else min(ENDLESS, math.ceil(Fraction(value) * UNIT))


def _float(units: int) -> float:
    return round_up(Fraction(units, UNIT))
