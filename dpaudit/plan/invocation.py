"""An invocation: one declared use of a mechanism.

A plan consists of them, and each release of a ledger is one. A field that contradicts another, or
that the mechanism's own clip shows to be too small, is refused here and nowhere later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, NonNegative, Record
from dpaudit.base.validate import label, shown
from dpaudit.mechanisms import Mechanism, Norm
from dpaudit.plan.relations import (
    AddRemove,
    Contribution,
    Group,
    MetricBall,
    PrivacyUnit,
    Relation,
    TrustModel,
)
from dpaudit.plan.sampling import (
    CyclicPoissonSampling,
    FixedSizeSampling,
    RandomAllocation,
    Sampling,
)


@dataclass(frozen=True)
class Invocation(Record):
    """One declared use of a mechanism.

    Attributes:
        mechanism: what adds the noise.
        sensitivity: largest distance, in the mechanism's norm, of the values of neighbours *under
            the relation*.
        unit: who is protected.
        relation: which data sets are neighbours.
        trust: who sees raw data.
        count: at how many releases, at most, neighbours differ. Where a unit may be replaced by one
            that touches other releases, those of both count.
        total: how many releases there are over all units; ``count`` where not given.
        group: a set of units, disjoint from the sets of other names, that alone is touched
            (different groups compose in parallel), given as a :class:`Group` or, where a public
            position decides who is in it, by its name; None where every unit is touched.
        sampling: how the participating units are drawn, if they are. It amplifies privacy only
            while the draw stays secret, which under local trust it does not: the adversary sees
            whether anything left a device.
        at: label of the place in the algorithm, unique within a plan.
        contribution: where given, the release is a sum of bounded parts, one of each unit, which
            the ledger bounds by itself; the sensitivity then holds whatever the data are.

    Raises:
        InputError: if a field is invalid, or sampling or add-remove is declared under local trust,
            which hides no absence.
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"group", "sampling", "contribution"})
    mechanism: Mechanism
    sensitivity: NonNegative
    unit: PrivacyUnit
    relation: Relation
    trust: TrustModel
    count: Count = 1
    total: Count | None = None
    group: Group | None = None
    sampling: Sampling | None = None
    at: Annotated[str, label] = ""
    contribution: Contribution | None = None

    def __post_init__(self) -> None:
        group: object = self.group
        if isinstance(group, str):
            self._set("group", Group(group))
        super().__post_init__()
        if self.trust is TrustModel.LOCAL:
            if self.sampling is not None:
                raise _seen(f"sampling is {self.sampling.kind!r}", "leave sampling out")
            if isinstance(self.relation, AddRemove):
                raise _seen("relation is 'add-remove'", "declare replace-one")
        if self.mechanism.shuffled_reports is not None:
            self._require_shuffled(*self.mechanism.shuffled_reports)
        self._require_bounded()
        self.require_covered(1)
        if self.total is None:
            self._set("total", self.count)
        if self.releases < self.count:
            raise InputError(f"total is {self.total}; it must be at least the count, {self.count}.")

    @classmethod
    def bounded(
        cls,
        mechanism: Mechanism,
        contribution: Contribution,
        unit: PrivacyUnit,
        relation: Relation,
        trust: TrustModel,
        **facts: Any,
    ) -> Invocation:
        """A query on bounded parts, whose sensitivity follows from the bound and the relation.

        Args:
            mechanism: of L1 or L2 norm, or the exponential mechanism for a quantile.
            contribution: the bound of each unit's part.
            unit: who is protected.
            relation: which data sets are neighbours.
            trust: who sees raw data.
            **facts: further fields, such as ``count`` and ``at``.

        Raises:
            InputError: if a field is invalid.
        """
        sensitivity = relation.contribution_factor * contribution.bound
        if mechanism.norm is Norm.CHANGE:  # its own utility sensitivity says how far units move it
            sensitivity = 1.0
        return cls(
            mechanism, sensitivity, unit, relation, trust, contribution=contribution, **facts
        )

    def _require_bounded(self) -> None:
        if isinstance(self.sampling, RandomAllocation) and self.count % self.sampling.steps:
            raise InputError(
                f"count is {self.count}; with random allocation it must be a multiple of the "
                f"{self.sampling.steps} steps of an epoch."
            )
        if isinstance(self.sampling, CyclicPoissonSampling):
            self._require_cyclic(self.sampling.groups)
        if self.contribution is not None and getattr(self.sampling, "rows", None):
            raise InputError(
                "sampling has rows, each of which is drawn by itself; declare the "
                f"sensitivity of one row, and no contribution of the whole {self.unit}."
            )
        if self.contribution is None:
            return
        if self.mechanism.norm is Norm.CHANGE:
            if self.sensitivity < 1:
                raise InputError(
                    f"sensitivity is {self.sensitivity:g}; one unit's rows can change the value of "
                    f"{self.describe()}, so declare 1."
                )
            return
        factor = self.relation.contribution_factor
        if self.sensitivity < factor * self.contribution.bound:
            raise InputError(
                f"sensitivity is {self.sensitivity:g}; parts bounded by "
                f"{self.contribution.bound:g} make it {factor * self.contribution.bound:g} under "
                f"{self.relation}."
            )

    def _require_shuffled(self, reports: int, local: str) -> None:
        """Refuse what a shuffle does not hide."""
        size = getattr(self.sampling, "size", None)
        fixed = isinstance(self.sampling, FixedSizeSampling) and size == reports
        if isinstance(self.relation, AddRemove):
            said, instead = "relation is 'add-remove'", "declare replace-one or zero-out"
        elif self.trust is TrustModel.LOCAL:
            said, instead = "trust is 'local'", f"declare {local}, or trust central"
        elif self.sampling is not None and not fixed:
            said = f"sampling is {self.sampling.kind!r}"
            instead = f"declare fixed-size samples of {reports}"
        else:
            return
        raise InputError(
            f"{said}; the mechanism shuffled does not hide how many users report, nor any report "
            f"from the shuffler, so {instead}."
        )

    def _require_cyclic(self, groups: int) -> None:
        """Refuse a stream that has other participations than its sampling leaves."""
        stream = self.mechanism.schedule
        if stream is None:
            raise InputError(
                f"sampling is 'cyclic-poisson'; {self.mechanism.kind} has no steps that groups "
                "take in turn, so declare poisson."
            )
        rounds = -(-stream.steps // groups)
        if stream.participations < rounds or stream.min_separation > groups:
            raise InputError(
                f"participations is {stream.participations} and min_separation "
                f"{stream.min_separation}; with {groups} groups that take turns in "
                f"{stream.steps} steps they must be {rounds} and {groups}."
            )

    def require_declared(self) -> None:
        """Refuse a sensitivity that the contribution of its sample cannot have, or runs of others.

        It is asked of what is declared, in a plan; what is counted in its place may state a longer
        distance, as of a unit that is replaced by one with other steps.

        Raises:
            InputError: if the sensitivity is above twice the contribution of units replaced, or a
                selection is sampled, or made of runs that protect another unit.
        """
        if self.mechanism.protects not in (None, (self.unit, self.relation)):
            raise InputError(
                f"{self.describe()} selects among runs that protect another unit, or under "
                "another relation; declare the unit and relation of the runs."
            )
        if self.mechanism.protects is not None and self.sampling is not None:
            raise InputError(
                f"{self.describe()} is sampled as a whole, which no theorem covers; declare the "
                "sampling of its run."
            )
        drawn = getattr(self.sampling, "contribution", None)
        if drawn is not None and self.relation.replaces and self.sensitivity > 2 * drawn:
            raise InputError(
                f"sensitivity is {self.sensitivity:g}; a contribution of {drawn:g} in the sampling "
                f"makes it at most {2 * drawn:g} under {self.relation}, so declare the larger "
                "contribution."
            )

    def require_covered(self, entries: int) -> None:
        """Refuse a local value of that many entries whose owner can move it by more than declared.

        A local value is its owner's alone, who may change every entry of it, to wherever the
        mechanism's own clip and the radius of the relation allow.

        Raises:
            InputError: if the declared sensitivity is below that.
        """
        if self.trust is not TrustModel.LOCAL:
            return
        factor = self.relation.contribution_factor
        moved = self.mechanism.implied_sensitivity(factor, entries)
        if moved is not None and isinstance(self.relation, MetricBall):
            wide = math.sqrt(entries) if self.mechanism.norm is Norm.L1 else 1.0
            moved = min(moved, self.relation.radius * wide)
        if moved is not None and moved > self.sensitivity * (1 + 1e-9):
            raise InputError(
                f"sensitivity is {self.sensitivity:g}; under local trust a value of {entries} "
                f"entries moves by up to {moved:g} in {self.mechanism.norm} within the clip of "
                f"{self.describe()}, so declare that sensitivity."
            )

    @property
    def moves_unit(self) -> bool:
        """Whether a unit can leave its group, as seen here, and be in another in a neighbour."""
        group, summed = self.group, self.mechanism.zeroed_is_absent
        return group is not None and self.relation.moves_between(group.membership, summed=summed)

    @property
    def inclusion(self) -> float:
        """The probability of one unit, or row, to take part in a release; 1 where nobody says."""
        return 1.0 if self.sampling is None else self.sampling.inclusion

    @property
    def releases(self) -> int:
        """``total`` as a number."""
        return self.count if self.total is None else self.total

    def describe(self) -> str:
        """Short text for errors and tables."""
        place = f" at {shown(self.at)}" if self.at else ""
        return f"{self.mechanism.kind}{place}"


def _seen(said: str, instead: str) -> InputError:
    return InputError(
        f"{said} under local trust, where the adversary sees who does not send anything; "
        f"{instead}, or declare central trust if a server hides who took part."
    )
