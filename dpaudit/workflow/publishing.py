"""Writing what a check found: certificates, reports and an index, all of them or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.certificate import Certificate
from dpaudit.project.project_file import ProjectFile
from dpaudit.reporting import renderer_for
from dpaudit.workflow.index import badge, index_html, index_markdown
from dpaudit.workflow.outcomes import ProjectOutcome

LIST = ".dpaudit-files.json"
"""Names the budgets, and the files that dpaudit wrote, and may therefore replace or remove."""


def refuse_unwritable(folder: Path, *, what: str = "reports") -> None:
    """Check, before any work, that a folder can be written or made. Makes nothing.

    Args:
        folder: that is to be written.
        what: it is for.

    Raises:
        InputError: if it cannot.
    """
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InputError(
            f"{what} {files.shown(folder)} cannot be made: {files.shown(there)} is no folder."
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"{what} {files.shown(folder)} cannot be written: {files.shown(there)} is read-only; "
            "give another folder."
        )


def rendered(
    name: str, certificate: Certificate, formats: Sequence[str]
) -> Mapping[str, str | bytes]:
    """The content of every file of a subject, by file name."""
    return {
        # Chosen by the ending alone: a name such as a.sarif must not change the format.
        f"{name}{ending}": renderer_for(f"report{ending}").render(certificate)
        for ending in formats
    }


def publish(outcome: ProjectOutcome, project: ProjectFile) -> tuple[Path, ...]:
    """Write every file into the folder of the reports; what a failed subject left there goes.

    Everything is first written to a folder beside, so that a full disk changes nothing. A list in
    the folder names what was written before; what is not on it is somebody else's.

    Raises:
        InputError: if the folder cannot be written, or holds a file of somebody else in the way.
    """
    contents: dict[str, str | bytes] = {
        "index.html": index_html(outcome),
        "index.md": index_markdown(outcome),
        "badge.svg": badge(outcome),
    }
    stale: set[str] = set()
    for row in outcome.subjects:
        contents |= row.files
        if not row.files:  # an older certificate must not pass for this one's
            stale |= {f"{row.name}{ending}" for ending in project.formats}
    try:
        _write_all(project, contents, stale)
    except OSError as error:
        raise InputError(
            f"reports {files.shown(project.reports)} cannot be written: {error.strerror}; give a "
            "writable folder."
        ) from None
    return tuple(project.reports / name for name in contents)


def _write_all(project: ProjectFile, contents: Mapping[str, str | bytes], stale: set[str]) -> None:
    folder = project.reports
    folder.mkdir(parents=True, exist_ok=True)
    own = _written_before(folder)
    beside = Path(tempfile.mkdtemp(dir=folder, prefix=".new-"))
    try:
        listed = sorted((own - stale) | contents.keys())
        budgets = [each.to_dict() for each in project.budgets]
        record = {"written by": "dpaudit", "files": listed, "budgets": budgets}
        for name, content in {**contents, LIST: files.pretty_json(record)}.items():
            files.write(beside / name, content)
        _refuse_foreign([folder / name for name in contents], own)
        for name in own & stale:
            (folder / name).unlink(missing_ok=True)
        for name in (*contents, LIST):
            (beside / name).replace(folder / name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _written_before(folder: Path) -> set[str]:
    """The names of the files that were written here before."""
    path = folder / LIST
    if not path.exists():
        return set()
    record = files.load_json(path, what="list of reports")
    names = record.get("files") if isinstance(record, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{files.shown(path)} is no list of reports; remove it.")
    return {name for name in names if Path(name).name == name}


def _refuse_foreign(paths: Sequence[Path], own: Collection[str]) -> None:
    """No file may take the place of a folder, or of a file that somebody else put there."""
    for path in paths:
        files.refuse_special(path)
        if path.exists() and path.name not in own:
            raise InputError(
                f"report {files.shown(path)} exists and was not written by dpaudit; move it away, "
                "or give another folder."
            )
