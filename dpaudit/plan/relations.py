"""Who is protected, against which change of the data, and from whom.

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
from dpaudit.base.fields import Kinded, Positive
from dpaudit.base.validate import shown
from dpaudit.plan.groups import Membership


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
