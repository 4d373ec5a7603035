"""What a checklist is, asked and answered."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

_OTHERWISE = "otherwise"
"""The last condition of every item, which always holds."""


class Status(StrEnum):
    """The answer of a certificate to one item."""

    MET = "met"
    """The certificate shows that it is."""
    NOT_MET = "not-met"
    """The certificate shows that it is not."""
    NOT_APPLICABLE = "not-applicable"
    """The item speaks of something that this certificate shows to be absent."""
    UNKNOWN = "unknown"
    """The certificate does not tell."""


@dataclass(frozen=True)
class ChecklistItem:
    """One answered item.

    Attributes:
        rule: stable identifier, unique over all lists.
        group: heading that it stands under.
        title: what is asked, such that "met" is good news.
        status: the answer.
        reason: why, in one sentence; it may quote texts of the certificate.
    """

    rule: str
    group: str
    title: str
    status: Status
    reason: str


@dataclass(frozen=True)
class Checklist:
    """A filled checklist.

    Attributes:
        name: stable identifier.
        title: for people.
        source: where the list was published.
        items: in the order of the source.
    """

    name: str
    title: str
    source: str
    items: tuple[ChecklistItem, ...]

    def count(self, status: Status) -> int:
        """Tell how many items have that status."""
        return sum(item.status is status for item in self.items)

    @property
    def tally(self) -> str:
        """How the items were answered, in a sentence."""
        counts = (f"{self.count(status)} {status.value.replace('-', ' ')}" for status in Status)
        return f"Of {len(self.items)} items: {', '.join(counts)}."


def filled(table: str, terms: Mapping[str, Any]) -> Checklist:
    """The list of a table, answered.

    A table is a TOML file with ``name``, ``title`` and ``source``, and a section for each item,
    ``[group.rule]``: its ``title``, then conditions with the status and the sentence of the answer.
    A condition is the name of a term; the first one that applies gives the answer, and its sentence
    quotes terms in braces.

    Args:
        table: name of the file, without its ending.
        terms: what the conditions and the sentences name.
    """
    head = dict(_loaded(table))
    about = {name: head.pop(name) for name in ("name", "title", "source")}
    items = (
        ChecklistItem(rule, group, item["title"], *_answer(item, terms))
        for group, rules in head.items()
        for rule, item in rules.items()
    )
    return Checklist(**about, items=tuple(items))


@cache
def _loaded(table: str) -> Mapping[str, Any]:
    file = resources.files("dpaudit.reporting.checklists").joinpath(f"{table}.toml")
    return tomllib.loads(file.read_text("utf-8"))


def _answer(item: Mapping[str, Any], terms: Mapping[str, Any]) -> tuple[Status, str]:
    conditions = (name for name in item if name != "title")
    holds = next(name for name in conditions if name == _OTHERWISE or terms[name])
    status, sentence = item[holds]
    return Status(status), sentence.format_map(terms)
