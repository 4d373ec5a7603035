"""Invocations and plans: what an algorithm declares before it has seen any data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dpaudit import _validate
from dpaudit._files import digest
from dpaudit.errors import InputError
from dpaudit.mechanisms import Mechanism
from dpaudit.relations import PrivacyUnit, Relation, TrustModel
from dpaudit.sampling import Sampling

__all__ = ["Invocation", "Plan"]


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
        sensitivity = _validate.non_negative(sensitivity=self.sensitivity)
        object.__setattr__(self, "sensitivity", sensitivity)
        count = _validate.integer_at_least(1, count=self.count)
        total = count if self.total is None else _validate.integer_at_least(1, total=self.total)
        if total < count:
            raise InputError(f"total is {total}; it must be at least the count, {count}.")
        object.__setattr__(self, "total", total)
        if self.group is not None:
            _validate.text(group=self.group)
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


@dataclass(frozen=True)
class Plan:
    """All invocations that an algorithm may make, from public configuration alone.

    Attributes:
        invocations: in the order of the algorithm.
    """

    invocations: tuple[Invocation, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "invocations", tuple(self.invocations))
        if not self.invocations:
            raise InputError("plan has no invocation; it must declare at least one.")
        for invocation in self.invocations:
            if not isinstance(invocation, Invocation):
                raise InputError(f"plan holds {invocation!r}; it must hold invocations.")
        relations = sorted({str(invocation.relation.to_dict()) for invocation in self.invocations})
        if len(relations) > 1:
            raise InputError(
                f"plan mixes the relations {' and '.join(relations)}; one guarantee speaks of one "
                "relation, so convert the sensitivities to a common one."
            )
        labels = [invocation.at for invocation in self.invocations if invocation.at]
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            raise InputError(f"plan has two invocations at {twice!r}; labels must be unique.")
        units = sorted({str(invocation.unit) for invocation in self.invocations})
        if len(units) > 1:
            raise InputError(
                f"plan mixes the units {' and '.join(units)}; one guarantee protects one unit."
            )

    @classmethod
    def of(cls, *invocations: Invocation) -> Plan:
        """A plan of these invocations; those without a label are numbered."""
        return cls(tuple(_labelled(invocations)))

    @classmethod
    def dp_sgd(cls, **settings: Any) -> Plan:
        """The plan of a DP-SGD training; the settings are those of :func:`~dp_sgd.dp_sgd_plan`.

        >>> Plan.dp_sgd(noise_multiplier=1.1, sample_rate=0.01, epochs=2).invocations[0].count
        200
        """
        from dpaudit.dp_sgd import dp_sgd_plan

        return dp_sgd_plan(**settings)

    @property
    def unit(self) -> PrivacyUnit:
        """The unit that the guarantee protects."""
        return self.invocations[0].unit

    @property
    def relation(self) -> Relation:
        """The relation of the guarantee."""
        return self.invocations[0].relation

    @property
    def trust(self) -> TrustModel:
        """The weakest promise of all invocations: its adversary is one that each of them allows."""
        return TrustModel.weakest(invocation.trust for invocation in self.invocations)

    def by_unit(self) -> tuple[tuple[Invocation, ...], ...]:
        """The invocations that touch one unit, for each group of units that there is."""
        groups: dict[str, list[Invocation]] = {
            i.group: [] for i in self.invocations if i.group is not None
        }
        if not groups:
            return (self.invocations,)
        for invocation in self.invocations:
            touched = groups.values() if invocation.group is None else [groups[invocation.group]]
            for group in touched:
                group.append(invocation)
        return tuple(map(tuple, groups.values()))

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        return {"invocations": [invocation.to_dict() for invocation in self.invocations]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Plan:
        """The plan that :meth:`to_dict` wrote.

        Raises:
            InputError: if it is not one.
        """
        if not isinstance(record, Mapping) or set(record) != {"invocations"}:
            raise InputError("plan must be a table with the one field 'invocations'.")
        if not isinstance(record["invocations"], list):
            raise InputError("plan.invocations must be a list.")
        return cls(tuple(Invocation.from_dict(item) for item in record["invocations"]))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of the plan."""
        return digest(self.to_dict())


def _labelled(invocations: Iterable[Invocation]) -> Iterable[Invocation]:
    for number, invocation in enumerate(invocations, start=1):
        yield invocation if invocation.at else replace(invocation, at=f"invocation {number}")
