"""All rows: of each library a module that says ``ROWS``."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from itertools import chain

from audits.libraries.row import Row, unique


def all_rows() -> tuple[Row, ...]:
    """The rows of all modules here, in the order of their names."""
    names = sorted(each.name for each in pkgutil.iter_modules(__path__))
    return unique(chain.from_iterable(import_module(f"{__name__}.{n}").ROWS for n in names))
