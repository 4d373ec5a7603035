"""The way through the house that a command takes: modules in the order of their first call.

``python tests/support/ways.py audit SUBJECT …`` prints it, with how often it returns upwards: to a
module of a higher room than the one before it. A module is on the way if a function of it is
called between ``main`` and the exit. Counted are the rooms that lead from the words of a command
to the engines and back: what lies below (laws, proofs, certificates) serves every command, and
the engines (statistics, rehearsal, renderers) are where a way leads.
"""

import sys
from collections.abc import Sequence
from itertools import pairwise
from types import FrameType

from dpaudit.cli.main import main

ROOMS = ("dpaudit.project", "dpaudit.auditing.subjects", "dpaudit.workflow", "dpaudit.cli")
"""From the lowest to the highest."""


def way(words: Sequence[str]) -> list[str]:
    """The modules that a command calls, by their first call."""
    found: dict[str, None] = {}

    def enter(frame: FrameType, event: str, _: object) -> None:
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        known = module in found or not module.startswith(ROOMS)
        if event == "call" and not known and code.co_name != "<module>":
            found.update({} if _is_importing(frame) else {module: None})

    sys.setprofile(enter)
    try:
        main(words)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return list(found)


def returns_upwards(modules: Sequence[str]) -> int:
    """How often a module stands in a higher room than the one before it."""
    rooms = [next(n for n, room in enumerate(ROOMS) if each.startswith(room)) for each in modules]
    return sum(after > before for before, after in pairwise(rooms))


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a call is part of an import, which is made once, whoever comes first."""
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load":
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    modules = way(sys.argv[1:])
    shown = " ► ".join(each.removeprefix("dpaudit.") for each in modules)
    sys.stderr.write(
        f"{len(modules)} modules, {returns_upwards(modules)} returns upwards: {shown}\n"
    )
