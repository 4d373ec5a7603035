"""Whether import and plan need the data file, so that plan and public facts may follow from it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.plan import Plan
from dpaudit.project import Subject
from dpaudit.rehearsal.isolated_runs import apart

Planned = tuple[list[Path], dict[str, Any] | None]
"""What was to be opened, and the plan as a record; None where there is none without it."""


def public_findings(
    subject: Subject, plan: Plan, sources: Iterable[str]
) -> tuple[list[Finding], int]:
    """Import a subject again and ask for its plan, in a process that cannot open its data files.

    Returns:
        A finding at most, and how often the same plan came without a look at the data.
    """
    paths = {Path(each).resolve() for each in sources if Path(each).is_file()}
    if not paths or type(subject).__module__ == "__main__":
        return [], 0
    made: Planned | None = apart(partial(_planned, subject, paths))
    wanted, again = made or ([], None)
    found = FindingTable(__name__)
    if again is not None and again != plan.to_dict():
        return [found("plan-follows-data")], 0
    return ([found("public-reads-data")], 0) if wanted else ([], int(again is not None))


def _planned(subject: Any, paths: set[Path]) -> Planned:
    """The plan of the class anew, with the fields that are not as usual: defaults may be others."""
    wanted, usual = list[Path](), type(subject)()

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            event in ("open", "sqlite3.connect")
            and (path := Path(str(arguments[0])).resolve()) in paths
        ):
            wanted.append(path)
            raise FileNotFoundError(path)

    names = [each.name for each in fields(subject) if each.init]
    known = {name: getattr(subject, name) for name in names}
    given = {name: each for name, each in known.items() if repr(each) != repr(getattr(usual, name))}
    sys.addaudithook(heard)  # this process ends with the answer
    with suppress(Exception):
        return wanted, _imported(type(subject))(**given).plan().to_dict()
    return wanted, None


def _imported(kind: type) -> Any:
    """The class anew, with all that its module imports from its own folder."""
    path = Path(str(sys.modules[kind.__module__].__file__))
    for name, each in list(sys.modules.items()):
        beside = Path(getattr(each, "__file__", None) or "/").parent == path.parent
        if beside and name not in ("__main__", kind.__module__):
            del sys.modules[name]
    return runpy.run_path(str(path), run_name=kind.__module__)[kind.__name__]
