"""An invocation: one declared use of a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpaudit import validate
from dpaudit.errors import InputError
from dpaudit.mechanisms import Mechanism
from dpaudit.plan.relations import PrivacyUnit, Relation, TrustModel
from dpaudit.plan.sampling import Sampling

__all__ = ["Invocation"]

_KINDS = {"unit": PrivacyUnit, "relation": Relation, "trust": TrustModel, "sampling": Sampling}


@dataclass(frozen=True)
class Invocation:
    """One declared use of a mechanism.

    Attributes:
        mechanism: what adds the noise.
        sensitivity: largest distance, in the mechanism's norm, of the values of neighbours *under
            the relation*.
        unit: who is protected.
        relation: which data sets are neighbours.
        trust: who sees raw data.
        count: how often, at most, any one unit is touched.
        total: how many releases there are over all units; ``count`` where not given.
        group: name of a set of units, disjoint from the sets of other names, that alone is touched
            (different groups compose in parallel); None where every unit is touched.
        sampling: how the participating units are drawn, if they are. It amplifies privacy only
            while the draw stays secret, which under local trust it does not: the adversary sees
            whether anything left a device.
        at: label of the place in the algorithm, unique within a plan.

    Raises:
        InputError: if a field is invalid, or sampling is declared under local trust.
    """

    mechanism: Mechanism
    sensitivity: float
    unit: PrivacyUnit
    relation: Relation
    trust: TrustModel
    count: int = 1
    total: int | None = None
    group: str | None = None
    sampling: Sampling | None = None
    at: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InputError(f"mechanism is {self.mechanism!r}; it must be a Mechanism.")
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kind) and not (name == "sampling" and value is None):
                raise InputError(f"{name} is {value!r:.60}; it must be a {kind.__name__}.")
        if self.sampling is not None and self.trust is TrustModel.LOCAL:
            raise InputError(
                f"sampling is {self.sampling.scheme!r} under local trust, where the adversary sees "
                "who sends nothing; leave sampling out, or name the server that hides who took "
                "part with the trust model central."
            )
        sensitivity = validate.non_negative(sensitivity=self.sensitivity)
        object.__setattr__(self, "sensitivity", sensitivity)
        count = validate.integer_at_least(1, count=self.count)
        total = count if self.total is None else validate.integer_at_least(1, total=self.total)
        if total < count:
            raise InputError(f"total is {total}; it must be at least the count, {count}.")
        object.__setattr__(self, "total", total)
        if self.group is not None:
            validate.text(group=self.group)
        if not isinstance(self.at, str):
            raise InputError(f"at is {self.at!r}; it must be a text.")

    @property
    def releases(self) -> int:
        """``total`` as a number."""
        return self.count if self.total is None else self.total

    def describe(self) -> str:
        """Short text for errors and tables."""
        place = f" at {self.at!r}" if self.at else ""
        return f"{self.mechanism.kind}{place}"

    def to_dict(self) -> dict[str, Any]:
        """A flat JSON record."""
        record: dict[str, Any] = {
            "mechanism": self.mechanism.to_dict(),
            "sensitivity": self.sensitivity,
            "unit": str(self.unit),
            "relation": self.relation.to_dict(),
            "trust": str(self.trust),
            "count": self.count,
            "total": self.releases,
            "at": self.at,
        }
        if self.group is not None:
            record["group"] = self.group
        if self.sampling is not None:
            record["sampling"] = self.sampling.to_dict()
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Invocation:
        """The invocation that :meth:`to_dict` wrote.

        Raises:
            InputError: if a field is unknown, missing or invalid.
        """
        given = dict(record)
        needed = {"mechanism", "sensitivity", "unit", "relation", "trust"}
        optional = {"count", "total", "at", "group", "sampling"}
        for name in given.keys() - needed - optional:
            raise InputError(f"invocation has an unknown field {name!r}; remove it.")
        for name in sorted(needed - given.keys()):
            raise InputError(f"invocation lacks the field {name!r}, which it needs.")
        if not isinstance(given["mechanism"], Mapping):
            raise InputError(f"mechanism is {given['mechanism']!r}; it must be a table of fields.")
        given["mechanism"] = Mechanism.from_dict(given["mechanism"])
        given["unit"] = PrivacyUnit(given["unit"])
        given["relation"] = Relation.parse(given["relation"])
        given["trust"] = TrustModel.parse(given["trust"])
        if given.get("sampling") is not None:
            given["sampling"] = Sampling.parse(given["sampling"])
        return cls(**given)
