"""A load that scales by the data, or codes what occurs, is found; one of row by row is not.

A bound, a default or a plan that the data make at import is told from a public one.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from effort import examples
from examples import Answers

from dpaudit.base.processes import CAN_FORK
from dpaudit.certificate import Premise, Severity, Standing, certify
from dpaudit.project.targets import find_target
from dpaudit.rehearsal.loading import loading_findings
from dpaudit.workflow.rehearsing import rehearse_subject


def last_first(names, ages):
    """Totals by name, each where it was last seen."""
    totals = {}
    for name, age in zip(names, ages, strict=True):
        totals[name] = totals.pop(name, 0.0) + float(age)
    return totals


@dataclass(frozen=True)
class Loads(Answers):
    """Rows of a CSV file, made into what ``how`` says."""

    how: str = "rows"

    def load(self, source, rng):
        with open(source) as file:  # noqa: PTH123
            table = [line.split(",") for line in file.read().split()[1:]]
        ages = np.array([float(age) for _, age in table])
        names = [name for name, _ in table]
        match self.how:
            case "scaled":
                return ages / ages.max()
            case "standardised":
                return (ages - ages.mean()) / ages.std()
            case "coded":
                kinds = sorted(set(names))
                return [kinds.index(name) for name in names]
            case "shuffled":
                return rng.permutation(ages)
            case "drawn":
                return rng.choice(ages, 9, replace=False) + rng.normal()
            case "by user":
                return [
                    float(ages[[n == name for n in names]].sum()) for name in sorted(set(names))
                ]
            case "ends":  # the first user's lines are counted together
                own = [name == names[0] for name in names]
                return ages + 100 * sum(own) * np.array(own)
            case "totals":
                return last_first(names, ages)
            case "scaled by a constant":
                return np.clip(ages / 100, 0, 1)
        return {"name": names, "age": ages}


@pytest.fixture
def source(tmp_path):
    ages = np.random.default_rng(0).integers(18, 90, 20)
    lines = [f"user{'abcdefghij'[row // 2]},{age}" for row, age in enumerate(ages)]
    lines[3] = "aaron,95"
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["name,age", *lines, ""]))
    return str(path)


@pytest.mark.parametrize("how", ["scaled", "standardised", "coded"])
def test_what_goes_into_every_row_is_found(source, how):
    subject = Loads(how=how)
    loaded = subject.load(source, np.random.default_rng([0, 0]))
    (finding,), loads = loading_findings(subject, source, loaded, 0)
    assert loads >= 1
    assert finding.rule == "load-mixes-rows"
    assert "95" not in finding.message


@pytest.mark.parametrize("how", ["rows", "shuffled", "drawn", "by user", "scaled by a constant"])
@pytest.mark.parametrize("seed", range(examples(1, 3)))
def test_what_is_made_row_by_row_is_silent(source, how, seed):
    subject = Loads(how=how)
    loaded = subject.load(source, np.random.default_rng([seed, 0]))
    assert loading_findings(subject, source, loaded, seed)[0] == []


def test_totals_of_units_are_silent_wherever_a_unit_lies(tmp_path):
    path = tmp_path / "people.csv"
    lines = [f"user{name},{age}" for age, name in enumerate("abcdefghijklmnopqrsta", start=20)]
    path.write_text("\n".join(["name,age", *lines, ""]))  # the last line moves the first user
    subject = Loads(how="totals")
    loaded = subject.load(str(path), np.random.default_rng([0, 0]))
    findings, loads = loading_findings(subject, str(path), loaded, 0)
    assert (findings, loads > 0) == ([], True)


def test_two_rows_at_the_ends_are_not_most_of_them(tmp_path):
    """The lines of one user are joined, and lie far apart: nothing else has changed."""
    path = tmp_path / "people.csv"
    lines = [f"{name},{age}" for age, name in enumerate("aabcdefghijklmnopqra", start=20)]
    path.write_text("\n".join(["name,age", *lines, ""]))
    path.write_text(path.read_text().replace("a,21", "a,99"))  # the largest is left out
    subject = Loads(how="ends")
    loaded = subject.load(str(path), np.random.default_rng([0, 0]))
    findings, loads = loading_findings(subject, str(path), loaded, 0)
    assert (findings, loads > 1) == ([], True)


@pytest.mark.parametrize("name", ["people.csv", "none.csv", "folder", "\0"])
def test_what_is_no_file_of_lines_says_nothing(tmp_path, name):
    (tmp_path / "people.csv").write_bytes(b"\xff\xfe\n,,\n\n")
    assert loading_findings(Loads(), str(tmp_path / name), np.arange(20.0), 0)[0] == []


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
