"""Who is protected, against which change of the data, and from whom.

A relation says which two data sets are neighbours. The sensitivity that an invocation declares is
always the sensitivity *under its relation*: a query whose one-row contribution has norm c has
sensitivity c under add-remove and zero-out, and up to 2c under replace-one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from dpaudit import validate
from dpaudit.errors import InputError

__all__ = [
    "AddRemove",
    "MetricBall",
    "PrivacyUnit",
    "Relation",
    "ReplaceOne",
    "TrustModel",
    "ZeroOut",
]


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
    def parse(cls, value: object) -> TrustModel:
        """The trust model of that name.

        Raises:
            InputError: if there is none of that name.
        """
        return validate.member(cls, trust=value)

    @classmethod
    def weakest(cls, models: Iterable[TrustModel]) -> TrustModel:
        """What several invocations promise together, each under a model of its own.

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
        if len(self.name) > 80:
            raise InputError(
                f"unit has {len(self.name)} characters; it must be a noun of at most 80."
            )

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Relation:
    """A neighbouring relation; the subclasses are the relations that dpaudit knows.

    Attributes:
        contribution_factor: sensitivity of a sum under this relation, in units of the largest norm
            that one record contributes.
    """

    kind: ClassVar[str] = ""
    contribution_factor: ClassVar[float] = 1.0
    _kinds: ClassVar[dict[str, type[Relation]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Relation._kinds[cls.kind] = cls

    def __str__(self) -> str:
        return self.kind

    @staticmethod
    def kinds() -> dict[str, type[Relation]]:
        """Every known relation by its kind."""
        return dict(Relation._kinds)

    def to_dict(self) -> str | dict[str, Any]:
        """The name alone, or a mapping where the relation has parameters."""
        parameters = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, **parameters} if parameters else self.kind

    @staticmethod
    def parse(value: object) -> Relation:
        """The relation of that name, or of the mapping that :meth:`to_dict` writes.

        Raises:
            InputError: if the name or a parameter is unknown.
        """
        if isinstance(value, Relation):
            return value
        parameters = dict(value) if isinstance(value, Mapping) else {"kind": value}
        kind = parameters.pop("kind", None)
        relation = Relation._kinds.get(kind) if isinstance(kind, str) else None
        if relation is None:
            names = ", ".join(sorted(Relation._kinds))
            raise InputError(f"relation is {kind!r}; it must be one of {names}.")
        try:
            return relation(**parameters)
        except TypeError:
            wanted = [field.name for field in fields(relation)]
            raise InputError(
                f"relation {kind!r} has the parameters {sorted(parameters)}; "
                f"it takes {wanted or 'none'}."
            ) from None


@dataclass(frozen=True)
class AddRemove(Relation):
    """One unit's data are present in one data set and absent from the other."""

    kind: ClassVar[str] = "add-remove"


@dataclass(frozen=True)
class ReplaceOne(Relation):
    """One unit's data are replaced by other data; the number of units is public."""

    kind: ClassVar[str] = "replace-one"
    contribution_factor: ClassVar[float] = 2.0


@dataclass(frozen=True)
class ZeroOut(Relation):
    """One unit's contribution becomes zero; the number of units and all weights are public."""

    kind: ClassVar[str] = "zero-out"


@dataclass(frozen=True)
class MetricBall(Relation):
    """One unit's data move by at most ``radius`` in Euclidean norm.

    Attributes:
        radius: largest Euclidean distance of neighbours, in the data's own units.
    """

    kind: ClassVar[str] = "metric-ball"
    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", validate.positive(radius=self.radius))
