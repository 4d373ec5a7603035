"""``python -m audits.accountants``: expected values of other suites beside both ends of ours.

Settings and values are facts that stand in the tests of others, each with the name of the test and
the version or commit that has it (``settings.json``). Where a test computes its value by a formula,
the formula was computed. The page is ``reports/accountants/accountants.md``.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from audits.result_table import render
from dpaudit import AddRemove, Invocation, Plan, PoissonSampling, PrivacyUnit, TrustModel
from dpaudit.accounting import AccountantName, Interval
from dpaudit.accounting import compose as composed
from dpaudit.accounting.amplification.poisson import poisson_moments, poisson_moments_at_integers
from dpaudit.base import files
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import PrivateSelection, Runs, Sampling

HERE = Path(__file__).parent
PAGE = Path("reports/accountants/accountants.md")
ABOUT = PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL
REASONS: Mapping[str, str] = json.loads(HERE.joinpath("reasons.json").read_text("utf-8"))
"""Why a number of a test is another one, by the name of the test."""
LEFT_OUT: Mapping[str, Mapping[str, list[str]]] = json.loads(
    HERE.joinpath("left_out.json").read_text("utf-8")
)
"""By the reason the tests that are not compared, by suite and file."""


@dataclass(frozen=True)
class Row:
    """One expected value.

    Attributes:
        setting: as ``settings.json`` has it.
        ours: both ends of what is proved here.
    """

    setting: Mapping[str, Any]
    ours: Interval

    @property
    def test(self) -> str:
        """Its file and name."""
        return str(self.setting["test"])

    @property
    def expected(self) -> float:
        """The value that the test expects."""
        return float(self.setting["expected"])

    @property
    def verdict(self) -> str:
        """How the value stands to ours."""
        slack, lower = self.setting["within"], self.ours.lower
        if self.expected > self.ours.upper + slack:
            return "theirs is larger"
        if self.setting.get("one_way"):
            return "equal"  # one of two directions, of which ours is the larger
        if lower is not None and self.expected < lower - slack:
            return "theirs is too small"
        if self.expected < self.ours.upper - slack and lower is None:
            return "ours is larger"
        return "equal"

    @property
    def reason(self) -> str:
        """Why it is not equal."""
        named = self.test.partition(" (")[0].partition(".py ")[2]
        if self.setting.get("bound") == "rdp":
            named = "rdp"
        return REASONS.get(named) or REASONS.get(named.rpartition(".")[2], "")

    def cells(self) -> tuple[str, ...]:
        """A line of the page."""
        lower = "–" if self.ours.lower is None else f"{self.ours.lower:.7g}"
        asked = f"{self.setting['states']} at {self.setting['at']:g}"
        numbers = f"{self.expected:.7g}", lower, f"{self.ours.upper:.7g}"
        return (self.setting["suite"], self.test, asked, *numbers, self.verdict, self.reason)


def plan_of(setting: Mapping[str, Any]) -> Plan:
    """The plan that a setting describes."""
    plan = Plan.of(*map(_invocation, setting["plan"]))
    if "runs" not in setting:
        return plan
    selection = PrivateSelection(plan, Runs.parse(setting["runs"]))
    return Plan.of(Invocation(selection, 1.0, *ABOUT))


def _invocation(part: Mapping[str, Any]) -> Invocation:
    sampling: Sampling | None = None
    if "rate" in part:
        sampling = PoissonSampling(part["rate"])
    if "sampling" in part:
        sampling = Sampling.parse(part["sampling"])
    mechanism = Mechanism.parse(part["mechanism"])
    return Invocation(
        mechanism, part["sensitivity"], *ABOUT, count=part["count"], sampling=sampling
    )


def measured(setting: Mapping[str, Any]) -> Row:
    """Both ends of what is proved of a setting."""
    plan, at = plan_of(setting), setting["at"]
    if setting["states"] == "divergence":
        return Row(setting, Interval(None, _divergence(plan, at)))
    whole = composed(plan, AccountantName.BEST)
    return Row(setting, whole.delta(at) if setting["states"] == "delta" else whole.epsilon(at))


def _divergence(plan: Plan, order: float) -> float:
    """Of one use by its pair, of several Poisson samples by the moments that accountants add up."""
    (one,) = plan.invocations
    pair = one.mechanism.pair(one.sensitivity)
    if not isinstance(one.sampling, PoissonSampling) or one.sampling.rate == 1:
        return one.count * float(pair.renyi([order])[0])
    if order == int(order):
        (moment,) = poisson_moments_at_integers(pair, one.sampling.rate, (int(order),))
    else:
        found = poisson_moments(pair, one.sampling.rate, np.array([order]))
        moment = np.inf if found is None else found[0]
    return one.count * float(moment) / (order - 1)


def settings() -> list[dict[str, Any]]:
    """All of them."""
    found: list[dict[str, Any]] = json.loads(HERE.joinpath("settings.json").read_text("utf-8"))
    return found


def page(rows: list[Row]) -> str:
    """The page of all rows."""
    counts = Counter((row.setting["suite"], row.verdict) for row in rows)
    suites = sorted({suite for suite, _ in counts})
    verdicts = ("equal", "theirs is larger", "ours is larger", "theirs is too small")
    table = [(suite, *(counts[suite, each] for each in verdicts)) for suite in suites]
    other = [row.cells() for row in rows if row.verdict != "equal"]
    versions = {(row.setting["suite"], row.setting["version"]) for row in rows}
    facts = {"verdicts": verdicts, "table": table, "other": other, "rows": rows}
    facts |= {"versions": sorted(versions), "all": list(_lines(rows)), "left": list(_left_out())}
    return render(HERE / "page.md.j2", **facts)


def _lines(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield row.cells()[:-1]


def _left_out() -> Iterator[tuple[str, str, str]]:
    for reason, files_of in LEFT_OUT.items():
        for file, tests in files_of.items():
            for test in tests:
                yield file, test, reason


def main() -> int:
    """Measure all, write the page, and end with 1 if a number is too small without a reason."""
    rows = []
    for setting in settings():
        rows.append(measured(setting))
        assert not math.isnan(rows[-1].ours.upper)
    files.write(PAGE, page(rows))
    open_rows = [row for row in rows if row.verdict != "equal" and not row.reason]
    for row in open_rows:
        sys.stdout.write(" | ".join(row.cells()) + "\n")
    return int(bool(open_rows))


if __name__ == "__main__":
    sys.exit(main())
