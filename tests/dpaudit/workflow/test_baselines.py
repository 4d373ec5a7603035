"""Comparing a project with its older certificates: which they are, and what became worse."""

import json
import shutil

import pytest
from examples import response_plan
from projects import budget, entry

from dpaudit import InputError, certify
from dpaudit.base.files import digest
from dpaudit.certificate import SubjectRecord
from dpaudit.workflow.baselines import read_baseline
from dpaudit.workflow.outcomes import Status
from dpaudit.workflow.summary import remarks


def forged_curve(text):
    """A certificate with a curve that nobody proved, and a digest that fits."""
    record = json.loads(text)
    record["guarantee"]["curve"] = [[0.0, 1e-9]]
    record["versions"] = {"dpaudit": "0.0.1"}
    record.pop("digest")
    return json.dumps(record | {"digest": digest(record)})


def test_nothing_changed(project):
    entries = [entry("Sum", None, "audit = []"), entry("p", "laplace.toml")]
    project(*entries)
    outcome = project(*entries, since=project.root / "reports")
    assert all(row.since == row.name and not row.changes for row in outcome.subjects)
    assert not outcome.is_worse


def test_worse_is_told_with_its_reason(project):
    project(entry("Sum", None, "audit = []"))
    worse = entry("Sum", None, "audit = []", "set = { scale = 0.5 }", "claim = { epsilon = 3 }")
    outcome = project(worse, since=project.root / "reports" / "Sum.json")
    told = [str(change) for change in outcome.subjects[0].changes]
    assert told[0] == "ε at δ = 0: 1 → 2 (worse)"
    assert any(each.startswith("claim: ε = 1, δ = 0 → ε = 3, δ = 0") for each in told)
    assert "invocation 'sum' mechanism scale: 1.0 → 0.5" in told
    assert "field scale: 1.0 → 0.5" in told
    assert outcome.status is Status.CERTIFIED
    assert outcome.is_worse


def test_new_renamed_and_gone(project):
    project(entry("a", "laplace.toml"), entry("b", "code.py:Sum", "audit = []"))
    later = project(
        entry("renamed", "laplace.toml"), entry("new", "normal.toml"),
        since=project.root / "reports",
    )  # fmt: skip
    assert [row.since for row in later.subjects] == ["a", ""]
    assert later.gone == ("b",)


def test_two_subjects_of_one_target_are_told_apart_by_their_fields(project):
    def scaled(name, scale):
        return entry(name, "code.py:Sum", f"set = {{ scale = {scale} }}", "audit = []")

    project(scaled("wide", 8.0))
    old = project.root / "reports" / "wide.json"
    old = old.rename(project.root / "old.json")
    outcome = project(scaled("narrow", 2.0), scaled("broad", 8.0), since=old)
    assert [row.since for row in outcome.subjects] == ["", "old"]
    assert outcome.gone == ()
    assert project(scaled("narrow", 2.0), scaled("other", 4.0), since=old).gone == ("old",)
    assert project(scaled("alone", 2.0), since=old).is_worse


def test_a_failed_subject_is_not_gone(project):
    project(entry("a", "laplace.toml"), entry("b", "normal.toml"))
    later = project(
        entry("a", "nowhere.toml"), entry("c", "normal.toml"), since=project.root / "reports"
    )
    assert later.gone == ()


@pytest.mark.parametrize(
    ("now", "worse", "told"),
    [
        ([budget(3, "a", "b")], False, None),
        ([budget(30, "a", "b")], True, "ε = 3, δ = 0 of a, b → ε = 30, δ = 0 of a, b (worse)"),
        ([budget(3, "a", "b", delta=0.1)], True, "→ ε = 3, δ = 0.1 of a, b (worse)"),
        ([budget(3, "a")], True, "→ ε = 3, δ = 0 of a (worse)"),
        ([], True, "→ none (worse)"),
        ([budget(2, "a", "b")], False, "→ ε = 2, δ = 0 of a, b"),
        ([budget(9, "a"), budget(3)], False, "→ ε = 9, δ = 0 of a"),  # the other one still holds
    ],
)
def test_a_budget_that_allows_more_is_worse(project, now, worse, told):
    entries = [entry("a", "laplace.toml"), entry("b", "response.toml")]
    project(*entries, budget(3, "a", "b"))
    outcome = project(*entries, *now, since=project.root / "reports")
    assert outcome.status is Status.CERTIFIED
    assert (outcome.is_worse, outcome.beside) == (worse, worse)
    said = [text for name, text in remarks(outcome) if name == "project"]
    assert len(said) == (told is not None)
    assert all(text.startswith("budget 'budget 1': ε = 3, ") for text in said)
    assert all(text.endswith(told) for text in said)


def test_subjects_that_are_renamed_or_gone_need_no_budget(project):
    project(entry("a", "laplace.toml"), entry("b", "response.toml"), budget(3, "a", "b"))
    since = project.root / "reports"
    later = project(entry("renamed", "laplace.toml"), budget(3, "renamed"), since=since)
    assert (later.is_worse, later.gone) == (False, ("b",))


def test_budgets_of_older_reports_may_be_unknown_but_not_wrong(project):
    project(entry("a", "laplace.toml"), budget(3, "a"))
    listed = project.root / "reports" / ".dpaudit-files.json"
    record = json.loads(listed.read_text())
    assert project(entry("a", "laplace.toml"), since=listed.parent / "a.json").changes == ()
    listed.write_text(json.dumps(record | {"budgets": [{"name": "x", "limit": {"epsilon": -1}}]}))
    with pytest.raises(InputError, match=r"dpaudit-files\.json.*subjects"):
        read_baseline(listed.parent)
    record.pop("budgets")
    listed.write_text(json.dumps(record))
    (change,) = project(entry("a", "laplace.toml"), budget(3), since=listed.parent).changes
    assert str(change) == "budgets: unknown → ε = 3, δ = 0 of a"


def test_reports_for_machines_are_passed_over(project, tmp_path):
    certificate = certify(response_plan(), subject=SubjectRecord("m:X"))
    certificate.save(tmp_path / "x.json")
    (tmp_path / "x.other.json").write_text('{"version": "2.1.0"}')
    (tmp_path / "list.json").write_text("[]")
    assert set(read_baseline(tmp_path).certificates) == {"x"}


@pytest.mark.parametrize(
    "damage", ["tampered", "forged", "truncated", "version", "missing", "empty"]
)
def test_a_bad_certificate_stops_before_any_work(project, tmp_path, damage):
    project(entry("a", "laplace.toml"))
    old = tmp_path / "old"
    shutil.move(project.root / "reports", old)
    text = (old / "a.json").read_text()
    changed, message = {
        "tampered": (
            text.replace('"count": 1', '"count": 2'),
            "a.json.*certificate was edited",
        ),
        "forged": (forged_curve(text), r"a.json.*guarantee\.curve does not follow"),
        "truncated": (text[:100], "a.json.*is not JSON"),
        "version": (
            text.replace("dpaudit-certificate/3", "dpaudit-certificate/9"),
            "a.json.*/9",
        ),
        "missing": (text, "does not exist"),
        "empty": ("{}", "holds no certificate"),
    }[damage]
    (old / "a.json").write_text(changed)
    with pytest.raises(InputError, match=message):
        project(entry("Leaves"), since=old / "none" if damage == "missing" else old)
    assert not (project.root / "reports").exists()
