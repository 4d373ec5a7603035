"""Writing what a check found: certificates, reports and an index, all of them or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dpaudit import files
from dpaudit.certificate import Certificate
from dpaudit.errors import InputError
from dpaudit.project.project_file import ProjectFile
from dpaudit.reporting import renderer_for
from dpaudit.workflow.index import index_html, index_markdown
from dpaudit.workflow.outcomes import ProjectOutcome

__all__ = ["publish", "refuse_unwritable", "rendered"]


def refuse_unwritable(folder: Path) -> None:
    """Check, before any work, that a folder can be written or made. Makes nothing.

    Raises:
        InputError: if it cannot.
    """
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InputError(f"reports {str(folder)!r} cannot be made: {str(there)!r} is no folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"reports {str(folder)!r} cannot be written: {str(there)!r} is read-only; give another "
            "folder."
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

    Everything is first written to a folder beside, so that a full disk changes nothing.

    Raises:
        InputError: if the folder cannot be written.
    """
    contents: dict[str, str | bytes] = {
        "index.html": index_html(outcome),
        "index.md": index_markdown(outcome),
    }
    stale = []
    for row in outcome.subjects:
        contents |= row.files
        if not row.files:  # an older certificate must not pass for this one's
            stale += [project.reports / f"{row.name}{ending}" for ending in project.formats]
    _write_all(project.reports, contents, stale)
    return tuple(project.reports / name for name in contents)


def _write_all(folder: Path, contents: Mapping[str, str | bytes], stale: Sequence[Path]) -> None:
    with _refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=folder, prefix=".new-"))
        try:
            for name, content in contents.items():
                files.write(beside / name, content)
            _refuse_folders([*(folder / name for name in contents), *stale])
            for path in stale:
                path.unlink(missing_ok=True)
            for name in contents:
                (beside / name).replace(folder / name)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _refuse_folders(paths: Sequence[Path]) -> None:
    """No file can take the place of a folder."""
    for path in paths:
        if path.is_dir():
            raise InputError(f"report {str(path)!r} is a folder; move it away.")


@contextmanager
def _refusals(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"reports {str(folder)!r} cannot be written: {error.strerror}; give a writable folder."
        ) from None
