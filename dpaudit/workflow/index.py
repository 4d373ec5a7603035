"""The first page of a folder of reports: one table, as HTML and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from dpaudit.reporting.environment import strict_environment
from dpaudit.reporting.text import escaped, markdown_table
from dpaudit.workflow import summary
from dpaudit.workflow.outcomes import ProjectOutcome, SubjectRow

if TYPE_CHECKING:
    from jinja2 import Template

TITLE = "Privacy reports"


def index_html(outcome: ProjectOutcome) -> str:
    """One page without scripts; nothing is loaded from elsewhere."""
    return _template("index.html.j2").render(
        title=TITLE,
        headline=summary.headline(outcome),
        subject_heads=summary.SUBJECT_HEADS,
        subjects=[(row, summary.subject_cells(row), _links(row)) for row in outcome.subjects],
        budget_heads=summary.BUDGET_HEADS,
        budgets=[(row, summary.budget_cells(row)) for row in outcome.budgets],
        remarks=list(summary.remarks(outcome)),
    )


def index_markdown(outcome: ProjectOutcome) -> str:
    """The same for pull requests and job summaries."""
    return "\n".join(_markdown(outcome)).rstrip() + "\n"


def badge(outcome: ProjectOutcome) -> str:
    """The worst of all rows as a small picture, for the first lines of a README."""
    said = f"{outcome.status}, worse than before" if outcome.is_worse else str(outcome.status)
    return _template("badge.svg.j2").render(said=said, status=outcome.status)


def _markdown(outcome: ProjectOutcome) -> Iterator[str]:
    yield f"# {TITLE}\n"
    yield f"{escaped(summary.headline(outcome))}\n"
    yield from markdown_table(
        (*summary.SUBJECT_HEADS, "files"), map(_subject_line, outcome.subjects)
    )
    if outcome.budgets:
        lines = (map(escaped, summary.budget_cells(row)) for row in outcome.budgets)
        yield from markdown_table(summary.BUDGET_HEADS, lines)
    for name, text in summary.remarks(outcome):
        yield f"- {escaped(name)}: {escaped(text)}"


def _subject_line(row: SubjectRow) -> Iterator[str]:
    yield from map(escaped, summary.subject_cells(row))
    yield " ".join(f"[{ending}]({target})" for ending, target in _links(row)) or summary.NOTHING


def _links(row: SubjectRow) -> list[tuple[str, str]]:
    """Ending and address of each file of a subject."""
    return [(file.removeprefix(f"{row.name}."), quote(file)) for file in row.files]


@cache
def _template(name: str) -> Template:
    from jinja2 import PackageLoader

    return strict_environment(PackageLoader("dpaudit.workflow")).get_template(name)
