"""Project files: what ``dpaudit check`` certifies, attacks and compares with budgets.

::

    [project]                       # optional, as is every key in it
    reports = "reports"             # folder, seen from the project file
    formats = ["html", "md"]        # of the reports; certificates are always written as .json

    [audit]                         # optional: how subjects with code are attacked
    runs = 10_000
    seed = 0

    [[subject]]
    name = "survey"                 # of its files in reports/
    target = "survey:Survey"        # module:Object, FILE.py:Object or PLAN.toml
    set = { epsilon = 0.5 }         # public fields of a subject
    claim = { epsilon = 1.0 }       # in place of what the subject states; any claim of a plan file

    code = "not rehearsed"          # where there are no data to rehearse the code on

    [[subject.audit]]               # in place of the one attack that [audit] makes
    pair = [[7, 8], [7]]

    [[budget]]
    name = "whole study"
    subjects = ["survey"]           # they touch the same unit, so they compose
    epsilon = 2.0
    delta = 1e-6

Reading one imports and runs nothing. Seeds have a default, so that a report differs only where
something really changed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from dpaudit.accounting import Accountant, AccountantName
from dpaudit.base import files, toml_tables, validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Record
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim
from dpaudit.project.audit_request import REPEATABLE, AuditRequest, Execution, keys
from dpaudit.project.plan_file import is_release

PROJECT_FILE = "dpaudit.toml"
CERTIFICATE = ".json"
"""Ending of certificates, which are written whatever the formats."""

_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
_INDEX = "index"
_SUBJECT = ("name", "target", "set", "claim", "delta", "accountant", "code", "data", "audit")


class Code(StrEnum):
    """The word of a project file on the code of a subject."""

    REHEARSED = "rehearsed"
    SEALED = "sealed"
    """It must run sealed, on made-up rows; where that cannot be, the row is in error."""
    NOT_REHEARSED = "not rehearsed"
    """The certificate is to speak of the plan alone, and the row may be certified all the same."""


@dataclass(frozen=True)
class SubjectEntry:
    """One subject.

    Attributes:
        name: of its files; unique.
        target: ``module:Object``, ``FILE.py:Object`` or a plan file.
        settings: public fields.
        claim: in place of the subject's own.
        delta: δ of the guarantee; the claim's where not given.
        accountant: whose proof is wanted.
        code: whether the code must be rehearsed, or sealed, for the row to be certified.
        data: what it is rehearsed on, or the made-up rows of a sealed run; its default where not
            given.
        audits: the attacks; None where the file lists none.
        default_audit: made where the file lists none and the subject has code.
    """

    name: str
    target: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    claim: Claim | None = None
    delta: float | None = None
    accountant: str = AccountantName.BEST
    code: Code = Code.REHEARSED
    data: str | None = None
    audits: tuple[AuditRequest, ...] | None = None
    default_audit: AuditRequest = REPEATABLE


@dataclass(frozen=True)
class BudgetEntry(Record):
    """The largest allowed ε at δ of all that some subjects release together.

    Attributes:
        name: for people.
        subjects: names of the subjects; they compose sequentially.
        limit: the allowed (ε, δ).
    """

    name: str
    subjects: tuple[str, ...]
    limit: Claim


@dataclass(frozen=True)
class ProjectFile:
    """The content of a project file.

    Attributes:
        path: of the file.
        subjects: at least one.
        budgets: any number.
        reports: folder of what is written.
        formats: file endings of the reports, with the dot, the certificate's first.
    """

    path: Path
    subjects: tuple[SubjectEntry, ...]
    budgets: tuple[BudgetEntry, ...]
    reports: Path
    formats: tuple[str, ...]

    @property
    def root(self) -> Path:
        """The folder from which subjects and plan files are found."""
        return self.path.parent


def read_project_file(path: Path | str, endings: Collection[str]) -> ProjectFile:
    """Read a project file.

    Args:
        path: the file, or the folder that holds ``dpaudit.toml``.
        endings: the file endings that reports may have, with their dots.

    Raises:
        InputError: naming the first field that is unknown, missing or invalid.
    """
    path = Path(path)
    path = (path / PROJECT_FILE if path.is_dir() else path).absolute()
    if not path.exists():
        raise InputError(
            f"project file {files.shown(path)} does not exist; give its path, or start a project "
            "with dpaudit init NAME."
        )
    content = files.read_toml(path, what="project file")
    if is_release(content):
        raise InputError(
            f"{files.shown(path)} is a release file; run it with dpaudit release. To check "
            f"its claim, name it as the target of a [[subject]] in {PROJECT_FILE}."
        )
    toml_tables.table("project file", content, ("project", "audit", "subject", "budget"))
    project = toml_tables.table("project", content.get("project", {}), ("reports", "formats"))
    default = REPEATABLE.with_table("audit", content.get("audit", {}), keys(Execution))
    items = toml_tables.tables("subject", content.get("subject", []))
    if not items:
        raise InputError(f"project file {files.shown(path)} has no [[subject]]; list at least one.")
    subjects = tuple(_subject(n, item, default) for n, item in enumerate(items, start=1))
    formats = _formats(project.get("formats", [".html"]), endings)
    _refuse_collisions([entry.name for entry in subjects], formats)
    listed = toml_tables.tables("budget", content.get("budget", []))
    budgets = tuple(_budget(n, item, subjects) for n, item in enumerate(listed, start=1))
    _refuse_twins("budget", [entry.name for entry in budgets])
    reports = _folder_within(path.parent, project.get("reports", "reports"))
    return ProjectFile(path, subjects, budgets, reports, formats)


def _folder_within(root: Path, value: object) -> Path:
    """The folder of the reports, which the command line alone may place elsewhere."""
    name = validate.text(reports=value)
    try:
        folder = root / name
        inside = folder.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        raise InputError(f"reports is {shown(name)}; it must be a path.") from None
    if not inside or any(len(os.fsencode(part)) > 255 for part in folder.parts):
        raise InputError(
            f"reports is {shown(name)}; it must be a folder within the project. The option -o "
            "names one elsewhere."
        )
    return folder


def checked_name(value: object) -> str:
    """A name that is safe as the name of a file.

    Raises:
        InputError: if it is anything else.
    """
    name = validate.text(name=value)
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise InputError(
            f"name is {shown(name)}; it must be at most 100 letters, digits, '-', '_' and '.', "
            "beginning with a letter or digit."
        )
    return name


def _subject(number: int, item: object, default: AuditRequest) -> SubjectEntry:
    place = f"subject {number}"
    given = toml_tables.table(place, item, _SUBJECT)
    for key in ("name", "target"):
        if key not in given:
            raise InputError(f"{place} lacks the key {shown(key)}; add it.")
    with toml_tables.within(place):
        name = checked_name(given["name"])
    with toml_tables.within(f"subject {shown(name)}"):
        return _named_subject(name, given, default)


def _named_subject(name: str, given: dict[str, Any], default: AuditRequest) -> SubjectEntry:
    target = validate.text(target=given["target"])
    settings = given.get("set", {})
    if not isinstance(settings, Mapping):
        raise InputError(f"set is {shown(settings)}; it must be a table of fields.")
    if target.endswith(".toml") and settings:
        raise InputError("set is given for a plan file; edit the plan file instead.")
    if not target.endswith(".toml") and not target.rpartition(":")[0]:
        raise InputError(
            f"target is {shown(target)}; it must be module:Object, FILE.py:Object or PLAN.toml."
        )
    audits = None
    if "audit" in given:
        listed = toml_tables.tables("subject.audit", given["audit"])
        audits = tuple(
            default.with_table(f"audit {n}", item) for n, item in enumerate(listed, start=1)
        )
    delta = given.get("delta")
    return SubjectEntry(
        name=name,
        target=target,
        settings=dict(settings),
        claim=_claim(given["claim"]) if "claim" in given else None,
        delta=None if delta is None else validate.probability(delta=delta),
        accountant=Accountant.named(given.get("accountant", "best")).kind,
        code=validate.member(Code, code=given.get("code", Code.REHEARSED)),
        data=validate.text(data=given["data"]) if "data" in given else None,
        audits=audits,
        default_audit=default,
    )


def _claim(value: object) -> Claim:
    own = {"source": PROJECT_FILE, **value} if isinstance(value, Mapping) else value
    return Claim.from_dict(own)  # type: ignore[arg-type]


def _budget(number: int, item: object, subjects: Sequence[SubjectEntry]) -> BudgetEntry:
    place = f"budget {number}"
    given = toml_tables.table(place, item, ("name", "subjects", "epsilon", "delta"))
    known = [entry.name for entry in subjects]
    with toml_tables.within(place):
        if "epsilon" not in given:
            raise InputError("the key 'epsilon' is missing; give the largest allowed ε.")
        name = validate.text(name=given.get("name", place))
        members = given.get("subjects", known)
        if not isinstance(members, list) or not members:
            raise InputError(f"subjects is {shown(members)}; it must be an array of names.")
        for member in members:
            toml_tables.chosen(known, subjects=member)
        _refuse_twins("subjects", members)
        limit = Claim(given["epsilon"], given.get("delta", 0.0), PROJECT_FILE)
        return BudgetEntry(name, tuple(members), limit)


def _formats(value: object, endings: Collection[str]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InputError(f"formats is {shown(value)}; it must be an array, such as ['html', 'md'].")
    known = sorted(ending.removeprefix(".") for ending in endings)
    wanted = [str(each).lower().removeprefix(".") for each in value]
    for each in wanted:
        toml_tables.chosen(known, formats=each)
    return tuple(dict.fromkeys([CERTIFICATE, *(f".{each}" for each in wanted)]))


def _refuse_twins(field: str, names: Sequence[str]) -> None:
    folded = Counter(name.casefold() for name in names)
    for name in names:
        if folded[name.casefold()] > 1:
            raise InputError(f"{field} has the name {shown(name)} twice; names must differ.")


def _refuse_collisions(names: Sequence[str], formats: Sequence[str]) -> None:
    """No two subjects may write the same file, nor the index, on any file system."""
    _refuse_twins("subject", names)
    taken: dict[str, str] = {}
    for name in names:
        if name.casefold() == _INDEX:
            raise InputError(
                f"subject has the name {shown(name)}, which the index of reports has; rename it."
            )
        for ending in formats:
            other = taken.setdefault(f"{name}{ending}".casefold(), name)
            if other != name:
                raise InputError(
                    f"subjects {shown(other)} and {shown(name)} write the same file; rename one."
                )
