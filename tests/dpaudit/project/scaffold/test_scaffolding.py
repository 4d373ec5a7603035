"""A new project: it passes its own check and its own tests, as a new user would try it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from workflows import Job, jobs

from dpaudit import InputError, Ledger
from dpaudit.certificate import Premise, Scope, Standing, load_certificate
from dpaudit.project.project_file import read_project_file
from dpaudit.project.scaffold import scaffolding
from dpaudit.project.scaffold.scaffolding import Kind, scaffold
from dpaudit.project.targets import find_target
from dpaudit.reporting import suffixes
from dpaudit.sealed.sandbox import lacking


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    pytest.importorskip("duckdb")
    folder = tmp_path_factory.mktemp("new")
    scaffold("demo", Kind.SURVEY, within=folder)
    return folder / "demo"


def run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=os.environ | {"COLUMNS": "80", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def worked(folder, temp, **github):
    """The project's workflow, step by step, as its host would run it after a push."""
    (job,) = jobs(folder / ".github/workflows/privacy.yml").values()
    quick = {"PYTEST_ADDOPTS": "-q -p no:cacheprovider --dp-runs 5000"}
    quick |= {"COLUMNS": "80", "OMP_NUM_THREADS": "1"}
    made = Job(folder, temp, {"github": {"event_name": "push"} | github}, quick)
    return made.perform(job["steps"], job["env"])


@pytest.fixture(scope="module")
def pushed(demo, tmp_path_factory):
    return worked(demo, tmp_path_factory.mktemp("machine"))


def test_what_a_project_holds(demo):
    names = {str(path.relative_to(demo)) for path in demo.rglob("*") if path.is_file()}
    assert names >= {
        ".github/workflows/privacy.yml",
        ".gitignore",
        "README.md",
        "answers.csv",
        "dpaudit.toml",
        "plans/monthly.toml",
        "pytest.ini",
        "requirements.txt",
        "survey.py",
        "tests/test_survey.py",
    }
    assert (demo / "README.md").read_text().startswith("# demo\n")
    assert not [name for name in names if "template" in name or "@" in name]
    assert "@NAME@" not in "".join(path.read_text() for path in demo.rglob("*.*") if path.is_file())
    assert len(read_project_file(demo, suffixes()).subjects) == 2
    assert demo.stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


@pytest.mark.pages
def test_its_workflow_passes_as_it_is(demo, pushed):
    assert [(step.name, step.said) for step in pushed.done if step.code] == []
    assert not pushed.failed
    assert [step.name for step in pushed.done] == [
        "actions/checkout@v4",
        "actions/setup-python@v5",
        "pip install -r requirements.txt",
        "Let the code of sealed subjects be confined",
        "dpaudit check",
        "pytest",
        "Show the table on the page of this run",
        "Keep the reports, and the badge",
        "Write what code scanning reads",
        "Show the findings in the pull request",
    ]
    assert "2 certified; 1 of 1 budgets kept" in pushed.summary
    assert "3 passed" in pushed.by_name["pytest"].said
    kept = Path(pushed.by_name["Keep the reports, and the badge"].given["path"])
    assert ">certified<" in (kept / "badge.svg").read_text("utf-8")
    given = pushed.by_name["Show the findings in the pull request"].given
    runs = json.loads(Path(given["sarif_file"]).read_text("utf-8"))["runs"]
    assert len({each["automationDetails"]["id"] for each in runs}) == 2


@pytest.mark.pages
def test_it_passes_its_own_check(demo, pushed):
    out = pushed.by_name["dpaudit check"].said
    assert "2 certified; 1 of 1 budgets kept" in out
    assert "monthly-sum: No audit was made: a plan file has no code" in out
    assert max(map(len, out.splitlines())) <= 80
    reports = demo / "out" / "reports"
    certificate = load_certificate(reports / "sleep-histogram.json")
    (audit,) = certificate.audits
    # The attack comes close to the truth, so it would have seen less noise.
    assert 0.3 < audit.epsilon_lower <= 0.5
    assert "float-noise" not in [finding.rule for finding in certificate.findings]
    standings = {each.premise: each.standing for each in certificate.assumptions}
    if lacking():
        assert "not-sealed" in [finding.rule for finding in certificate.findings]
    else:
        assert certificate.scope is Scope.SEALED
        assert standings[Premise.SENSITIVITY] is Standing.ENFORCED
        assert standings[Premise.RESULTS] is Standing.ENFORCED
    assert (reports / "index.html").exists()


@pytest.fixture(scope="module")
def hosted(demo, tmp_path_factory):
    """A repository of one plan, with its reports and the workflow."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    origin = tmp_path_factory.mktemp("hosted") / "origin"
    shutil.copytree(demo / ".github", origin / ".github")
    (origin / "requirements.txt").write_text("pytest\n")
    (origin / "tests").mkdir()
    (origin / "tests" / "test_it.py").write_text("def test_nothing(): pass\n")
    listed = '[[subject]]\nname = "sum"\ntarget = "plan.toml"\n'
    (origin / "dpaudit.toml").write_text(f"[project]\nformats = []\n{listed}")
    write_plan(origin, 2.0)
    assert run(origin, "dpaudit", "check")[0] == 0
    for words in (
        f"init -q -b main {origin}",
        f"-C {origin} add .",
        f"-C {origin} -c user.name=a -c user.email=a@b.c commit -q -m before",
    ):
        subprocess.run(["git", *words.split()], check=True)
    return origin


def write_plan(folder, scale):
    text = '[plan]\nrelation = "add-remove"\n[claim]\nepsilon = 1\n[[invocation]]\n'
    text += f'mechanism = "laplace"\nscale = {scale}\nsensitivity = 1\n'
    (folder / "plan.toml").write_text(text)


@pytest.mark.pages
@pytest.mark.parametrize(("scale", "code"), [(1.5, 1), (2.0, 0)])
def test_less_privacy_than_before_is_red_and_told(hosted, tmp_path, scale, code):
    branch = tmp_path / "branch"
    subprocess.run(["git", "clone", "-q", hosted, branch], check=True)
    write_plan(branch, scale)
    facts = {"event_name": "pull_request", "base_ref": "main"}
    job = worked(branch, tmp_path / "machine", **facts)
    assert [step.code for step in job.done if step.name == "dpaudit check"] == [code]
    assert job.failed is bool(code)
    assert ("pytest" in job.by_name) is not bool(code)
    assert ("(worse)" in job.summary) is bool(code)
    assert Path(job.by_name["Show the findings in the pull request"].given["sarif_file"])
    kept = Path(job.by_name["Keep the reports, and the badge"].given["path"])
    told = ">certified, worse than before<" if code else ">certified<"
    assert told in (kept / "badge.svg").read_text("utf-8")


def test_its_algorithm_runs(demo):
    target = find_target(f"{demo / 'survey.py'}:SleepHistogram", {"epsilon": 2.0})
    nines = demo / "nines.csv"
    nines.write_text("person,hours\n" + "\n".join(f"p{n},9" for n in range(500)))
    for source, expected in (("answers.csv", 7), (str(nines), 9)):
        rng = np.random.default_rng(1)
        held = target.subject.load(source, rng)
        with held.stack, Ledger(target.plan, rng=rng) as ledger:
            result = target.subject.run(held, ledger, rng)
        assert result.summary["most common"] == expected
        assert sum(result.summary["counts"]) == pytest.approx(500 if expected == 9 else 80, abs=30)
        assert result.owner.summary["people who answered"] in (80, 500)


def test_its_code_is_clean(demo):
    for command in (("check",), ("format", "--check")):
        code, out = run(demo, "ruff", *command, "--isolated", "--line-length", "100", ".")
        assert code == 0, out


class TestRefusals:
    def test_a_folder_with_content(self, tmp_path):
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine.txt").write_text("a note")
        with pytest.raises(InputError, match="not empty"):
            scaffold("full", within=tmp_path)
        assert [path.name for path in tmp_path.rglob("*")] == ["full", "mine.txt"]

    def test_an_empty_folder_is_used(self, tmp_path):
        (tmp_path / "empty").mkdir()
        scaffold("empty", within=tmp_path)
        assert (tmp_path / "empty" / "dpaudit.toml").exists()
        assert [path.name for path in tmp_path.iterdir()] == ["empty"]

    def test_a_file_or_a_link_of_that_name(self, tmp_path):
        (tmp_path / "file").write_text("")
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        for name in ("file", "link"):
            with pytest.raises(InputError, match="is not a folder"):
                scaffold(name, within=tmp_path)
        assert not (tmp_path / "nowhere").exists()

    @pytest.mark.parametrize("name", ["../out", "/tmp/x", ".", "..", "", "a/b", "-f", ".git"])
    def test_names_that_are_paths(self, tmp_path, name):
        with pytest.raises(InputError, match="name is"):
            scaffold(name, within=tmp_path)
        assert not list(tmp_path.iterdir())

    def test_nothing_is_left_behind_when_writing_fails(self, tmp_path, monkeypatch):
        def full_disk(path, content):
            raise InputError("output cannot be written: no space left.")

        monkeypatch.setattr(scaffolding.files, "write", full_disk)
        with pytest.raises(InputError, match="no space left"):
            scaffold("new", within=tmp_path)
        assert not list(tmp_path.iterdir())

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        with pytest.raises(InputError, match="cannot be made"):
            scaffold("new", within=tmp_path / "nowhere")


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    pytest.importorskip("opacus")
    folder = tmp_path_factory.mktemp("new")
    scaffold("demo", Kind.TRAINING, within=folder)
    return folder / "demo"


@pytest.mark.pages
class TestTraining:
    def test_its_workflow_passes_as_it_is(self, training, tmp_path):
        job = worked(training, tmp_path / "machine")
        assert [(step.name, step.said) for step in job.done if step.code] == []
        assert "1 certified" in job.summary
        assert "3 passed" in job.by_name["pytest"].said
        certificate = load_certificate(training / "out" / "reports" / "digits.json")
        (audit,) = certificate.audits
        assert 0.5 < audit.epsilon_lower < certificate.guarantee.epsilon < 2
        standings = {each.premise: each.standing for each in certificate.assumptions}
        assert standings[Premise.SENSITIVITY] is Standing.TESTED
        assert standings[Premise.NOISE] is Standing.ENFORCED

    def test_its_model_can_be_attacked(self, training):
        command = ("audit", "training.py:canaries", "--canaries", "20", "--epsilon", "2")
        code, out = run(training, "dpaudit", *command, "--delta", "1e-5")
        assert code == 0, out
        assert "one training with 20 canaries" in out

    def test_its_code_is_clean(self, training):
        for command in (("check",), ("format", "--check")):
            code, out = run(training, "ruff", *command, "--isolated", "--line-length", "100", ".")
            assert code == 0, out


@pytest.mark.pages
@pytest.mark.parametrize("kind", [Kind.RELEASE, Kind.COUNTS, Kind.LIBRARY])
def test_the_workflows_of_further_kinds_pass_as_they_are(tmp_path, kind):
    if kind is Kind.LIBRARY:
        pytest.importorskip("diffprivlib", exc_type=ImportError)
    if kind in (Kind.RELEASE, Kind.COUNTS):
        pytest.importorskip("duckdb")
    scaffold("new", kind, within=tmp_path)
    folder = tmp_path / "new"
    job = worked(folder, tmp_path / "machine")
    assert [(step.name, step.said) for step in job.done if step.code] == []
    assert "1 certified; 1 of 1 budgets kept" in job.summary
    for command in (("check",), ("format", "--check")):
        code, out = run(folder, "ruff", *command, "--isolated", "--line-length", "100", ".")
        assert code == 0, out


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, "dpaudit[secure]==0"),
        (
            {"url": "https://a.b/c", "vcs_info": {"vcs": "git", "commit_id": "1f"}},
            "git+https://a.b/c@1f",
        ),
        ({"url": "file:///somewhere", "dir_info": {}}, "dpaudit[secure] @ file:///somewhere"),
    ],
)
def test_requirements_name_where_dpaudit_came_from(monkeypatch, origin, wanted):
    class Installed:
        version = "0"

        def read_text(self, name):
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(scaffolding.metadata, "distribution", lambda name: Installed())
    assert wanted in scaffolding._requirement("[secure]")
