"""What the book keeps: data sets, budgets on them, releases, people and tokens.

Each is a record with a table of its own, and stands in the lines of the log as it is written there.
A field that is added later is left out where it has no value, so that old lines keep their hashes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeAlias

from dpaudit.base import validate
from dpaudit.base.errors import BudgetExceededError, InputError
from dpaudit.base.fields import Record
from dpaudit.base.validate import shown
from dpaudit.book.limits import EVER, PERIODS, Cost, Limit, checked_window, days_of
from dpaudit.plan import AddRemove, Plan, PrivacyUnit, Relation, TrustModel, ZeroOut

PARTS = 10**12
"""Of the limit of one unit: sums of them are exact, and fit the integers of any database."""

NOTHING = "nothing"
"""What ran of a release, where that is known to be nothing; else a hash of a plan."""
RELEASED_NOTHING = "released nothing"
"""The word for a release that ended, and of which it is known that nothing ran."""


class Status(StrEnum):
    """The state of a release."""

    REQUESTED = "requested"
    """It is charged, and waits for approval; no ledger may be opened for it."""
    RESERVED = "reserved"
    """It is charged; nothing ran."""
    RUNNING = "running"
    """A ledger was opened for it, which no second one can be."""
    CLOSED = "closed"
    """It ran, and nothing more of it may."""
    ABANDONED = "abandoned"
    """It ended early, and nothing more of it may run."""
    DENIED = "denied"
    """It was requested and not approved; nothing ran, and its charge was given back."""

    @property
    def word(self) -> str:
        """What commands and pages call it, if anything ran."""
        return "completed" if self is Status.CLOSED else str(self)

    @property
    def ended(self) -> bool:
        """Whether nothing more may run."""
        return self in (Status.CLOSED, Status.ABANDONED, Status.DENIED)


def checked_text(**field: Any) -> str:
    """Return a name or a remark of people: printable, of 1 to 200 characters.

    Raises:
        InputError: if it is something else.
    """
    text = validate.text(**field)
    if len(text) > 200 or not text.isprintable():
        raise InputError(
            f"{next(iter(field))} is {shown(text)}; it must have at most 200 printable characters."
        )
    return text


Label: TypeAlias = Annotated[str, checked_text]


class TableRecord(Record):
    """A record with a table of its own."""

    kind: ClassVar[str]

    @property
    def key(self) -> str:
        """What it is known by: its id, or its name."""
        return str(getattr(self, "id", None) or getattr(self, "name", ""))


@dataclass(frozen=True)
class DataSet(TableRecord):
    """A data set, and in which sense it is protected.

    Attributes:
        name: unique in the book.
        unit: who is protected.
        relation: against which change.
        trust: who sees raw data, at most.
        per: the calendar period whose data of one unit are protected; empty for all of its data.
        public: whether anybody may see what was released; None where nobody ever said so.
    """

    kind: ClassVar[str] = "dataset"
    left_out: ClassVar[frozenset[str]] = frozenset({"public"})
    name: Label
    unit: PrivacyUnit
    relation: Relation
    trust: TrustModel = TrustModel.CENTRAL
    per: str = ""
    public: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per and self.per not in PERIODS:
            raise InputError(f"per is {shown(self.per)}; it must be one of {', '.join(PERIODS)}.")

    @property
    def protects(self) -> str:
        """Who is protected, in words."""
        scope = f", per calendar {self.per}" if self.per else ""
        return f"one {self.unit}{scope} ({self.relation}, {self.trust})"

    def require(self, plan: Plan) -> None:
        """Refuse a plan that protects something else, or trusts more.

        Raises:
            InputError: naming what differs.
        """
        for name in ("unit", "relation"):
            own, other = getattr(self, name), getattr(plan, name)
            if own != other:
                raise InputError(
                    f"the plan protects the {name} {other}; data set {shown(self.name)} has the "
                    f"{name} {own}."
                )
        if TrustModel.weakest([self.trust, plan.trust]) is not self.trust:
            raise InputError(
                f"the plan protects under {plan.trust} trust; data set {shown(self.name)} requires "
                f"{self.trust} trust."
            )


@dataclass(frozen=True)
class BudgetRecord(TableRecord):
    """A budget: what may be released about a data set.

    Attributes:
        name: unique in the book.
        dataset: name of the data set.
        limit: on all that is released within the window.
        window: ``ever``, a calendar period, or ``N days``, which roll.
        retired: why it no longer counts; empty while it does.
        approval: whether a second person must approve each release; None is no.
    """

    kind: ClassVar[str] = "budget"
    left_out: ClassVar[frozenset[str]] = frozenset({"approval"})
    name: Label
    dataset: Label
    limit: Limit
    window: Annotated[str, checked_window] = EVER
    retired: str = ""
    approval: bool | None = None

    def require_for(self, dataset: DataSet) -> None:
        """Refuse periods that are not those of the data set: they would promise something else.

        Raises:
            InputError: saying which is right.
        """
        calendar = self.window != EVER and not days_of(self.window)
        if calendar and dataset.per not in ("", self.window):
            raise InputError(
                f"window is {self.window!r}; data set {shown(dataset.name)} protects a unit per "
                f"{dataset.per}, so window must be {dataset.per!r}, {EVER!r} or a number of days."
            )


@dataclass(frozen=True)
class Release(TableRecord):
    """A use of a data set.

    Attributes:
        id: given by the book.
        request: given by who asked; the same request is charged once.
        dataset: name of the data set.
        plan: hash of the plan.
        by: who asked.
        approved: who approved; of a release that had to be approved, the second person.
        purpose: what it is for.
        period: the days whose data are read, as ``FROM..TO`` or ``2026-W47``; empty for the day on
            which it was reserved.
        made: when it was reserved, ISO 8601 in UTC.
        charged: by the name of each budget the buckets and the cost.
        status: how far it has come.
        journal: identifier of its ledger's journal, if it has one; with ``lines`` and ``head``,
            how far that is known.
        ran: hash of the plan that really ran, where the journal proved that it was less;
            ``nothing`` where nothing ran.
        certificate: digest of its certificate.
    """

    kind: ClassVar[str] = "release"
    id: str
    request: str
    dataset: str
    plan: str
    by: str
    approved: str
    purpose: str
    period: str
    made: str
    charged: dict[str, tuple[list[str], list[int]]] = field(default_factory=dict)
    status: Status = Status.RESERVED
    journal: str = ""
    lines: int = 0
    head: str = ""
    ran: str = ""
    certificate: str = ""

    @property
    def word(self) -> str:
        """What commands, pages and reports call its state."""
        idle = self.ran == NOTHING and self.status is not Status.DENIED
        return RELEASED_NOTHING if idle else self.status.word

    @property
    def withdrawn(self) -> bool:
        """Whether it ended before any ledger was begun for it, and gave its whole charge back."""
        return self.ran == NOTHING and not self.journal

    def cost(self, budget: str) -> Cost:
        """Return what it was charged to a budget, in each of its buckets."""
        return tuple(self.charged[budget][1])

    def whole_charge(self) -> dict[str, list[int]]:
        """Return what it was charged to every budget, for a line that gives all of it back."""
        return {name: list(self.cost(name)) for name in self.charged}


@dataclass(frozen=True)
class People(TableRecord):
    """A budget that each unit of a data set has for itself, under the key that names them.

    Attributes:
        name: unique in the book.
        dataset: name of the data set.
        limit: on all that one unit takes part in.
        table: number of the table that has a row for each unit.
        check: tells the right key from others.
        charges: how often units were charged.
        request: of the newest charge, which may be asked for again.
        plan: hash of its plan.
    """

    kind: ClassVar[str] = "people"
    name: Label
    dataset: Label
    limit: Limit
    table: int
    check: str
    charges: int = 0
    request: str = ""
    plan: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit.any_will_do:
            raise InputError(
                f"limit is of the kind {self.limit.kind!r}; the limit of each unit must be rho, "
                "zcdp, curve or pure."
            )

    def require_for(self, dataset: DataSet) -> None:
        """Refuse a relation for which there is no individual filter.

        Raises:
            InputError: saying which is right.
        """
        if not isinstance(dataset.relation, AddRemove | ZeroOut):
            raise InputError(
                f"data set {shown(dataset.name)} has the relation {dataset.relation}; budgets for "
                "each unit need add-remove or zero-out."
            )

    def cost(self, plan: Plan) -> Cost:
        """Return what a plan takes of each unit, in parts of the limit, rounded up.

        Raises:
            UnsupportedError: if the limit cannot count it.
            BudgetExceededError: if it is more than all of the limit, so that nobody has as much.
        """
        parts = []
        for own, most in zip(self.limit.cost(plan), self.limit.admitted, strict=True):
            if own > most:
                raise BudgetExceededError(
                    f"the plan costs more than all of {shown(self.name)} ({self.limit}); nobody is "
                    "charged, and nothing may run."
                )
            parts.append(-(-own * PARTS // most) if most else 0)
        return tuple(parts)


class Role(StrEnum):
    """The right of a token's holder; each may do all that those before it may."""

    VIEWER = "viewer"
    """See everything, and compute."""
    ANALYST = "analyst"
    """Reserve, and close what one reserved."""
    APPROVER = "approver"
    """Approve and deny what others asked for, and close it."""

    def may(self, least: Role) -> bool:
        """Tell whether this is that role or one above it."""
        order = list(Role)
        return order.index(self) >= order.index(least)


@dataclass(frozen=True)
class Token(TableRecord):
    """A token, by which a server knows somebody.

    Attributes:
        name: whose it is.
        role: what its holder may do.
        hash: SHA-256 of its text, of 256 random bits, which is kept nowhere.
        until: the last day on which it holds; empty for no end.
        revoked: whether it holds no longer.
    """

    kind: ClassVar[str] = "token"
    name: Label
    role: Role
    hash: str
    until: str = ""
    revoked: bool = False
