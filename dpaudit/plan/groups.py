"""Disjoint groups of units, whose invocations compose in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from dpaudit.base import validate
from dpaudit.base.fields import Checked, plain
from dpaudit.base.toml_tables import table


class Membership(StrEnum):
    """What decides to which group a unit belongs."""

    POSITION = "position"
    """A public fact that no neighbouring data set changes, such as a round or a device."""
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
