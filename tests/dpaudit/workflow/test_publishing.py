"""The files of a project: all of them or none, and never those of others."""

from pathlib import Path

import pytest
from projects import entry, visible

from dpaudit import InputError
from dpaudit.workflow import publishing


def test_a_failure_to_write_changes_nothing(project, monkeypatch):
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


def test_a_folder_in_the_place_of_a_report_changes_nothing(project):
    project(entry("a", "laplace.toml"))
    reports = project.root / "reports"
    before = (reports / "index.md").read_bytes()
    (reports / "b.json").mkdir()
    with pytest.raises(InputError, match=r"b\.json' is a folder"):
        project(entry("a", "normal.toml"), entry("b", "laplace.toml"))
    assert (reports / "index.md").read_bytes() == before
    assert visible(reports) == ["a.json", "b.json", "badge.svg", "index.html", "index.md"]


def test_files_of_others_stay(project):
    reports = project.root / "reports"
    reports.mkdir()
    (reports / "a.json").write_text("{}")
    with pytest.raises(InputError, match=r"a\.json' exists but was not written by dpaudit"):
        project(entry("a", "laplace.toml"))
    project(entry("a", "code.py:Leaves"))  # a row that fails removes its own files alone
    assert visible(reports) == ["a.json", "badge.svg", "index.html", "index.md"]
    assert (reports / "a.json").read_text() == "{}"
    (reports / "a.json").unlink()
    project(entry("a", "laplace.toml"))
    project(entry("a", "laplace.toml"))  # its own may be replaced
    (reports / ".dpaudit-files.json").write_text('{"files": 3}')
    with pytest.raises(InputError, match="is not a list of reports"):
        project(entry("a", "laplace.toml"))


@pytest.mark.parametrize("name", ["../elsewhere", "/tmp", "\\u0000", "x" * 300])
def test_reports_stay_within_the_project(project, name):
    with pytest.raises(InputError, match="reports is"):
        project(f'[project]\nreports = "{name}"', entry("a", "laplace.toml"))


def test_an_unwritable_folder_is_refused_before_any_work(project, monkeypatch):
    blocked = project.root / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="is not a folder; give another folder"):
        project(entry("Leaves"), reports=blocked / "below")
    monkeypatch.setattr(publishing.os, "access", lambda *_: False)
    with pytest.raises(InputError, match="read-only"):
        project(entry("Leaves"), reports=project.root / "new")
    assert not (project.root / "new").exists()


def test_the_folder_of_the_caller_counts_for_its_own_paths(project, tmp_path):
    project(entry("a", "laplace.toml"), reports=Path("elsewhere"))
    assert (tmp_path / "elsewhere" / "a.json").exists()
    assert Path.cwd() == tmp_path


def test_hostile_text_is_only_text(project):
    project(entry("a", "<script>alert(1)</script>|x.toml"))
    for name in ("index.html", "index.md"):
        assert "<script>" not in (project.root / "reports" / name).read_text()
