"""Starting a user's project from the templates of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.project.project_file import checked_name

SUFFIX = ".template"
"""Keeps tools from taking a template for code, and packagers from reading its dot files."""
_NAME = "@NAME@"
_OWN = re.compile(r"@DPAUDIT(\[[\w,]+\])?@")


class Kind(StrEnum):
    """What a new project is about."""

    RELEASE = "release"
    SURVEY = "survey"
    COUNTS = "counts"
    LIBRARY = "library"
    TRAINING = "training"


def scaffold(name: str, kind: Kind = Kind.RELEASE, *, within: Path | str = ".") -> tuple[Path, ...]:
    """Make a folder with a project that passes its own check.

    Args:
        name: of the folder and the project; no path.
        kind: what it is about.
        within: the folder to make it in.

    Returns:
        The files.

    Raises:
        InputError: if the name is no name of a folder, the folder holds something already, or it
            cannot be written. Nothing is left behind then.
    """
    folder = Path(within) / checked_name(name)
    _refuse_content(folder)
    beside = None
    try:
        beside = Path(tempfile.mkdtemp(dir=within, prefix=".dpaudit-"))
        _readable(beside)
        for path, text in templates(kind):
            (beside / path).parent.mkdir(parents=True, exist_ok=True)
            text = _OWN.sub(lambda found: _requirement(found[1] or ""), text)
            files.write(beside / path, text.replace(_NAME, name))
        with suppress(FileNotFoundError):
            folder.rmdir()  # an empty one
        beside.rename(folder)
    except OSError as error:
        raise InputError(
            f"folder {files.shown(folder)} cannot be made: {error.strerror}; choose another place."
        ) from None
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)
    return tuple(folder / path for path, _ in templates(kind))


def _requirement(extras: str) -> str:
    """Return what pip installs the running dpaudit from: the index, a repository, or a folder."""
    own = metadata.distribution("dpaudit")
    origin = json.loads(own.read_text("direct_url.json") or "{}")
    if not origin:
        return f"dpaudit{extras}=={own.version}"
    url, held = origin["url"], origin.get("vcs_info")
    if held is not None:
        return f"dpaudit{extras} @ {held['vcs']}+{url}@{held['commit_id']}"
    note = "# a place on this machine; name a repository or a release that others reach\n"
    return f"{note}dpaudit{extras} @ {url}"


def templates(kind: Kind) -> Iterator[tuple[PurePosixPath, str]]:
    """Path and text of every file: of every project, then of its kind."""
    folder = resources.files("dpaudit.project.scaffold")
    yield from _below(folder / "common", PurePosixPath())
    yield from _below(folder / kind, PurePosixPath())


def _below(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = entry.name
        if name.startswith("dot-"):
            name = f".{name.removeprefix('dot-')}"
        if entry.is_dir():
            yield from _below(entry, path / name)
        elif name.endswith(SUFFIX):
            yield path / name.removesuffix(SUFFIX), entry.read_text("utf-8")


def _refuse_content(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{files.shown(folder)} exists and is not a folder; choose another name.")
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"folder {files.shown(folder)} is not empty; choose another name.")


def _readable(folder: Path) -> None:
    """Temporary folders are for their owner alone; a project is not."""
    umask = os.umask(0)
    os.umask(umask)
    folder.chmod(0o777 & ~umask)
