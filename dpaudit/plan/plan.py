"""Plans: what an algorithm declares before it has seen any data.

Algorithms declare one from public fields alone; accountants, ledgers and certificates read it. Its
hash is that of its JSON, so that two plans are one if and only if they say the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from dpaudit.base.displayed import Displayed
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Record
from dpaudit.base.files import digest
from dpaudit.base.validate import shown
from dpaudit.plan.invocation import Invocation
from dpaudit.plan.relations import Group, Membership, PrivacyUnit, Relation, TrustModel


@dataclass(frozen=True)
class Plan(Displayed, Record):
    """All invocations that an algorithm may make, from public configuration alone.

    Attributes:
        invocations: in the order of the algorithm.
    """

    invocations: tuple[Invocation, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.invocations:
            raise InputError("plan has no invocation; it must declare at least one.")
        for invocation in self.invocations:
            invocation.require_declared()
        relations = sorted({str(invocation.relation.to_dict()) for invocation in self.invocations})
        if len(relations) > 1:
            raise InputError(
                f"plan mixes the relations {' and '.join(relations)}; a guarantee is for one "
                "relation, so convert the sensitivities to a common one."
            )
        labels = [invocation.at for invocation in self.invocations if invocation.at]
        if len(set(labels)) < len(labels):
            twice = Counter(labels).most_common(1)[0][0]
            raise InputError(f"plan has two invocations at {shown(twice)}; labels must be unique.")
        names: dict[str, Group] = {}
        for group in {i.group: None for i in self.invocations if i.group is not None}:
            if names.setdefault(group.name, group) != group:
                raise InputError(
                    f"plan has the group {shown(group.name)} by position and by value; state "
                    "one of them."
                )
        units = sorted({str(invocation.unit) for invocation in self.invocations})
        if len(units) > 1:
            raise InputError(f"plan mixes the units {' and '.join(units)}; declare one of them.")

    @classmethod
    def of(cls, *invocations: Invocation) -> Plan:
        """A plan of these invocations; those without a label are numbered."""
        return cls(tuple(_labelled(invocations)))

    @classmethod
    def dp_sgd(cls, **settings: Any) -> Plan:
        """The plan of a DP-SGD training.

        Args:
            **settings: those of :func:`dpaudit.plan.dp_sgd.dp_sgd_invocations`.

        Raises:
            InputError: if a setting is wrong, missing or contradicts another.
            UnsupportedError: if nothing is proved for that batching under that relation.

        >>> Plan.dp_sgd(noise_multiplier=1.1, sample_rate=0.01, epochs=2).invocations[0].count
        200
        """
        from dpaudit.plan.dp_sgd import dp_sgd_invocations  # which no plan that is read needs

        return cls.of(*dp_sgd_invocations(**settings))

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
        """The invocations that one unit's change can touch, for each kind of unit that there is.

        Without groups all of them; else those of one group, and those without one. Where the unit's
        own value decides its group, a change of that value touches two groups. Of such groups that
        are alike two stand for all.
        """
        touched, moved = self._groups
        if not touched and not moved:
            return (self.invocations,)
        everyone = [n for n, each in enumerate(self.invocations) if each.group is None]
        pairs = [[*one, *other] for one, other in combinations(moved, 2)]
        pairs = pairs or [list(one) for one in moved]
        return tuple(
            tuple(self.invocations[place] for place in sorted((*everyone, *own)))
            for own in (*touched, *pairs)
        )

    @property
    def kinds_of_unit(self) -> int:
        """How many sets of invocations :meth:`by_unit` gives; told before any is made."""
        touched, moved = self._groups
        return len(touched) + max(math.comb(len(moved), 2), len(moved) == 1) or 1

    @cached_property
    def _groups(self) -> tuple[list[list[int]], list[list[int]]]:
        """The places of each group's invocations: of those that a unit stays in, and of others."""
        groups: dict[Group, list[int]] = {}
        for place, invocation in enumerate(self.invocations):
            if invocation.group is not None:
                groups.setdefault(invocation.group, []).append(place)
        # Who leaves a group of sums for one of other mechanisms moves both, so all of them count.
        moving = any(each.moves_unit for each in self.invocations)
        by_value = {each for each in groups if moving and each.membership is Membership.VALUE}
        touched = [own for group, own in groups.items() if group not in by_value]
        moved = [own for group, own in groups.items() if group in by_value]
        return touched, list(self._two_of_each(moved))

    def _two_of_each(self, groups: Iterable[list[int]]) -> Iterator[list[int]]:
        """Keep the first two of groups that differ in name alone."""
        seen: Counter[tuple[Invocation, ...]] = Counter()
        for group in groups:
            kind = tuple(replace(self.invocations[place], group=None, at="") for place in group)
            seen[kind] += 1
            if seen[kind] <= 2:
                yield group

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of the plan."""
        return digest(self.to_dict())


def _labelled(invocations: Iterable[Invocation]) -> Iterable[Invocation]:
    for number, invocation in enumerate(invocations, start=1):
        yield invocation if invocation.at else replace(invocation, at=f"invocation {number}")
