"""A sealed subject in a project: it is sealed where nobody asks for it, on made-up rows."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dpaudit import InputError
from dpaudit.base.errors import PlanMismatchError, TamperedError
from dpaudit.certificate import Premise, Scope, Standing, load_certificate, verify
from dpaudit.certificate.certificate import Certificate
from dpaudit.project.scaffold.scaffolding import Kind, scaffold
from dpaudit.pytest_plugin import PrivacyViolationError, assert_certified, assert_rehearsed
from dpaudit.sealed.sandbox import lacking
from dpaudit.workflow import running
from dpaudit.workflow.certifying import certify_target
from dpaudit.workflow.checking import check_project
from dpaudit.workflow.publishing import remarks
from dpaudit.workflow.rehearsing import replay_subject
from dpaudit.workflow.running import run_subject
from dpaudit.workflow.sealing import UnsealedError

pytest.importorskip("duckdb")
pytestmark = pytest.mark.skipif(bool(lacking()), reason=f"nothing is sealed here: {lacking()}")

NAME = "counts.py:Visits"
AUDIT = """
[[subject.audit]]
through_run = true
runs = 200
confidence = 0.95
seed = 1
"""
MIXED = '''
from dataclasses import dataclass
from dpaudit import (
    Claim, Invocation, Laplace, Plan, PrivacyUnit, ReplaceOne, RunResult, SealedSubject, Subject,
    TrustModel,
)

@dataclass(frozen=True)
class Ordinary(Subject):
    """It holds its data, beside a class that does not."""

    def plan(self):
        about = (PrivacyUnit("user"), ReplaceOne(), TrustModel.LOCAL)
        return Plan.of(Invocation(Laplace(10.0, clip=(0, 10)), 10, *about, total=20, at="answer"))

    def claim(self):
        return Claim(1.0)

    def load(self, source, rng):
        return {f"user {n}": int(rng.integers(0, 11)) for n in range(20)}

    def run(self, data, ledger, rng):
        own = self.plan().invocations[0].mechanism
        return RunResult({"n": len([ledger.release(own, x, unit=u) for u, x in data.items()])})
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    scaffold("demo", Kind.COUNTS, within=tmp_path)
    monkeypatch.chdir(tmp_path / "demo")
    monkeypatch.syspath_prepend(tmp_path / "demo")
    sys.modules.pop("counts", None)
    yield tmp_path / "demo"
    sys.modules.pop("counts", None)


@pytest.fixture
def unsealable(monkeypatch):
    """A machine that lacks what it takes."""

    def refused(*_, **__):
        raise UnsealedError("this machine does not grant Landlock (ENOSYS).")

    monkeypatch.setattr(running, "sealed_run", refused)


def checked(project) -> Certificate:
    outcome, _ = check_project(project)
    (row,) = outcome.subjects
    assert row.error == ""
    certificate = load_certificate(project / "reports" / "visits.json")
    verify(certificate)
    return certificate


def test_check_seals_on_made_up_rows_and_reads_no_table(project):
    Path("visits.csv").unlink()
    certificate = checked(project)
    assert certificate.scope is Scope.SEALED
    assert certificate.seal.made_up == "synthetic 120"
    assert certificate.run is None
    assert "counts" not in sys.modules
    known = {each.premise: each.standing for each in certificate.assumptions}
    assert known[Premise.RESULTS] is Standing.ENFORCED
    assert known[Premise.UNITS] is Standing.ASSUMED
    assert "made-up rows (synthetic 120)" in Path("reports/visits.md").read_text("utf-8")
    outcome, _ = check_project(project)
    assert any(text.startswith("sealed: ") for _, text in remarks(outcome))


def test_planned_attacks_run_the_code_on_made_up_rows(project):
    Path("visits.csv").unlink()
    text = Path("dpaudit.toml").read_text("utf-8")
    Path("dpaudit.toml").write_text(text.replace("[[budget]]", f"{AUDIT}\n[[budget]]", 1), "utf-8")
    certificate = checked(project)
    assert certificate.scope is Scope.SEALED
    (audit,) = certificate.audits
    assert not audit.refuted
    assert 0 < audit.epsilon_lower <= 1
    assert audit.pair["x"] == "synthetic 120"


@pytest.mark.parametrize("data", ["visits.csv", "synthetic", "synthetic 0"])
def test_it_is_tried_on_made_up_rows_alone(project, data):
    with pytest.raises(InputError, match="data is"):
        certify_target(NAME, (), None, "best", rehearse=True, data=data)


def test_certify_speaks_of_the_plan_or_seals(project):
    assert certify_target(NAME, (), None, "best").scope is Scope.PLAN
    certificate = certify_target(NAME, ["epsilon=0.5"], None, "best", rehearse=True)
    verify(certificate)
    assert certificate.seal.made_up == "synthetic 200"
    assert certificate.guarantee.epsilon <= 0.5


def test_a_seal_is_of_a_run_or_of_made_up_rows(project):
    tried = certify_target(NAME, (), None, "best", rehearse=True)
    with pytest.raises(TamperedError, match="seal is stated without a run"):
        verify(replace(tried, seal=replace(tried.seal, made_up=None)))
    ran, _ = run_subject(NAME, (), None, 1, Path("out"))
    assert ran.seal.made_up is None
    with pytest.raises(TamperedError, match=r"seal\.made_up is stated together with a run"):
        verify(replace(ran, seal=replace(ran.seal, made_up="synthetic 200")))


def test_code_that_does_not_follow_its_plan_is_not_certified(project):
    text = Path("counts.py").read_text("utf-8")
    Path("counts.py").write_text(text.replace('data, "shop", at="visits"', 'data, "shop"'), "utf-8")
    with pytest.raises(PlanMismatchError, match="the plan declares nothing at ''"):
        certify_target(NAME, (), None, "best", rehearse=True)


def test_a_machine_that_cannot_seal_says_so(project, unsealable):
    certificate = checked(project)
    assert certificate.scope is Scope.PLAN
    (finding,) = [each for each in certificate.findings if each.rule == "not-sealed"]
    assert "does not grant Landlock" in finding.message
    assert certificate.run is None
    outcome, _ = check_project(project)
    assert any("not sealed" in text for _, text in remarks(outcome))


def test_a_project_may_demand_a_seal(project, monkeypatch):
    text = Path("dpaudit.toml").read_text("utf-8")
    text = text.replace("data = ", 'code = "sealed"\ndata = ', 1)
    Path("dpaudit.toml").write_text(text, "utf-8")
    assert checked(project).scope is Scope.SEALED

    def refused(*_, **__):
        raise UnsealedError("this kernel has none.")

    monkeypatch.setattr(running, "sealed_run", refused)
    outcome, _ = check_project(project)
    assert (
        'code is "sealed": The code of this run was not sealed: this' in outcome.subjects[0].error
    )


def test_a_run_that_must_be_sealed_is_refused_elsewhere(project, unsealable):
    with pytest.raises(InputError, match="the run cannot be sealed: this machine does not grant"):
        run_subject(NAME, (), None, 1, Path("out"), sealed=True)
    assert not Path("out").exists()
    certificate, _ = run_subject(NAME, (), None, 1, Path("out"))
    assert certificate.scope is Scope.PLAN
    verify(certificate)


def test_another_subject_beside_a_sealed_one_is_rehearsed_as_ever(project):
    Path("mixed.py").write_text(MIXED, "utf-8")
    certificate = certify_target("mixed.py:Ordinary", (), None, "best", rehearse=True)
    assert certificate.scope is Scope.CODE
    with pytest.raises(InputError, match=r"mixed\.py:Ordinary is not a SealedSubject"):
        run_subject("mixed.py:Ordinary", (), None, 1, Path("out"), sealed=True)
    ran, _ = run_subject("mixed.py:Ordinary", (), None, 1, Path("out"))
    assert ran.rehearsal.done


def test_that_holds_where_nothing_can_be_sealed(project, unsealable):
    Path("mixed.py").write_text(MIXED, "utf-8")
    certificate = certify_target("mixed.py:Ordinary", (), None, "best", rehearse=True)
    ran, _ = run_subject("mixed.py:Ordinary", (), None, 1, Path("out"))
    assert certificate.scope is ran.scope is Scope.CODE
    assert "not-sealed" not in {each.rule for each in (*certificate.findings, *ran.findings)}


def test_a_sealed_subject_that_its_file_does_not_name_is_no_silent_run(project):
    Path("other.py").write_text("from counts import Visits\nOther = Visits\n", "utf-8")
    with pytest.raises(InputError, match="name SealedSubject in that file"):
        run_subject("other.py:Other", (), None, 1, Path("out"))


def test_as_a_test(project):
    assert assert_certified(NAME, rows=50).seal.made_up == "synthetic 50"
    assert assert_certified(NAME, rows=0).seal is None
    from counts import Visits

    with pytest.raises(PrivacyViolationError, match="holds handles and no rows"):
        assert_rehearsed(Visits())
    with pytest.raises(InputError, match="nothing to rehearse or replay"):
        list(replay_subject(NAME))
