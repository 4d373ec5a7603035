"""What a checklist is, filled or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit.reporting.checklists.facts import Facts

__all__ = ["Checklist", "ChecklistItem", "Source", "Status", "Template"]


class Status(StrEnum):
    """What a certificate says about one item."""

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
        """How many items have that status."""
        return sum(item.status is status for item in self.items)


@dataclass(frozen=True)
class Template:
    """One item before it is answered.

    Attributes:
        rule: stable identifier.
        group: heading that it stands under.
        title: what is asked.
        answer: status and reason for the facts of a certificate.
    """

    rule: str
    group: str
    title: str
    answer: Callable[[Facts], tuple[Status, str]]


@dataclass(frozen=True)
class Source:
    """A published list.

    Attributes:
        name: stable identifier.
        title: for people.
        source: where it was published.
        templates: in its own order.
    """

    name: str
    title: str
    source: str
    templates: tuple[Template, ...]

    def filled(self, facts: Facts) -> Checklist:
        """The list, answered."""
        return Checklist(
            self.name,
            self.title,
            self.source,
            tuple(
                ChecklistItem(each.rule, each.group, each.title, *each.answer(facts))
                for each in self.templates
            ),
        )
