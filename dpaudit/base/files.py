"""Reading and writing files so that bad input is one sentence and no file is ever half-written.

Every room reads and writes through it. A file is regular and not too long, JSON has no key twice,
and what is written is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PublicError

MAX_BYTES = 4_000_000
"""Plans are small; a larger file is a mistake, not a plan."""
MAX_JSON_BYTES = 20_000_000
"""A certificate holds its plan, in more words."""

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN."""
    return _CANONICAL.encode(value)


def digest(value: Any) -> str:
    """Hash the canonical JSON by SHA-256, to 64 hexadecimal digits."""
    return sha256(canonical_json(value).encode())


def sha256(data: bytes) -> str:
    """Hash bytes by SHA-256, to 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def read_text(path: Path | str, *, what: str, limit: int = MAX_BYTES) -> str:
    """Return the text of a file.

    Raises:
        InputError: if it is missing, too large, or not UTF-8 text.
    """
    data = read_bytes(path, what=what, limit=limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PublicError(f"{what} {shown(path)} is not UTF-8 text; save it as UTF-8.") from None


def read_bytes(path: Path | str, *, what: str, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        InputError: if it is missing, too large, or not a regular file.
    """
    with opened(path, what=what) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise InputError(f"{what} {shown(path)} has {size} bytes; at most {limit} are read.")
        return file.read(limit + 1)[:limit]


@contextmanager
def opened(path: Path | str, *, what: str) -> Iterator[BinaryIO]:
    """Yield a regular file, open for reading.

    Raises:
        InputError: if it is missing, cannot be read, or is not a regular file.
    """
    path = Path(path)
    with _open(path, what) as file:
        try:
            yield file
        except OSError as error:
            raise _unreadable(path, what, error) from None


def _open(path: Path, what: str) -> BinaryIO:
    try:
        if path.is_dir():
            raise InputError(f"{what} {shown(path)} is a folder; give a file.")
        if path.exists() and not path.is_file():
            raise InputError(f"{what} {shown(path)} is not a regular file; give a file.")
        return path.open("rb")
    except InputError:
        raise
    except FileNotFoundError:
        hint = "check the path."
        with suppress(OSError):
            there = sorted(path.parent.iterdir(), key=lambda p: p.suffix == path.suffix)
            ends = get_close_matches(path.suffix, {p.suffix for p in there})  # a table is no plan
            stems = {p.stem: p for p in there if p.suffix in ends or not path.suffix}
            for near in get_close_matches(path.stem, stems, n=1):
                hint = f"did you mean {shown(stems[near])}?"
        raise InputError(f"{what} {shown(path)} does not exist; {hint}") from None
    except OSError as error:
        raise _unreadable(path, what, error) from None
    except ValueError:  # a path with a NUL byte
        raise InputError(f"{what} {shown(path)} is not a valid path; check it.") from None


def _unreadable(path: Path, what: str, error: OSError) -> InputError:
    return InputError(f"{what} {shown(path)} cannot be read: {error.strerror}.")


def parse_json(text: str, *, what: str) -> Any:
    """Parse JSON without duplicate keys, NaN, or unreasonable depth.

    Raises:
        InputError: if the text is anything else.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for key, value in pairs:
            if key in record:
                raise InputError(f"{what} has the key {validate.shown(key)} twice; keep one.")
            record[key] = value
        return record

    def refuse(constant: str) -> NoReturn:
        raise InputError(f"{what} has the number {constant}; JSON numbers must be finite.")

    def number(literal: str) -> float:
        if (value := float(literal)) in (float("inf"), float("-inf")):
            raise InputError(f"{what} has the number {literal[:40]}; it is too large for a float.")
        return value

    try:
        value = json.loads(
            text, object_pairs_hook=unique, parse_constant=refuse, parse_float=number
        )
        if "\\ud" in text.lower():
            canonical_json(value).encode()  # half a surrogate pair is no text
        return value
    except InputError:
        raise
    except UnicodeEncodeError:
        raise InputError(f"{what} has half of a surrogate pair; write whole characters.") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{what} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise InputError(f"{what} is nested too deeply; flatten it.") from None
    except ValueError:  # an integer of more digits than Python converts
        raise InputError(f"{what} has a number of too many digits; shorten it.") from None


def load_json(path: Path | str, *, what: str, limit: int = MAX_JSON_BYTES) -> Any:
    """Return the JSON value of a file.

    Raises:
        InputError: if it is missing, too large or not JSON.
    """
    return parse_json(read_text(path, what=what, limit=limit), what=f"{what} {shown(path)}")


def read_toml(path: Path | str, *, what: str) -> dict[str, Any]:
    """Return the table of a TOML file.

    Raises:
        InputError: if it is missing, too large or not TOML.
    """
    text = read_text(path, what=what)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        twice = "; a key is there twice, or a table of a list does not begin with [[NAME]]"
        hints = {"Cannot": twice, "Invalid value": "; write a text in straight quotes"}
        said = f"{error!s:.200}{next((hints[each] for each in hints if each in str(error)), '')}"
        raise InputError(f"{what} {shown(path)} is not TOML: {said}.") from None
    except ValueError:  # an integer of more digits than Python converts
        raise InputError(f"{what} {shown(path)} has a number of too many digits.") from None
    except RecursionError:
        raise InputError(f"{what} {shown(path)} is nested too deeply; flatten it.") from None


def write(path: Path | str, content: str | bytes, *, private: bool = False) -> Path:
    """Write a whole file or none: a temporary neighbour, then an atomic rename.

    Args:
        path: where it goes.
        content: the whole of it.
        private: whether nobody but its owner may read it (mode 0600), at any moment.

    Raises:
        InputError: if the folder does not exist or cannot be written, or the path is that of a
            device, a pipe or a folder, in whose place no file may come.
    """
    path = Path(path)
    refuse_special(path)
    path = path.resolve() if path.is_symlink() else path  # what a link names, not the link
    data = content.encode() if isinstance(content, str) else content
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:60]}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o600 if private else 0o666 & ~umask)
        Path(temporary).replace(path)
    except (OSError, ValueError) as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or "it is not a valid path, or needs PYTHONUTF8=1"
        raise InputError(
            f"output {shown(path)} cannot be written: {reason}; give a writable path."
        ) from None
    return path


def pretty_json(value: Any) -> str:
    """Write JSON for people and diffs: sorted keys, two spaces, one line break at the end."""
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def shown(path: Path | str) -> str:
    """Return a path for a sentence: quoted, and of a long one its end.

    >>> shown("reports/a.json"), len(shown("x" * 5000))
    ("'reports/a.json'", 82)
    """
    text = str(path)
    return repr(text if len(text) <= 80 else f"…{text[-79:]}")


def refuse_special(path: Path) -> None:
    """Refuse to replace what is not a regular file, such as a device, a pipe or a socket.

    Raises:
        InputError: if the path, or what it points to, is such a thing, or is not a path.
    """
    try:
        special = path.exists() and not path.is_file()
        special = special or path.absolute().parts[1:2] in (("dev",), ("proc",))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a valid path, or needs PYTHONUTF8=1"
        raise InputError(f"output {shown(path)} cannot be written: {reason}.") from None
    if special:
        what = "a folder" if path.is_dir() else "not a regular file"
        raise InputError(f"output {shown(path)} is {what}; give the path of a file.")
