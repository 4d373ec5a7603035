"""Whom a plan protects: units, neighbours, trust, disjoint groups and bounded contributions.

Invocations of disjoint groups of units compose in parallel. How much one unit may add to a released
sum is enforced by the ledger's bounded queries.

A relation says which two data sets are neighbours. The sensitivity that an invocation declares is
always the sensitivity *under its relation*: a query whose one-row contribution has norm c has
sensitivity c under add-remove and zero-out, and up to 2c where a row becomes another: ‖v − v'‖ is
at most ‖v‖ + ‖v'‖, and v' = −v attains it. A metric ball bounds the distance of the two rows, but
not that of their contributions, which may be opposite however near the rows are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, Self

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Kinded, Positive, Record, plain
from dpaudit.base.toml_tables import table
from dpaudit.base.validate import shown


class Membership(StrEnum):
    """What decides to which group a unit belongs."""

    POSITION = "position"
    """A public fact that no neighbouring data set changes, such as a round or a device.

    It is fixed before any release of all units: whoever knows what such a release has cost could
    choose the group that costs more from there on, where groups cost unlike.
    """
    VALUE = "value"
    """The unit's own data: replaced, it can leave one group and enter another."""


@dataclass(frozen=True)
class Group(Checked):
    """A set of units, disjoint from the sets of other names.

    Attributes:
        name: of the set, unique within a plan.
        membership: what decides who is in it. Where it is the unit's own value, a unit that is
            replaced, or that moves, costs what it can do to two groups.
    """

    name: str
    membership: Membership = Membership.POSITION

    def __post_init__(self) -> None:
        validate.label(group=validate.text(group=self.name))
        super().__post_init__()

    def __str__(self) -> str:
        return self.name

    def to_dict(self) -> str | dict[str, Any]:
        """The name alone where membership is by position."""
        if self.membership is Membership.POSITION:
            return self.name
        return {"name": self.name, "membership": plain(self.membership)}

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """A name, or what :meth:`to_dict` wrote.

        Raises:
            InputError: if a key or value is wrong.
        """
        if isinstance(record, str):
            return cls(record)
        return cls(**table("group", record, ("name", "membership")))


class TrustModel(StrEnum):
    """Who sees raw data."""

    LOCAL = "local"
    """Nobody but the user: noise is added before data leave the user."""
    CENTRAL = "central"
    """A trusted server; the adversary sees all that it publishes."""
    JOINT = "joint"
    """A trusted server; the adversary sees all outputs but those sent to the protected user."""
    CURATOR = "curator"
    """A data owner who publishes one release and keeps the data."""

    @classmethod
    def weakest(cls, models: Iterable[TrustModel]) -> TrustModel:
        """Return what several invocations promise together, each under a model of its own.

        An adversary who sees all that leaves a device sees more than one who sees the release of a
        data owner and all that is computed from it, who sees more than one who sees only what is
        published, who sees more than one to whom the protected party's own outputs are not sent.

        Example:
            >>> str(TrustModel.weakest([TrustModel.LOCAL, TrustModel.CENTRAL]))
            'central'

        Raises:
            ValueError: if there is none.
        """
        return max(models, key=(cls.LOCAL, cls.CURATOR, cls.CENTRAL, cls.JOINT).index)


@dataclass(frozen=True)
class PrivacyUnit:
    """What one protected party owns: a response, a row, a user, an agent, or a household.

    Attributes:
        name: a singular noun, 1 to 80 characters.
    """

    name: str

    def __post_init__(self) -> None:
        validate.text(unit=self.name)
        if len(self.name) > 80 or not self.name.isprintable():
            raise InputError(
                f"unit is {shown(self.name)}; it must be a noun of at most 80 printable characters."
            )

    def __str__(self) -> str:
        return self.name

    @property
    def is_row(self) -> bool:
        """Whether it is one row of the data, and not somebody who may own several."""
        rows = "example", "row", "record", "sample", "instance", "item", "observation", "data point"
        return self.name.strip().casefold() in rows

    def to_dict(self) -> str:
        """The name alone."""
        return self.name

    @classmethod
    def from_dict(cls, name: str) -> Self:
        """The unit of that name."""
        return cls(name)


@dataclass(frozen=True)
class Relation(Kinded):
    """A neighbouring relation; the subclasses are the relations that dpaudit knows.

    Attributes:
        contribution_factor: sensitivity of a sum under this relation, in units of the largest norm
            that one record contributes.
    """

    family: ClassVar[str] = "relation"
    contribution_factor: ClassVar[float] = 1.0
    replaces: ClassVar[bool] = False
    """Whether the unit is present, with other data, in the neighbour."""

    def __str__(self) -> str:
        return self.kind

    def moves_between(self, membership: Membership, *, summed: bool) -> bool:
        """Tell whether a unit can be in one group in one data set, and in another in its neighbour.

        Args:
            membership: what decides who is in a group.
            summed: whether who adds zero is as good as absent there, as in a sum.
        """
        return membership is Membership.VALUE and self.replaces

    def to_dict(self) -> Any:
        """The name alone, or a mapping where the relation has parameters."""
        return super().to_dict() if fields(self) else self.kind


@dataclass(frozen=True)
class AddRemove(Relation):
    """One unit's data are present in one data set and absent from the other."""

    kind: ClassVar[str] = "add-remove"


@dataclass(frozen=True)
class ReplaceOne(Relation):
    """One unit's data are replaced by other data; the number of units is public."""

    kind: ClassVar[str] = "replace-one"
    contribution_factor: ClassVar[float] = 2.0
    replaces: ClassVar[bool] = True


@dataclass(frozen=True)
class ZeroOut(Relation):
    """One unit's contribution becomes zero; the number of units and all weights are public.

    In a sum a zeroed unit is an absent one. Elsewhere it is not: who counts the units sees it.
    """

    kind: ClassVar[str] = "zero-out"

    def moves_between(self, membership: Membership, *, summed: bool) -> bool:
        """Zero is a value too, which decides on a group; in a sum it adds nothing there."""
        return membership is Membership.VALUE and not summed


@dataclass(frozen=True)
class MetricBall(Relation):
    """One unit's data move by at most ``radius`` in Euclidean norm.

    Attributes:
        radius: largest Euclidean distance of neighbours, in the data's own units.
    """

    kind: ClassVar[str] = "metric-ball"
    contribution_factor: ClassVar[float] = 2.0
    replaces: ClassVar[bool] = True
    radius: Positive = 1.0


_LEAST = 1e-200
"""Beyond it, and beyond one over it, squares of floats are no numbers."""


@dataclass(frozen=True)
class Contribution(Record):
    """A bound on all that one unit adds to a sum, whatever its data are.

    Attributes:
        bound: largest norm of a unit's part, in the norm of the mechanism: L1 for Laplace noise, L2
            for Gaussian noise. A larger part is scaled down to it.
        rows: how many rows of a unit count, the first ones; None for all of them.
    """

    bound: Positive
    rows: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _LEAST <= self.bound <= 1 / _LEAST:
            raise InputError(
                f"bound is {self.bound:g}; it must be from {_LEAST:g} to {1 / _LEAST:g}."
            )
