"""Data of a file, by its ending."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.base import files
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.optional_import import optional_import

LARGEST = 10**9


def read_data(path: str) -> Any:
    """JSON as it is, ``.npy`` as an array, Parquet as a frame of pandas, CSV as a list of rows.

    Rows are mappings by the words of the first line; where it has a number, lists.

    Raises:
        InputError: if the file cannot be read.
        UnsupportedError: if pandas is missing.
    """
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise InputError(f"--data is {path!r:.80}; it must end with {', '.join(_READERS)}.")
    with files.opened(path, what="data"):
        pass
    try:
        return reader(path)
    except ImportError:
        raise UnsupportedError("a Parquet file needs pandas and pyarrow; install both.") from None
    except (ValueError, OSError, EOFError, csv.Error) as error:
        raise InputError(f"data {path} cannot be read: {str(error).splitlines()[0]:.200}") from None


def _csv(path: str) -> Any:
    reader = csv.reader(files.read_text(path, what="data", limit=LARGEST).splitlines())
    lines = [(reader.line_num, [_cell(cell) for cell in row]) for row in reader if row]
    head, *rows = [row for _, row in lines] or [[]]
    for number, row in lines:
        if len(row) != len(head):
            raise ValueError(f"line {number} has {len(row)} cells, and the first has {len(head)}")
    if not all(isinstance(cell, str) for cell in head):
        return [head, *rows]
    return [dict(zip(head, row, strict=True)) for row in rows]


def _cell(text: str) -> Any:
    try:
        number = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, int | float) else text


_READERS: dict[str, Callable[[str], Any]] = {
    ".json": lambda path: files.load_json(path, what="data", limit=LARGEST),
    ".csv": _csv,
    ".npy": lambda path: np.load(path, allow_pickle=False),
    ".parquet": lambda path: optional_import("", "pandas", what="a Parquet file").read_parquet(
        path
    ),
}
