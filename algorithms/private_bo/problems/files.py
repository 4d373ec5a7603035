"""Data sets that are not shipped, and where the user keeps them."""

from __future__ import annotations

import os
from pathlib import Path

from dpaudit.base.errors import InputError

_DATA_VARIABLE = "DPAUDIT_DATA"


def data_file(path: str | Path | None, place: str) -> Path:
    """The file of a data set.

    Args:
        path: the file; None for ``place`` in the directory that ``DPAUDIT_DATA`` names.
        place: path below that directory.

    Raises:
        InputError: if there is no such file, or no directory is named.
    """
    if path is not None:
        file = Path(path)
        remedy = "it must be an existing file"
    elif directory := os.environ.get(_DATA_VARIABLE):
        file = Path(directory) / place
        remedy = f"put the data there, pass path, or set {_DATA_VARIABLE} to another directory"
    else:
        raise InputError(
            f"path is None and {_DATA_VARIABLE} is not set; pass the file, or set "
            f"{_DATA_VARIABLE} to a directory that has {place}."
        )
    if not file.is_file():
        raise InputError(f"path is {str(file)!r}, where there is no file; {remedy}.")
    return file
