"""A new project: it passes its own check and its own tests, as a new user would try it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import yaml

from dpaudit import InputError, Ledger
from dpaudit.certificate import Premise, Standing, load_certificate
from dpaudit.project.project_file import read_project_file
from dpaudit.project.scaffold import scaffolding
from dpaudit.project.scaffold.scaffolding import Kind, scaffold
from dpaudit.project.targets import find_subject
from dpaudit.reporting import suffixes


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("new")
    scaffold("demo", within=folder)
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


def test_what_a_project_holds(demo):
    names = {str(path.relative_to(demo)) for path in demo.rglob("*") if path.is_file()}
    assert names >= {
        ".github/workflows/privacy.yml",
        ".gitignore",
        "README.md",
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


def test_it_passes_its_own_check(demo):
    code, out = run(demo, "dpaudit", "check")
    assert code == 0, out
    assert "2 certified; 1 of 1 budgets kept" in out
    assert max(map(len, out.splitlines())) <= 80
    certificate = load_certificate(demo / "reports" / "sleep-histogram.json")
    (audit,) = certificate.audits
    # The attack comes close to the truth, so it would have seen less noise.
    assert 0.3 < audit.epsilon_lower <= 0.5
    assert "float-noise" not in [finding.rule for finding in certificate.findings]
    assert certificate.rehearsal is not None
    assert len(certificate.rehearsal.neighbours) >= 8
    standings = {each.premise: each.standing for each in certificate.assumptions}
    assert standings[Premise.SENSITIVITY] is Standing.ENFORCED
    assert standings[Premise.RESULTS] is Standing.TESTED
    assert (demo / "reports" / "index.html").exists()


def test_it_passes_its_own_tests(demo):
    code, out = run(demo, "pytest", "-q", "-p", "no:cacheprovider", "--dp-runs", "5000")
    assert code == 0, out
    assert "3 passed" in out


def test_its_algorithm_runs(demo):
    subject = find_subject(f"{demo / 'survey.py'}:SleepHistogram", {"epsilon": 2.0})
    answers = demo / "answers.txt"
    answers.write_text("9\n" * 500)
    for source, expected in (("synthetic", 7), (str(answers), 9)):
        rng = np.random.default_rng(1)
        with Ledger(subject.plan(), rng=rng) as ledger:
            result = subject.run(subject.load(source, rng), ledger, rng)
        assert result.summary["most common"] == expected
    with pytest.raises(InputError, match="must hold whole numbers"):
        subject.load(str(demo / "README.md"), rng)


def test_its_code_is_clean(demo):
    for command in (("check",), ("format", "--check")):
        code, out = run(demo, "ruff", *command, "--isolated", "--line-length", "100", ".")
        assert code == 0, out


def test_the_workflow_is_yaml(demo):
    workflow = (demo / ".github/workflows/privacy.yml").read_text()
    steps = yaml.safe_load(workflow)["jobs"]["check"]["steps"]
    assert any("dpaudit check --since" in step.get("run", "") for step in steps)


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
            with pytest.raises(InputError, match="is no folder"):
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


class TestTraining:
    def test_it_passes_its_own_check(self, training):
        code, out = run(training, "dpaudit", "check")
        assert code == 0, out
        assert "1 certified" in out
        certificate = load_certificate(training / "reports" / "digits.json")
        (audit,) = certificate.audits
        assert 0.5 < audit.epsilon_lower < certificate.guarantee.epsilon < 2
        standings = {each.premise: each.standing for each in certificate.assumptions}
        assert standings[Premise.SENSITIVITY] is Standing.TESTED
        assert standings[Premise.NOISE] is Standing.TESTED

    def test_it_passes_its_own_tests(self, training):
        code, out = run(training, "pytest", "-q", "-p", "no:cacheprovider", "--dp-runs", "5000")
        assert code == 0, out
        assert "3 passed" in out

    def test_its_model_can_be_attacked(self, training):
        command = ("audit", "training.py:canaries", "--canaries", "20", "--epsilon", "2")
        code, out = run(training, "dpaudit", *command, "--delta", "1e-5")
        assert code == 0, out
        assert "one training with 20 canaries" in out

    def test_its_code_is_clean(self, training):
        for command in (("check",), ("format", "--check")):
            code, out = run(training, "ruff", *command, "--isolated", "--line-length", "100", ".")
            assert code == 0, out


@pytest.mark.parametrize("kind", [Kind.COUNTS, Kind.LIBRARY])
def test_further_kinds_pass_their_own_checks(tmp_path, kind):
    if kind is Kind.LIBRARY:
        pytest.importorskip("diffprivlib", exc_type=ImportError)
    scaffold("new", kind, within=tmp_path)
    folder = tmp_path / "new"
    code, out = run(folder, "dpaudit", "check")
    assert code == 0, out
    assert "1 certified; 1 of 1 budgets kept" in out
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
