"""Findings: what a reader must know, and tables of their words beside the code that finds them.

A package that finds something has a ``findings.toml``. A rule's name is stable, as policies and
suppressions name it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from typing import Any

from dpaudit.base.fields import Record


class Severity(StrEnum):
    """The weight of a finding for the claim."""

    ERROR = "error"
    """The claim, or the declaration behind it, does not hold."""
    WARNING = "warning"
    """The claim holds only under an assumption that deserves a decision."""
    NOTE = "note"
    """Worth knowing."""


@dataclass(frozen=True)
class Finding(Record):
    """Something about the claim or the code that a reader must know.

    Attributes:
        rule: short stable identifier, such as ``data-dependent-bound``.
        severity: how much it matters.
        message: one or two sentences for people.
        remedy: what to do about it.
        at: the invocation or place in the code that it speaks of, if any.
    """

    rule: str
    severity: Severity
    message: str
    remedy: str = ""
    at: str = ""


class FindingTable:
    """The findings of one package, by name.

    The package's ``findings.toml`` has a section for each: a ``message``, with facts in braces; a
    ``remedy``; a ``severity``, if no error; a ``rule``, if not its name; ``about``, if all facts.

    Args:
        module: any module of the package, by its ``__name__``.
    """

    def __init__(self, module: str) -> None:
        # At once: a file that is read while a subject runs would count as the subject's.
        self._rows = _rows(module.rpartition(".")[0])

    def __call__(self, name: str, at: str = "", /, **facts: Any) -> Finding:
        """The finding of a section, ``at`` a label of an invocation or a place in the code.

        Example:
            >>> FindingTable("dpaudit.auditing.noise.conformance")(
            ...     "noise-reused", "sum", one="a", two="b", repeats=1, draws=9
            ... ).severity.value
            'error'
        """
        row = self._rows[name]
        severity = Severity(row.get("severity", Severity.ERROR))
        message = row["message"].format_map(facts)
        return Finding(row.get("rule", name), severity, message, row["remedy"], at)


def known_findings(*others: Traversable) -> tuple[Finding, ...]:
    """List what may be found, here and by packages in ``others``; facts are left open.

    >>> [each.severity.value for each in known_findings() if each.rule == "float-noise"]
    ['warning']
    """
    homes = [resources.files(__name__.partition(".")[0]), *others]  # read, and not imported
    found = [
        Finding(
            row.get("rule", name),
            Severity(row.get("severity", Severity.ERROR)),
            re.sub(r"\{(\w*)[^}]*\}", r"‹\1›", row.get("about", row["message"])),
            row["remedy"],
            package,
        )
        for home in homes
        for package, table in _tables(home, home.name)
        for name, row in tomllib.loads(table.read_text("utf-8")).items()
    ]
    return tuple(sorted(found, key=lambda each: (each.rule, each.at, each.message)))


@cache
def explained_at(rule: str) -> str:
    """Tell where the published documentation explains a rule; empty where it does not.

    Its address is the ``Documentation`` of the installed package's ``[project.urls]``.
    """
    home = dict(each.split(", ", 1) for each in _addresses()).get("Documentation", "")
    if not home or rule not in {each.rule for each in known_findings()}:
        return ""
    return f"{home.rstrip('/')}/reference/findings.html#{rule}"


def _addresses() -> list[str]:
    try:
        return metadata.metadata(__name__.partition(".")[0]).get_all("Project-URL") or []
    except metadata.PackageNotFoundError:  # run from a folder
        return []


def _tables(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """Yield packages with findings of their own, and the files of these."""
    for each in folder.iterdir():
        if each.name == "findings.toml":
            yield name, each
        elif each.is_dir() and each.name.isidentifier():
            yield from _tables(each, f"{name}.{each.name}")


@cache
def _rows(package: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(package).joinpath("findings.toml").read_text("utf-8"))
