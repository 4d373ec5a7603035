"""Which files of a project a piece of its code consists of, and their hash.

It is found by reading, which runs none of them.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from dpaudit.base import files
from dpaudit.base.errors import InputError

_INSTALLED = {"site-packages", "dist-packages"}
_PYTHON = Path(sysconfig.get_path("stdlib")).resolve()


def code_hash(module: str, file: Path) -> str:
    """SHA-256 of the :func:`own_files` of a module.

    Args:
        module: dotted name, or that of a file.
        file: where it stands.
    """
    return combined_hash(path.read_bytes() for path in sorted(own_files(module, file)))


def is_of_author(module: str, file: Path) -> bool:
    """Tell whether a file of code is the project's own: not of Python, dpaudit, or installed."""
    own = module.partition(".")[0] != "dpaudit" and not _is_foreign(file)
    return own and file.suffix == ".py" and file.is_file()


def _is_foreign(place: Path) -> bool:
    """Tell whether a path is of Python itself, or installed."""
    return bool(_INSTALLED & set(place.parts)) or place.resolve().is_relative_to(_PYTHON)


def combined_hash(contents: Iterable[bytes]) -> str:
    """SHA-256 of the hashes of files, of which these are the contents in the order of paths."""
    combined = hashlib.sha256()
    for content in contents:
        combined.update(hashlib.sha256(content).digest())
    return combined.hexdigest()


def own_files(module: str, file: Path) -> set[Path]:
    """Every Python file of a module's package, and of what it imports beside it.

    A module without a package is its one file. Imported files count where they are the project's
    own: found from the folder that the module is imported from, or one above or below it, and
    neither installed nor part of Python or of dpaudit, whose versions a certificate names.

    Args:
        module: dotted name, or that of a file.
        file: where it stands.
    """
    root, _, rest = module.partition(".")
    top = getattr(sys.modules.get(root), "__file__", None)
    package = Path(top).resolve().parent if rest and top else None
    base = file.resolve().parent if package is None else package.parent
    found = {file.resolve()} if package is None else set(package.rglob("*.py"))
    pending = list(found)
    while pending:
        for name in imported_names(pending.pop()):
            new = set(_files_of(name, base)) - found
            found |= new
            pending += new
    return found


def imported_names(path: Path) -> frozenset[str]:
    """First parts of the names that a file imports anywhere.

    Raises:
        InputError: if it cannot be read for its depth.
    """
    return _imported(*_state(path))


def _state(path: Path) -> tuple[Path, int, int]:
    """The file as it is now, so that what was read of it can be remembered."""
    stat = path.stat()
    return path, stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=4096)
def _imported(path: Path, _modified: int, _size: int) -> frozenset[str]:
    """First parts of the names that a file imports anywhere; relative ones stay in the package."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return frozenset()  # whoever needs it cannot have been imported
    except (MemoryError, RecursionError):  # what it imports would be in no hash
        raise InputError(
            f"file {files.shown(path)} is nested too deeply to be read; simplify it."
        ) from None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return frozenset(names - {"dpaudit"})


def _files_of(name: str, base: Path) -> Iterator[Path]:
    """The files of a module or package of that name, if it belongs to the project."""
    for place in _places(name):
        own = place.parent
        inside = own.is_relative_to(base) or base.is_relative_to(own)
        # Python and what is installed may stand in a folder of the project.
        if not inside or _is_foreign(place):
            continue
        if place.is_dir():
            yield from place.rglob("*.py")
        elif place.suffix == ".py":
            yield place


def _places(name: str) -> Iterator[Path]:
    """Its file, or its folders; a name that is not loaded is found, not imported."""
    loaded = sys.modules.get(name)
    try:
        spec = importlib.util.find_spec(name) if loaded is None else None
    except (ImportError, ValueError):
        return
    folders, file = getattr(loaded, "__path__", None), getattr(loaded, "__file__", None)
    if spec is not None:
        folders, file = spec.submodule_search_locations, spec.origin if spec.has_location else None
    if folders:
        yield from (Path(folder).resolve() for folder in folders)
    elif file:
        yield Path(file).resolve()
