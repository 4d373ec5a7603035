"""Whether units are sampled as rarely as declared, by what a change of one of them moves.

A unit whose values change moves those releases in whose samples it is. By the declaration that is a
binomial number of them, whatever the unit is, and however often the code runs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from scipy.special import bdtrc

from dpaudit.auditing.replaying.replay import ReplayReport
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.plan import Plan

UNITS = 4
"""So many units are followed through further runs."""
MOST_RUNS = 30
SURE = 1e-9
"""The probability that a unit is in all samples of all runs, at which there are enough of them."""
VISIBLE = 1e-6
"""A smaller part of the sensitivity does not count as a change."""


@dataclass(frozen=True)
class _Seen:
    """One unit, in ``moved`` of ``made`` samples."""

    at: str
    source: str
    moved: int
    made: int
    rate: float
    one_run: bool
    others: int
    """So many further labels of this rate are counted too."""

    @property
    def p_value(self) -> float:
        """Of the binomial law; within one run of that law given that the unit is seen at all."""
        tail = float(bdtrc(self.moved - 1, self.made, self.rate)) if self.moved else 1.0
        seen = -math.expm1(self.made * math.log1p(-self.rate)) if self.one_run else 1.0
        return min(1.0, tail / seen)


@dataclass
class Samples:
    """Counts of how often units were seen in samples.

    Attributes:
        rates: the declared probability to be in a sample, by label of the invocation.
    """

    rates: dict[str, float]
    _seen: list[_Seen] = field(default_factory=list)

    @classmethod
    def of(cls, plan: Plan) -> Samples:
        """For the sampled invocations of a plan."""
        drawn = {each.at: each.sampling for each in plan.invocations if each.sampling is not None}
        return cls({at: one.touching for at, one in drawn.items() if one.touching < 1})

    @property
    def followed(self) -> int:
        """In how many samples a unit could have been that was followed through further runs.

        None where it could not have been in one of some label, as that is not tested then.
        """
        made = Counter[str]()
        for each in self._seen:
            if not each.one_run and not each.others:
                made[each.at] += each.made
        return made.total() if all(made[at] for at in self.rates) else 0

    def first(self, report: ReplayReport) -> int:
        """Count the run in which a unit was seen first.

        Returns:
            How many further runs would show a unit that is in every sample of some rate; 0 if it
            was in none.
        """
        counts = [each for each in self._counted([report], one_run=True) if each.moved]
        self._seen += counts
        needed = [math.log(SURE) / (each.made * math.log(each.rate)) for each in counts]
        return min(MOST_RUNS, math.ceil(min(needed, default=0)))

    def further(self, reports: list[ReplayReport]) -> None:
        """Count further runs with one unit, whose choice depends on none of them."""
        self._seen += self._counted(reports, one_run=False)

    def _counted(self, reports: list[ReplayReport], *, one_run: bool) -> list[_Seen]:
        made, moved, places = Counter[str](), Counter[str](), dict[str, str]()
        for each in (each for report in reports for each in report.comparisons):
            made[each.at] += 1
            moved[each.at] += each.observed > VISIBLE * each.declared
            places[each.at] = each.source
        alike: dict[float, list[str]] = {}
        for at, rate in self.rates.items():
            if made[at]:
                alike.setdefault(rate, []).append(at)
        return [
            _Seen(
                labels[0],
                places[labels[0]],
                sum(moved[at] for at in labels),
                sum(made[at] for at in labels),
                rate,
                one_run,
                len(labels) - 1,
            )
            for rate, each in alike.items()
            for labels in ([[at] for at in each] + ([each] if len(each) > 1 else []))
        ]

    def findings(self, error_rate: float) -> list[Finding]:
        """Units that are in samples more often than declared; all together at the error rate."""
        worst: dict[str, _Seen] = {}
        for each in sorted(self._seen, key=lambda each: each.p_value):
            if each.p_value <= error_rate / len(self._seen):
                worst.setdefault(each.at, each)
        return [_too_often(each) for each in worst.values()]


def _too_often(seen: _Seen) -> Finding:
    where = "of one run" if seen.one_run else "of runs with different seeds"
    facts = {"moved": seen.moved, "made": seen.made, "source": seen.source, "rate": seen.rate}
    label = repr(seen.at) + (f" and {seen.others} other labels" if seen.others else "")
    found = FindingTable(__name__)
    return found("sampled-too-often", seen.at, label=label, where=where, **facts)
