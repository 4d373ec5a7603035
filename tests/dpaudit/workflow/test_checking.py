"""A whole project: rows, files, budgets, comparisons, and subjects that break."""

import json
import shutil
from pathlib import Path

import pytest
from examples import response_plan

from dpaudit import Claim, InputError, certify
from dpaudit.certificate import SubjectRecord, load_certificate, verify
from dpaudit.files import digest
from dpaudit.reporting import suffixes
from dpaudit.workflow import publishing
from dpaudit.workflow.baselines import read_baseline
from dpaudit.workflow.checking import check_project
from dpaudit.workflow.outcomes import Status

PLAN = """
[plan]
unit = "row"
relation = "add-remove"
[claim]
epsilon = {claim}
[[invocation]]
mechanism = "{mechanism}"
sensitivity = 1
count = {count}
{rest}
"""

CODE = """
from dataclasses import dataclass
from dpaudit import *

@dataclass(frozen=True)
class Sum(Subject):
    scale: float = 1.0

    def plan(self):
        return Plan.of(self.use("sum"))

    def use(self, at):
        row, trust = PrivacyUnit("row"), TrustModel.CENTRAL
        return Invocation(Laplace(self.scale), 1, row, AddRemove(), trust, at=at)

    def claim(self):
        return Claim(1.0)

    def audit_pairs(self):
        return (AuditPair(1.0, 0.0), AuditPair(0.5, 0.0))

class HalfTheNoise(Sum):
    def audit_release(self, data, size, rng):
        return Laplace(self.scale / 2).release_many(data, size, rng)

class NoNoise(Sum):
    def findings(self):
        return (Finding("no-noise", Severity.ERROR, "The code adds no noise."),)

class Twice(Sum):
    def plan(self):
        return Plan.of(self.use("one"), self.use("two"))

class Unclaimed(Sum):
    def claim(self):
        return None

class Leaves(Sum):
    def plan(self):
        raise SystemExit("good bye")

class Raises(Sum):
    def audit_release(self, data, size, rng):
        raise OSError("no\\nsuch disk")

class Confused(Sum):
    def claim(self):
        return "one"

def half(data, rng, size):
    return data + rng.laplace(scale=0.5, size=size)

def double(data, rng, size):
    return data + rng.laplace(scale=2.0, size=size)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write a project file into a folder of its own, with plans and code, and check it."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "code.py").write_text(CODE)
    for name, facts in {
        "laplace": ("laplace", 2, 1, "scale = 2"),
        "response": ("randomized-response", 1, 1, "p = 0.5\nk = 2"),
        "opaque": ("opaque", 1, 1, 'label = "sketch"\nepsilon = 1'),
        "normal": ("gaussian", 1, 1, "sigma = 4"),
    }.items():
        mechanism, claim, count, rest = facts
        text = PLAN.format(mechanism=mechanism, claim=claim, count=count, rest=rest)
        if name == "normal":
            text = text.replace("[claim]\n", "[claim]\ndelta = 1e-6\n")
        if name == "response":
            text = text.replace("sensitivity = 1\n", "").replace("epsilon = 1", "epsilon = 1.1")
        (root / f"{name}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)

    def check(*entries, since=None, **more):
        start = "" if "[project]" in entries[0] else "[project]\nformats = []\n"
        text = start + "[audit]\nruns = 1000\nseed = 1\n" + "\n".join(entries)
        (root / "dpaudit.toml").write_text(text)
        return check_project(root, since=since, **more)[0]

    check.root = root
    return check


def entry(name, target=None, *more):
    lines = [f'name = "{name}"', f'target = "{target or f"code.py:{name}"}"', *more]
    return "[[subject]]\n" + "\n".join(lines) + "\n"


def budget(epsilon, *names, delta=0.0):
    listed = f"subjects = {json.dumps(names)}\n" if names else ""
    return f"[[budget]]\nepsilon = {epsilon}\ndelta = {delta}\n{listed}"


def forged_curve(text):
    """A certificate with a curve that nobody proved, and a digest that fits."""
    record = json.loads(text)
    record["guarantee"]["curve"] = [[0.0, 1e-9]]
    record["versions"] = {"dpaudit": "0.0.1"}
    record.pop("digest")
    return json.dumps(record | {"digest": digest(record)})


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def rows(outcome):
    return {row.name: row for row in outcome.subjects}


def test_each_subject_has_a_certificate_and_a_report(project):
    outcome = project(
        '[project]\nformats = ["html", "md"]', entry("Sum"), entry("p", "laplace.toml")
    )
    reports = project.root / "reports"
    assert visible(reports) == [
        "Sum.html", "Sum.json", "Sum.md", "index.html", "index.md", "p.html", "p.json", "p.md",
    ]  # fmt: skip
    assert outcome.status is Status.CERTIFIED
    certificate = load_certificate(reports / "Sum.json")
    verify(certificate)
    assert certificate.guarantee.epsilon == 1.0
    (audit,) = certificate.audits
    assert audit.runs <= 1000
    assert audit.confidence == 0.99
    assert load_certificate(reports / "p.json").audits == ()
    assert "Sum" in (reports / "Sum.html").read_text()
    for index in ("index.html", "index.md"):
        text = (reports / index).read_text()
        assert "Sum.html" in text
        assert "p.json" in text


def test_the_same_project_gives_the_same_bytes(project):
    entries = ('[project]\nformats = ["html"]', entry("Sum"), entry("p", "laplace.toml"), budget(9))
    project(*entries)
    first = {path.name: path.read_bytes() for path in (project.root / "reports").iterdir()}
    project(*entries)
    assert first == {path.name: path.read_bytes() for path in (project.root / "reports").iterdir()}


def test_every_verdict(project):
    outcome = project(
        entry("Sum"),
        entry("HalfTheNoise"),
        entry("tight", "code.py:Sum", "claim = { epsilon = 0.5 }", "audit = []"),
        entry("opaque", "opaque.toml"),
        entry("Leaves"),
        entry("settings", "code.py:Sum", "set = { scale = 4.0 }", "audit = []"),
    )
    assert {name: str(row.status) for name, row in rows(outcome).items()} == {
        "Sum": "certified",
        "HalfTheNoise": "refuted",
        "tight": "exceeded",
        "opaque": "unproven",
        "Leaves": "error",
        "settings": "certified",
    }
    assert outcome.status is Status.ERROR
    assert rows(outcome)["settings"].certificate.guarantee.epsilon == 0.25
    assert rows(outcome)["tight"].certificate.claim.source == "dpaudit.toml"


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (entry("x", "code.py:Leaves"), "code.py:Leaves raised SystemExit at code.py:"),
        (entry("x", "code.py:Raises"), "OSError"),
        (entry("x", "code.py:Confused"), "code.py:Confused raised"),
        (entry("x", "code.py:Nothing"), "has no 'Nothing'"),
        (entry("x", "code.py:half"), "is no subject"),
        (entry("x", "nowhere.py:Sum"), "does not exist"),
        (entry("x", "nowhere_at_all:Sum"), "No module named 'nowhere_at_all'"),
        (entry("x", "syntax.py:Sum"), "cannot be imported: SyntaxError"),
        (entry("x", "leaves.py:Sum"), "cannot be imported: SystemExit: 3"),
        (entry("x", "nowhere.toml"), "does not exist"),
        (entry("x", "code.py:Sum", "set = { scale = -1 }"), "scale is -1"),
        (entry("x", "code.py:Sum", "set = { colour = 1 }"), "has no field 'colour'"),
        (entry("x", "laplace.toml", "audit = [{}]"), "audit 1: a plan file has no code"),
        (entry("x", "laplace.toml", "audit = [{ exact = true }]"), "no finite list of outputs"),
        (entry("x", "code.py:Twice", "audit = [{ exact = true }]"), "2 invocations"),
        (entry("x", "code.py:Sum", "audit = [{ pair = [5.0, 0.0] }]"), "audit 1: "),
        (entry("x", "opaque.toml", "audit = [{ code = 'code.py:no', pair = [0, 1] }]"), "'no'"),
        (
            entry("x", "normal.toml", "claim = { epsilon = 1 }", "audit = [{ exact = true }]"),
            "no fin",
        ),
    ],
)
def test_what_breaks_one_subject_leaves_the_others_alone(project, subject, message):
    (project.root / "syntax.py").write_text("def")
    (project.root / "leaves.py").write_text("raise SystemExit(3)")
    outcome = project(subject, entry("p", "laplace.toml"), budget(5, "p"), budget(5.5, "x", "p"))
    row, other = outcome.subjects
    assert message in row.error
    assert "\n" not in row.error
    assert (row.status, other.status) == (Status.ERROR, Status.CERTIFIED)
    assert [row.status for row in outcome.budgets] == [Status.CERTIFIED, Status.ERROR]
    assert not list((project.root / "reports").glob("x.*"))
    assert (project.root / "reports" / "p.json").exists()
    index = (project.root / "reports" / "index.md").read_text()
    assert "| x | error |" in index


def test_an_old_certificate_does_not_pass_for_that_of_a_broken_subject(project):
    project(entry("x", "code.py:Sum", "audit = []"))
    reports = project.root / "reports"
    (reports / "mine.txt").write_text("a note")
    assert (reports / "x.json").exists()
    project(entry("x", "code.py:Leaves"))
    assert visible(reports) == ["index.html", "index.md", "mine.txt"]


def test_what_no_auditor_can_attack_says_so(project):
    outcome = project(entry("Twice", None, "claim = { epsilon = 2 }"))
    certificate = rows(outcome)["Twice"].certificate
    assert certificate.audits == ()
    assert "No audit was made: 2 invocations" in certificate.not_covered[-1]
    assert outcome.status is Status.CERTIFIED


def test_where_nothing_is_claimed_the_guarantee_is_attacked(project):
    (record,) = rows(project(entry("Unclaimed")))["Unclaimed"].certificate.audits
    assert record.claim_epsilon == 1.0
    assert not record.refuted


def test_planned_attacks(project):
    code = "audit = [{ code = 'code.py:CODE', pair = [0.0, 1.0] }]"
    outcome = project(
        entry("every", "code.py:Sum", "audit = [{ every_pair = true }, { pair = [0.0, 1.0] }]"),
        entry("sharper", "code.py:Sum", "audit = [{ epsilon = 0.5, seed = 3 }]"),
        entry("wrong", "laplace.toml", code.replace("CODE", "half"), "claim = { epsilon = 0.5 }"),
        entry("right", "laplace.toml", code.replace("CODE", "double"), "claim = { epsilon = 0.5 }"),
        entry("exact", "response.toml", "audit = [{ exact = true }]"),
    )
    found = {name: row.certificate for name, row in rows(outcome).items()}
    assert [audit.pair["x"] for audit in found["every"].audits] == [1.0, 0.5, 0.0]
    assert found["sharper"].audits[0].refuted
    assert found["wrong"].audits[0].details["code"] == "code.py:half"
    assert found["wrong"].audits[0].refuted
    assert not found["right"].audits[0].refuted
    (exact,) = found["exact"].audits
    assert exact.confidence is None
    assert exact.epsilon_lower == pytest.approx(1.0986122886681098)  # ln 3


def test_what_an_attack_says_of_the_claim(project):
    outcome = project(
        entry("stronger", "code.py:Sum", "audit = [{ epsilon = 0.3, runs = 20000 }]"),
        entry("weaker", "code.py:HalfTheNoise", "audit = [{ epsilon = 5, runs = 20000 }]"),
        entry("beyond", "code.py:HalfTheNoise", "claim = { epsilon = 4 }"),
        entry("NoNoise"),
    )
    found = {name: row.certificate for name, row in rows(outcome).items()}
    assert found["stronger"].audits[0].refuted
    assert {name: str(row.status) for name, row in rows(outcome).items()} == {
        "stronger": "certified",
        "weaker": "refuted",
        "beyond": "unproven",
        "NoNoise": "unproven",
    }
    assert [each.rule for each in found["beyond"].findings if each.severity == "error"] == [
        "not-the-declared-mechanism"
    ]
    for certificate in found.values():
        verify(certificate)


@pytest.mark.parametrize(
    ("claim", "warned"),
    [("epsilon = 2", True), ("epsilon = 1, delta = 1e-6", True), ("epsilon = 0.5", False)],
)
def test_a_looser_claim_than_the_subjects_own_is_named(project, claim, warned):
    row = rows(project(entry("Sum", None, f"claim = {{ {claim} }}", "audit = []")))["Sum"]
    told = [each for each in row.certificate.findings if each.rule == "claim-loosened"]
    assert len(told) == warned
    if warned:
        assert str(Claim(1.0)) in told[0].message
        assert str(row.certificate.claim) in told[0].message


def test_files_of_one_name_in_two_folders_are_two_modules(project):
    for folder, scale in (("a", 1.0), ("b", 2.0)):
        (project.root / folder).mkdir()
        code = CODE.replace("scale: float = 1.0", f"scale: float = {scale}")
        (project.root / folder / "statistics.py").write_text(f"# {folder}\n{code}")
    names = ("a/statistics.py:Sum", "b/statistics.py:Sum", "a/statistics.py:Sum")
    outcome = project(*(entry(f"s{n}", name, "audit = []") for n, name in enumerate(names)))
    first, second, again = (row.certificate for row in outcome.subjects)
    assert first.subject.code_hash != second.subject.code_hash
    assert first.subject.code_hash == again.subject.code_hash
    assert second.guarantee.epsilon == 0.5
    assert second.subject.location == "statistics.py:6"


def test_every_format_that_there_is(project):
    endings = suffixes()
    outcome = project(f"[project]\nformats = {json.dumps(endings)}", entry("a", "laplace.toml"))
    names = {path.name for path in (project.root / "reports").iterdir()}
    assert {f"a{ending}" for ending in endings} <= names
    assert outcome.status is Status.CERTIFIED


@pytest.mark.parametrize("ending", sorted({"", *(e.removesuffix(".json") for e in suffixes())}))
def test_a_name_does_not_choose_the_format(project, ending):
    """A subject named a.sarif has its certificate in a.sarif.json, not a report for machines."""
    project(entry(f"a{ending}", "laplace.toml"))
    certificate = load_certificate(project.root / "reports" / f"a{ending}.json")
    assert certificate.subject.name == "laplace.toml"


class TestBudgets:
    def test_plans_compose(self, project):
        entries = [entry("a", "laplace.toml"), entry("b", "laplace.toml")]
        outcome = project(*entries, budget(1.0), budget(0.99), budget(0.5, "b"))
        assert [(row.status, row.guarantee.epsilon) for row in outcome.budgets] == [
            (Status.CERTIFIED, 1.0),
            (Status.EXCEEDED, 1.0),
            (Status.CERTIFIED, 0.5),
        ]
        assert outcome.status is Status.EXCEEDED

    def test_what_cannot_be_proved_is_not_within(self, project):
        entries = [entry("a", "laplace.toml"), entry("b", "opaque.toml"), entry("c", "normal.toml")]
        opaque, infinite = project(*entries, budget(100, "a", "b"), budget(100, "a", "c")).budgets
        assert (opaque.status, infinite.status) == (Status.UNPROVEN, Status.UNPROVEN)
        assert "no pure guarantee" in infinite.note
        assert opaque.note

    def test_a_refuted_plan_carries_no_budget(self, project):
        (row,) = project(entry("HalfTheNoise"), budget(5)).budgets
        assert row.status is Status.UNPROVEN
        assert "which an audit refutes" in row.note

    def test_a_plan_in_error_carries_no_budget(self, project):
        loose = "claim = { epsilon = 4 }"
        outcome = project(entry("HalfTheNoise", None, loose), entry("NoNoise"), budget(5))
        (row,) = outcome.budgets
        assert row.status is Status.UNPROVEN
        assert "HalfTheNoise, which is in error (not-the-declared-mechanism)" in row.note
        assert "NoNoise, which is in error (no-noise)" in row.note

    def test_an_exceeded_claim_leaves_the_plan_what_it_is(self, project):
        tight = entry("tight", "code.py:Sum", "claim = { epsilon = 0.5 }", "audit = []")
        assert project(tight, budget(1.0)).budgets[0].status is Status.CERTIFIED


class TestSince:
    def test_nothing_changed(self, project):
        entries = [entry("Sum", None, "audit = []"), entry("p", "laplace.toml")]
        project(*entries)
        outcome = project(*entries, since=project.root / "reports")
        assert all(row.since == row.name and not row.changes for row in outcome.subjects)
        assert not outcome.is_worse

    def test_worse_is_told_with_its_reason(self, project):
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

    def test_new_renamed_and_gone(self, project):
        project(entry("a", "laplace.toml"), entry("b", "code.py:Sum", "audit = []"))
        later = project(
            entry("renamed", "laplace.toml"), entry("new", "normal.toml"),
            since=project.root / "reports",
        )  # fmt: skip
        assert [row.since for row in later.subjects] == ["a", ""]
        assert later.gone == ("b",)

    def test_two_subjects_of_one_target_are_told_apart_by_their_fields(self, project):
        def scaled(name, scale):
            return entry(name, "code.py:Sum", f"set = {{ scale = {scale} }}", "audit = []")

        project(scaled("wide", 8.0))
        old = project.root / "reports" / "wide.json"
        old = old.rename(project.root / "old.json")
        outcome = project(scaled("narrow", 2.0), scaled("broad", 8.0), since=old)
        assert [row.since for row in outcome.subjects] == ["", "old"]
        assert outcome.gone == ()
        assert project(scaled("narrow", 2.0), scaled("other", 4.0), since=old).gone == ("old",)
        (row,) = project(scaled("alone", 2.0), since=old).subjects
        assert row.is_worse

    def test_a_failed_subject_is_not_gone(self, project):
        project(entry("a", "laplace.toml"), entry("b", "normal.toml"))
        later = project(
            entry("a", "nowhere.toml"), entry("c", "normal.toml"), since=project.root / "reports"
        )
        assert later.gone == ()

    def test_reports_for_machines_are_passed_over(self, project, tmp_path):
        certificate = certify(response_plan(), subject=SubjectRecord("m:X"))
        certificate.save(tmp_path / "x.json")
        (tmp_path / "x.other.json").write_text('{"version": "2.1.0"}')
        (tmp_path / "list.json").write_text("[]")
        assert set(read_baseline(tmp_path).certificates) == {"x"}

    @pytest.mark.parametrize(
        "damage", ["tampered", "forged", "truncated", "version", "missing", "empty"]
    )
    def test_a_bad_certificate_stops_before_any_work(self, project, tmp_path, damage):
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
                text.replace("dpaudit-certificate/2", "dpaudit-certificate/9"),
                "a.json.*/9",
            ),
            "missing": (text, "does not exist"),
            "empty": ("{}", "holds no certificate"),
        }[damage]
        (old / "a.json").write_text(changed)
        with pytest.raises(InputError, match=message):
            project(entry("Leaves"), since=old / "none" if damage == "missing" else old)
        assert not (project.root / "reports").exists()


class TestFiles:
    def test_a_failure_to_write_changes_nothing(self, project, monkeypatch):
        project(entry("a", "laplace.toml"))
        reports = project.root / "reports"
        before = {path.name: path.read_bytes() for path in reports.iterdir()}
        written, whole = [], publishing.files.write

        def full_disk(path, content):
            if len(written) == 3:
                raise InputError("output cannot be written: no space left.")
            written.append(path)
            return whole(path, content)

        monkeypatch.setattr(publishing.files, "write", full_disk)
        with pytest.raises(InputError, match="no space left"):
            project(entry("a", "normal.toml"), entry("b", "laplace.toml"))
        assert {path.name: path.read_bytes() for path in reports.iterdir()} == before

    def test_a_folder_in_the_place_of_a_report_changes_nothing(self, project):
        project(entry("a", "laplace.toml"))
        reports = project.root / "reports"
        before = (reports / "index.md").read_bytes()
        (reports / "b.json").mkdir()
        with pytest.raises(InputError, match=r"b\.json' is a folder"):
            project(entry("a", "normal.toml"), entry("b", "laplace.toml"))
        assert (reports / "index.md").read_bytes() == before
        assert visible(reports) == ["a.json", "b.json", "index.html", "index.md"]

    def test_files_of_others_stay(self, project):
        reports = project.root / "reports"
        reports.mkdir()
        (reports / "a.json").write_text("{}")
        with pytest.raises(InputError, match=r"a\.json' exists and was not written by dpaudit"):
            project(entry("a", "laplace.toml"))
        project(entry("a", "code.py:Leaves"))  # a row that fails removes its own files alone
        assert visible(reports) == ["a.json", "index.html", "index.md"]
        assert (reports / "a.json").read_text() == "{}"
        (reports / "a.json").unlink()
        project(entry("a", "laplace.toml"))
        project(entry("a", "laplace.toml"))  # its own may be replaced
        (reports / ".dpaudit-files.json").write_text('{"files": 3}')
        with pytest.raises(InputError, match="is no list of reports"):
            project(entry("a", "laplace.toml"))

    @pytest.mark.parametrize("name", ["../elsewhere", "/tmp", "\\u0000", "x" * 300])
    def test_reports_stay_within_the_project(self, project, name):
        with pytest.raises(InputError, match="reports is"):
            project(f'[project]\nreports = "{name}"', entry("a", "laplace.toml"))

    def test_an_unwritable_folder_is_refused_before_any_work(self, project, monkeypatch):
        blocked = project.root / "file"
        blocked.write_text("")
        with pytest.raises(InputError, match="is no folder"):
            project(entry("Leaves"), reports=blocked / "below")
        monkeypatch.setattr(publishing.os, "access", lambda *_: False)
        with pytest.raises(InputError, match="read-only"):
            project(entry("Leaves"), reports=project.root / "new")
        assert not (project.root / "new").exists()

    def test_the_folder_of_the_caller_counts_for_its_own_paths(self, project, tmp_path):
        project(entry("a", "laplace.toml"), reports=Path("elsewhere"))
        assert (tmp_path / "elsewhere" / "a.json").exists()
        assert Path.cwd() == tmp_path

    def test_hostile_text_is_only_text(self, project):
        project(entry("a", "<script>alert(1)</script>|x.toml"))
        for name in ("index.html", "index.md"):
            assert "<script>" not in (project.root / "reports" / name).read_text()
