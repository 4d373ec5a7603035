"""What a project of a sealed subject may hold beside its code, and what of it anybody runs."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.base import applications, file_content, files
from dpaudit.base.errors import InputError
from dpaudit.project import targets
from dpaudit.project.own_files import code_hash
from dpaudit.project.project_file import Code, SubjectEntry
from dpaudit.project.targets import code_files
from dpaudit.sealed import public_files, sandbox
from dpaudit.workflow.certifying import certify_target
from dpaudit.workflow.checking import certify_entry
from dpaudit.workflow.running import run_subject
from dpaudit.workflow.sealing import is_sealable, sealed_run

pytest.importorskip("duckdb")

CODE = """
{first}
from dataclasses import dataclass
from pathlib import Path
from dpaudit import AddRemove, Claim, Contribution, DiscreteLaplace, Invocation, Plan, PrivacyUnit
from dpaudit import RunResult, SealedSubject, Table, TrustModel


@dataclass(frozen=True)
class Counts(SealedSubject):
    public_files = {public}

    def table(self):
        return Table("visits.csv", "person", {{"n": {{"type": "integer", "range": [0, 9]}}}})

    def plan(self):
        about = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
        one = Contribution(1.0, rows=1)
        return Plan.of(Invocation.bounded(DiscreteLaplace(1.0), one, *about, at="rows"))

    def claim(self):
        return Claim(1.0)

    def run(self, data, ledger, rng):
        seen = [path.read_text() for path in Path(__file__).parent.rglob("*") if path.is_file()]
        return RunResult({{"seen": "".join(seen), "rows": int(ledger.count(data, at="rows"))}})
"""
ROWS = "person,n\nann,1\nbob,2\n"
HIDDEN = "person,n\nsmith,7\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if why := sandbox.lacking():
        pytest.skip(why)
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "visits.csv").write_text(ROWS)
    (tmp_path / "hidden.csv").write_text(HIDDEN)
    return folder


def written(folder: Path, *, first: str = "", public: str = "()") -> str:
    (folder / "counts.py").write_text(CODE.format(first=first, public=public))
    return f"{folder / 'counts.py'}:Counts"


@pytest.mark.parametrize("found", [False, True])
def test_no_extension_of_a_project_is_run_beside_its_table(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    if found:  # as by python -m, whose folder is the current one
        monkeypatch.syspath_prepend(str(project))
    mark = tmp_path / "ran"
    (project / "theirs.py").write_text(f"import pathlib; pathlib.Path({str(mark)!r}).touch()")
    about = project / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dpaudit.extensions]\nx = theirs\n")
    applications._load_extensions.cache_clear()
    name = written(project)
    run_subject(name, (), None, 1, tmp_path / "out")
    code_files(name)
    assert (str(project) in sys.path) is found
    assert not mark.exists()


@pytest.mark.parametrize("target", ["hidden.csv", "project/visits.csv", "elsewhere.py"])
def test_a_link_among_the_code_leads_nowhere(project: Path, tmp_path: Path, target: str) -> None:
    (project / "package").mkdir()
    (project / "package" / "__init__.py").touch()
    (tmp_path / "elsewhere.py").write_text("KEY = 1")
    (project / "package" / "rows.py").symlink_to(tmp_path / target)
    with pytest.raises(InputError, match=r"file 'rows\.py' is a link that leads out of the code"):
        run_subject(written(project, first="import package"), (), None, 1, tmp_path / "out")


def test_modules_are_kept_from_links_too(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = project / "wards_of_links"
    package.mkdir()
    (package / "__init__.py").touch()
    written(package)
    (package / "rows.py").symlink_to(tmp_path / "hidden.csv")
    monkeypatch.chdir(project)
    with pytest.raises(InputError, match="is a link that leads out of the code"):
        run_subject("wards_of_links.counts:Counts", (), None, 1, tmp_path / "out")


def test_the_log_of_a_duckdb_file_is_the_table_too(project: Path, tmp_path: Path) -> None:
    name = written(project, public="('visits.duckdb.wal',)")
    code = project / "counts.py"
    text = code.read_text("utf-8").replace('"visits.csv"', '"visits.duckdb"')
    code.write_text(text.replace("9]}})", "9]}}, table='t')"), "utf-8")
    for file in ("visits.duckdb", "visits.duckdb.wal"):
        (project / file).touch()
    with pytest.raises(InputError, match=r"'visits\.duckdb\.wal' is the table itself"):
        run_subject(name, (), None, 1, tmp_path / "out")


def test_the_declared_table_is_not_public_where_another_is_read(
    project: Path, tmp_path: Path
) -> None:
    name, other = written(project, public="('visits.csv',)"), str(tmp_path / "hidden.csv")
    with pytest.raises(InputError, match=r"'visits\.csv' is the table itself"):
        run_subject(name, (), other, 1, tmp_path / "out")
    certificate, _ = run_subject(written(project), (), other, 1, tmp_path / "out")
    assert certificate.run is not None
    assert "ann" not in certificate.run["summary"]["seen"]


def test_code_that_denies_what_it_is_runs_nowhere_else(project: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    first = f"""
from pathlib import Path
from dpaudit.base.errors import OtherSubjectError

if not Path("/proc/1").exists():
    raise OtherSubjectError("not I")
Path({str(mark)!r}).touch()
"""
    entry = SubjectEntry(name="x", target=written(project, first=first), code=Code.SEALED)
    with pytest.raises(InputError, match="this is not a SealedSubject"):
        certify_entry(entry)
    assert not mark.exists()
    with pytest.raises(
        InputError, match="is a SealedSubject, but one has to run its file to see this"
    ):
        certify_entry(replace(entry, code=Code.REHEARSED))
    with pytest.raises(
        InputError, match="is a SealedSubject, but one has to run its file to see this"
    ):
        certify_target(entry.target, (), None, "best", rehearse=True)


def test_code_that_denies_what_it_is_later_fails(project: Path, tmp_path: Path) -> None:
    name = written(project)
    file = project / "counts.py"
    denial = "ledger.count(data, at='rows')\n        from dpaudit.base import errors\n"
    text = file.read_text().replace(
        "seen = [", f"{denial}        raise errors.OtherSubjectError('not I')\n        seen = ["
    )
    file.write_text(text)
    with pytest.raises(InputError, match=r"not I\. Earlier releases stay charged \(releases: 1\)"):
        run_subject(name, (), None, 1, tmp_path / "out", sealed=True)


def test_what_no_certificate_can_say_releases_nothing(project: Path, tmp_path: Path) -> None:
    name = written(project)
    file = project / "counts.py"
    file.write_text(file.read_text().replace("Contribution(1.0, rows=1)", "Contribution(1e12)"))
    with pytest.raises(InputError, match="sensitivity is 1000000000000"):
        run_subject(name, (), None, 1, tmp_path / "out", sealed=True)
    assert not (tmp_path / "out" / "ledger.jsonl").exists()


def test_answers_are_held_to_no_sensitivity_of_a_mechanism_s_own(
    project: Path, tmp_path: Path
) -> None:
    name = written(project)
    file = project / "counts.py"
    text = file.read_text()
    start, end = text.index("        about ="), text.index("    def claim")
    plan = """        from dpaudit import ReplaceOne
        from dpaudit.mechanisms import LaplaceVector
        about = (PrivacyUnit("person"), ReplaceOne(), TrustModel.LOCAL)
        own = LaplaceVector((1.0,), (0.01,))
        return Plan.of(Invocation(own, 1.0, *about, at="rows", total=2))

"""
    text = text[:start] + plan + text[end:]
    text = text.replace("9]}})", '9]}}, roster=("ann", "bob"))')
    text = text.replace(
        'int(ledger.count(data, at="rows"))',
        'ledger.answers(data.vector(["n"]), default=[0], at="rows")[0].tolist()',
    )
    file.write_text(text)
    with pytest.raises(InputError, match="states by itself how far a unit may move its answer"):
        run_subject(name, (), None, 1, tmp_path / "out", sealed=True)


def between(monkeypatch: pytest.MonkeyPatch, path: Path, before: Any, after: Any) -> None:
    """Do something after a file was found and before it is opened, and something after that."""
    read = file_content.read_without_links

    def reading(real: Path, limit: int) -> Any:
        if real != path:
            return read(real, limit)
        before()
        try:
            return read(real, limit)
        finally:
            after()

    monkeypatch.setattr(file_content, "read_without_links", reading)


def swaps(own: Path, other: Path) -> dict[str, Callable[[], None]]:
    """Ways to put a file, or the folder of one, in the place of a file of code or a public one."""

    def link() -> None:
        own.unlink()
        own.symlink_to(other)

    def folder() -> None:
        shutil.copy(other, own.with_name("theirs"))
        beside = own.parent.with_name("beside")
        beside.mkdir()
        shutil.copy(other, beside / own.name)
        own.parent.rename(own.parent.with_name("before"))
        own.parent.symlink_to(beside)

    def pipe() -> None:
        own.unlink()
        os.mkfifo(own)

    return {"link": link, "folder": folder, "pipe": pipe}


@pytest.mark.parametrize("way", ["link", "folder", "pipe"])
def test_code_that_is_swapped_for_a_link_is_not_copied(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (project / "package").mkdir()
    (project / "package" / "__init__.py").touch()
    rows = project / "package" / "rows.py"
    rows.write_text("KEY = 1")
    swap = swaps(rows, tmp_path / "hidden.csv")[way]
    between(monkeypatch, rows, swap, lambda: None)
    with pytest.raises(InputError, match=r"'rows\.py' cannot be read as code of its folder"):
        run_subject(written(project, first="import package"), (), None, 1, tmp_path / "out")


@pytest.mark.parametrize("times", [1, 2])
def test_a_link_that_is_exchanged_while_it_is_followed_is_one_sentence(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    name = written(project, first="import rows")
    rows = project / "rows.py"
    rows.write_text("KEY = 1")
    real, followed = Path.resolve, iter(range(1, 10))

    def exchanged(path: Path, strict: bool = False) -> Path:
        if path == rows and next(followed) == times:
            raise OSError(errno.EINVAL, "Invalid argument")  # of readlink, as it is no link now
        return real(path, strict)

    monkeypatch.setattr(Path, "resolve", exchanged)
    with pytest.raises(InputError, match=r"(files of the code|'rows\.py') cannot be"):
        run_subject(name, (), None, 1, tmp_path / "out")


def test_what_is_certified_is_the_code_that_was_copied(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = written(project)
    code = project / "counts.py"
    expected = code_hash("counts", code)
    between(monkeypatch, code, lambda: None, lambda: code.write_text("raise SystemExit"))
    certificate, _ = run_subject(name, (), None, 1, tmp_path / "out")
    assert certificate.subject.code_hash == expected
    assert code_hash("counts", code) != expected


@pytest.mark.parametrize("way", ["link", "folder", "pipe"])
def test_a_public_file_that_is_swapped_for_a_link_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (tmp_path / "project" / "in").mkdir(parents=True)
    public = tmp_path.resolve() / "project" / "in" / "prices.csv"
    public.write_text("1")
    (tmp_path / "hidden.csv").write_text(HIDDEN)
    assert public_files.read_public(tmp_path / "project", "in/prices.csv")[1].data == b"1"
    between(monkeypatch, public, swaps(public, tmp_path / "hidden.csv")[way], lambda: None)
    with pytest.raises(
        InputError, match=r"'in/prices\.csv' is not a file in the folder of the code"
    ):
        public_files.read_public(tmp_path / "project", "in/prices.csv")


def test_a_public_file_that_becomes_the_table_ends_the_run(project: Path) -> None:
    """Its name is not that of the table when it is read, and its inode is, later."""
    (project / "visits.csv").rename(project / "prices.csv")
    name = written(project, public="('prices.csv',)")
    with sealed_run(name, {}, [project], lambda text: None) as run:
        (project / "prices.csv").rename(project / "visits.csv")
        with pytest.raises(InputError, match=r"'prices\.csv' is the table itself"):
            run.load({"seed": 1, "data": None}, tuple)


def test_public_files_lie_beside_code_in_a_folder_of_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code imports from above, so that the copy begins there."""
    (project / "shared_above.py").write_text("KEY = 1")
    monkeypatch.syspath_prepend(str(project))
    inner = project / "inner"
    inner.mkdir()
    shutil.move(project / "visits.csv", inner)
    (inner / "prices.txt").write_text("19 francs")
    name = written(inner, first="import shared_above", public="('prices.txt', 'counts.py')")
    certificate, _ = run_subject(name, (), None, 1, tmp_path / "out")
    assert certificate.run is not None
    assert "19 francs" in certificate.run["summary"]["seen"]
    assert "ann" not in certificate.run["summary"]["seen"]
    assert certificate.seal is not None
    assert certificate.seal.files["counts.py"] == files.sha256((inner / "counts.py").read_bytes())


def test_imports_are_walked_once_by_a_run_and_never_to_ask_whether_it_is_sealed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked = []
    walk = targets.own_files
    monkeypatch.setattr(targets, "own_files", lambda *of: walked.append(of) or walk(*of))
    name = written(project)
    assert is_sealable(name)
    assert walked == []
    run_subject(name, (), None, 1, tmp_path / "out")
    assert len(walked) == 1


@pytest.mark.parametrize(
    ("first", "subject", "said"),
    [
        (
            "raise KeyError(__file__)",
            "Counts",
            "FILE cannot be imported: KeyError at counts.py:2: 'FILE'.",
        ),
        ("", "Other", "FILE has no 'Other'; it must be one of Counts."),
        ("", "Counts.run", "FILE:Counts.run is not a subject"),
    ],
)
@pytest.mark.parametrize("named", ["counts.py", ""])
def test_an_error_names_the_file_as_its_user_does(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    subject: str,
    said: str,
    named: str,
) -> None:
    written(project, first=first)
    monkeypatch.chdir(project)
    file = named or str(project / "counts.py")
    with pytest.raises(InputError) as refused:
        run_subject(f"{file}:{subject}", (), None, 1, tmp_path / "out")
    assert said.replace("FILE", file) in str(refused.value)
    assert "dpaudit-code" not in str(refused.value)
