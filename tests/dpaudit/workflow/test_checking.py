"""A whole project: rows, budgets, and subjects that break."""

import json

import pytest
from projects import CODE, budget, entry, visible

from dpaudit import Claim, Verdict
from dpaudit.certificate import Premise, Scope, Standing, load_certificate, verify
from dpaudit.cli.commands import exit_of_project
from dpaudit.reporting import suffixes
from dpaudit.workflow import publishing
from dpaudit.workflow.outcomes import Status


def rows(outcome):
    return {row.name: row for row in outcome.subjects}


def test_each_subject_has_a_certificate_and_a_report(project):
    outcome = project(
        '[project]\nformats = ["html", "md"]', entry("Sum"), entry("p", "laplace.toml")
    )
    reports = project.root / "reports"
    assert visible(reports) == [
        "Sum.html", "Sum.json", "Sum.md", "badge.svg", "index.html", "index.md", "p.html", "p.json",
        "p.md",
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


@pytest.mark.processes
def test_an_attack_that_ends_its_process_is_unproven_and_the_others_stand(project, tmp_path):
    code = tmp_path / "ends.py"
    code.write_text(
        "import os\ndef ends(data, rng):\n    os._exit(0)\n"
        "def scaled(data, rng, scale):\n    return data + rng.laplace(scale=scale)\n"
    )
    attack = "[[subject.audit]]\npair = [0.0, 1.0]\nruns = 1000\n"
    outcome = project(
        entry("Sum") + f'\n{attack}code = "{code}:ends"\n',
        entry("p", "laplace.toml")
        + f'\n{attack}code = "{code}:scaled"\narguments = {{ scale = 1.0 }}\n',
    )
    row, other = outcome.subjects
    assert "ended its process in runs 1 to 4 on x: exit status 0" in row.error
    assert (row.status, row.certificate) == (Status.UNPROVEN, None)
    assert [audit.refuted for audit in other.certificate.audits] == [False]
    assert exit_of_project(outcome) == 2
    assert any(row.error == text for _, text in publishing.remarks(outcome))


class TestRehearsal:
    """A certificate of the code, and what is said where there is none."""

    def test_code_that_follows_its_plan_is_certified_with_it(self, project):
        (row,) = project(entry("Runs", code="rehearsed")).subjects
        assert row.status is Status.CERTIFIED
        assert row.certificate.scope is Scope.CODE
        assert not row.unrehearsed

    def test_every_assumption_that_nobody_tested_is_told(self, project):
        outcome = project(entry("Runs", code="rehearsed"), entry("Sum"))
        standings = set()
        for row in outcome.subjects:
            lines = [line for line in told(outcome, row.name).splitlines() if "assumed" in line]
            for each in row.certificate.assumptions:
                said = [line for line in lines if str(each.premise) in line]
                assert len(said) == (each.alone.rank == Standing.ASSUMED.rank)
                assert not said or f". {each.evidence} " in said[0]  # and who decides what
                standings.add(each.standing)
        assert standings > {Standing.ENFORCED, Standing.TESTED, Standing.ASSUMED}
        assert len(lines) == 2  # names of persons, and one reason for all that was not rehearsed
        assert all(line.startswith("warning, only-assumed: ") for line in lines)

    def test_a_raw_value_in_the_result_leaves_nothing_certified(self, project):
        outcome = project(entry("ShowsTheLargest", code="rehearsed"))
        (row,) = outcome.subjects
        assert row.status is Status.UNPROVEN
        assert "result-not-from-releases" in row.certificate.disputed
        assert any("(summary, largest)" in text for _, text in publishing.remarks(outcome))
        verify(load_certificate(project.root / "reports" / "ShowsTheLargest.json"))

    @pytest.mark.parametrize(
        ("name", "reason"),
        [("Sum", "The subject has no run"), ("FailsOnItsData", "raised KeyError at code.py:")],
    )
    def test_what_cannot_be_rehearsed_is_no_certificate_of_it(self, project, name, reason):
        outcome = project(entry(name, code="rehearsed"))
        (row,) = outcome.subjects
        assert row.status is Status.UNPROVEN
        assert row.certificate.verdict is Verdict.UNPROVEN
        assert row.certificate.scope is Scope.PLAN
        verify(load_certificate(project.root / "reports" / f"{name}.json"))
        assert reason in row.unrehearsed
        assert "secret" not in str(row.to_dict())
        assert 'code = "not rehearsed"' in row.unrehearsed

    def test_a_plan_file_has_no_code(self, project):
        (row,) = project(entry("p", "laplace.toml")).subjects
        assert row.status is Status.CERTIFIED
        known = {each.premise: each.standing for each in row.certificate.assumptions}
        assert known.pop(Premise.LAWS) is Standing.ENFORCED
        assert set(known.values()) == {Standing.NOT_APPLICABLE}


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
        (entry("x", "code.py:half"), "is not a subject"),
        (entry("x", "nowhere.py:Sum"), "does not exist"),
        (entry("x", "nowhere_at_all:Sum"), "No module named 'nowhere_at_all'"),
        (entry("x", "syntax.py:Sum"), "cannot be imported: SyntaxError"),
        (entry("x", "leaves.py:Sum"), "cannot be imported: SystemExit at leaves.py:1: 3"),
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
    assert visible(reports) == ["badge.svg", "index.html", "index.md", "mine.txt"]


def test_what_no_auditor_can_attack_says_so(project):
    outcome = project(entry("Twice", None, "claim = { epsilon = 2 }"))
    certificate = rows(outcome)["Twice"].certificate
    assert certificate.audits == ()
    assert "No audit was made: the plan has 2 invocations" in certificate.not_covered[-1]
    assert outcome.status is Status.CERTIFIED
    assert "define audit_release; define it, or list a [[subject.audit]]" in told(outcome, "Twice")


@pytest.mark.parametrize(
    ("subject", "missing"),
    [
        (entry("x", "laplace.toml"), "a plan file has no code; list a [[subject.audit]]"),
        (entry("x", "code.py:Sum", "audit = []"), "lists none; remove audit = []"),
        (entry("x", "code.py:NothingProved"), "state a claim"),
        (entry("x", "code.py:Sum"), ""),
    ],
)
def test_a_subject_without_an_attack_says_what_is_missing(project, subject, missing):
    with (project.root / "code.py").open("a") as code:
        code.write(
            "class NothingProved(Unclaimed):\n"
            "    def plan(self):\n"
            "        about = PrivacyUnit('row'), AddRemove(), TrustModel.CENTRAL\n"
            "        return Plan.of(Invocation(Opaque('x', 1.0, 0.1), 1, *about))\n"
        )
    said = told(project(subject), "x")
    assert ("No audit was made: " in said) is bool(missing)
    assert missing in said


def told(outcome, name):
    return "\n".join(text for subject, text in publishing.remarks(outcome) if subject == name)


def test_a_claim_that_default_runs_cannot_refute_is_proved_all_the_same(project):
    outcome = project(entry("x", "code.py:Sum", "claim = { epsilon = 30, delta = 1e-6 }"))
    certificate = rows(outcome)["x"].certificate
    assert "No audit was made: runs is" in certificate.not_covered[-1]
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
    assert second.subject.location == "statistics.py:7"


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
