"""What installed packages add: mechanisms, accountants, relations and sampling schemes.

A package names modules in the entry point group ``dpaudit.extensions``; to import them registers
what they define. They are imported once, when a name is asked for that is not known without them.
"""

from __future__ import annotations

from functools import cache

from dpaudit.base.errors import InputError

ENTRY_POINTS = "dpaudit.extensions"


@cache
def load_extensions() -> None:
    """Import every module that an installed package names.

    Raises:
        InputError: if one cannot be imported.
    """
    from importlib.metadata import entry_points  # takes long to import

    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:  # noqa: BLE001  # whatever the module of another package raises
            raise InputError(
                f"extension {entry.name!r} ({entry.value}) cannot be imported: {error!r:.200}; "
                "repair or uninstall the package that names it."
            ) from None
