"""What somebody may have meant who named a subject that is not there."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path
from typing import Any

from dpaudit.base.toml_tables import nearest
from dpaudit.mechanisms import Mechanism


def without_colon(name: str) -> str:
    """The end of a sentence on a name that says no object."""
    if name in Mechanism.kinds():
        return f"that is a mechanism, and dpaudit list {name} shows a plan file with it."
    which = f"say which object of it, {name}:NAME."
    every = "it must be module:Object, FILE.py:object or PLAN.toml."
    return which if name.endswith(".py") else every


def unknown_object(word: str, owner: Any, module: Any) -> str:
    """The end of a sentence on what a module or a class does not have."""
    root = module.__name__.partition(".")[0]
    known = [name for name in dir(owner) if not name.startswith("_")]
    if owner is module:  # without what it imports
        homes = {name: str(getattr(getattr(owner, name), "__module__", "")) for name in known}
        known = [name for name, home in homes.items() if home.startswith(root)]
    return nearest(word, known) if known else "check the name."


def unknown_module(name: str) -> str:
    """Return what is to be said after "No module named …"; empty where nothing is known."""
    package, _, word = name.rpartition(".")
    if package:
        inside = getattr(sys.modules.get(package), "__path__", ())
        return f"; {nearest(word, [each.name for each in pkgutil.iter_modules(inside)])}"
    place = min(Path().glob(f"*/{name}.py"), default=f"FOLDER/{name}.py")
    return f"; no file {name}.py is here, so give its place, such as {place}:NAME."
