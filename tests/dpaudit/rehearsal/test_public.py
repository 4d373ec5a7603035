"""A bound, a default or a plan that the data make at import is told from a public one."""

import pytest

from dpaudit.base.processes import CAN_FORK
from dpaudit.certificate import Premise, Severity, Standing, certify
from dpaudit.project.targets import find_target
from dpaudit.workflow.rehearsing import rehearse_subject

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="needs copies of a process")

CODE = """
from dataclasses import dataclass, field
from pathlib import Path
from dpaudit import (
    AddRemove, Contribution, Invocation, Laplace, Plan, PrivacyUnit, RunResult, Subject, TrustModel,
)

HERE = Path(__file__).parent / "data.csv"


def largest():
    return max(float(line.split(",")[1]) for line in HERE.read_text().split()[1:])

{top}

@dataclass(frozen=True)
class Total(Subject):
    default_data: str = str(HERE)
    cap: float = {default}

    def plan(self):
        facts = (PrivacyUnit("user"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation.bounded(Laplace(50.0), Contribution({cap}), *facts, at="sum"))

    def load(self, source, rng):
        rows = [line.split(",") for line in Path(source).read_text().split()[1:]]
        return {{"user": [row[0] for row in rows], "amount": [float(row[1]) for row in rows]}}

    def run(self, data, ledger, rng):
        return RunResult({{"sum": ledger.sum(data["amount"], units=data["user"])}})
"""


def written(folder, top="", default="20.0", cap="self.cap"):
    rows = [f"u{n},{1 + 37 * n % 20}" for n in range(40)]
    (folder / "data.csv").write_text("\n".join(["user,amount", *rows]))
    (folder / "code.py").write_text(CODE.format(top=top, default=default, cap=cap))
    return f"{folder / 'code.py'}:Total"


def certified(name, **settings):
    target = find_target(name, settings)
    outcome = rehearse_subject(target.subject, target.record.name, plan=target.plan)
    bare = certify(target.plan, subject=target.record)
    return bare.with_rehearsal(outcome.record, outcome.findings)


def standing(certificate):
    return {each.premise: each.standing for each in certificate.assumptions}[Premise.PUBLIC_FACTS]


@pytest.mark.parametrize("settings", [{}, {"cap": 7.0}])
def test_public_facts_are_tested_where_the_data_are_out_of_reach(tmp_path, settings):
    certificate = certified(written(tmp_path), **settings)
    assert certificate.rehearsal.public == 1
    assert standing(certificate) is Standing.TESTED
    assert not [each for each in certificate.findings if each.rule.endswith("-data")]


@pytest.mark.parametrize(
    "code",
    [
        {"top": "CAP = largest()", "default": "CAP"},
        {"default": "field(default_factory=largest)"},
        {"default": "largest()"},
    ],
)
def test_a_cap_that_is_read_at_import_is_no_public_fact(tmp_path, code):
    certificate = certified(written(tmp_path, **code))
    assert certificate.rehearsal.public == 0
    assert standing(certificate) is Standing.ASSUMED
    (found,) = [each for each in certificate.findings if each.rule == "public-reads-data"]
    assert found.severity is Severity.WARNING


def test_a_cap_of_a_module_beside_it_is_none_either(tmp_path):
    name = written(tmp_path, top="from caps import CAP", default="CAP")
    (tmp_path / "caps.py").write_text(
        "from pathlib import Path\n"
        "CAP = float(len((Path(__file__).parent / 'data.csv').read_text().split()))\n"
    )
    rules = {each.rule for each in certified(name).findings}
    assert "public-reads-data" in rules


def test_a_plan_that_is_another_one_without_the_data_is_an_error(tmp_path):
    top = "try:\n    CAP = largest()\nexcept OSError:\n    CAP = 5.0"
    certificate = certified(written(tmp_path, top=top, default="CAP"))
    assert standing(certificate) is Standing.VIOLATED
    assert "plan-follows-data" in {each.rule for each in certificate.findings}
