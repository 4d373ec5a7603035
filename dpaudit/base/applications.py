"""What adds to this package: its applications, and extensions of other packages.

*Extensions* are mechanisms, accountants, relations and sampling schemes. A package names modules in
the entry point group ``dpaudit.extensions``; to import them registers what they define. They are
imported once, when a name is asked for that is not known without them.

*An application* is a folder. Its module ``application`` offers commands, options of the kernel's
commands and what else the kernel asks for by name; the kernel never imports it by another way. So
it goes with its folder and its name in :data:`APPLICATIONS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from dpaudit.base.errors import InputError

ENTRY_POINTS = "dpaudit.extensions"


_closed: list[bool] = []


@contextmanager
def closed_extensions() -> Iterator[None]:
    """Import no module of others within, as a process does that must run none of their code."""
    _closed.append(True)
    try:
        yield
    finally:
        _closed.pop()


def load_extensions() -> None:
    """Import every module that an installed package names.

    Raises:
        InputError: if one cannot be imported.
    """
    if not _closed:
        _load_extensions()


@cache
def _load_extensions() -> None:
    from importlib.metadata import entry_points  # takes long to import

    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:  # noqa: BLE001  # whatever the module of another package raises
            raise InputError(
                f"extension {entry.name!r} ({entry.value}) cannot be imported: {error!r:.200}; "
                "repair or uninstall the package that names it."
            ) from None


APPLICATIONS = ("interchange", "training", "observing", "signing", "book")

_offers: dict[str, dict[str, Any]] = defaultdict(dict)


def offer(point: str, name: str, what: Any) -> None:
    """Offer something to the kernel, or to another application.

    Args:
        point: at which it is asked for, such as ``command``.
        name: of what is offered; a later offer of the same name replaces it.
        what: that.
    """
    _offers[point][name] = what


def offered(point: str) -> Mapping[str, Any]:
    """Return all that is offered at a point, by name, in the order of the applications."""
    _load()
    return MappingProxyType(_offers[point])


@cache
def _load() -> None:
    for name in APPLICATIONS:
        import_module(f"dpaudit.{name}.application")
