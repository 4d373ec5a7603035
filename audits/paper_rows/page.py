"""The page: every statement of the four papers with what came out, for people and machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.paper_rows.experiments import experiments
from audits.paper_rows.measured import Number, Verdict
from audits.paper_rows.panels import pictures_of
from audits.paper_rows.recording import Recording, Spot, command_of
from audits.paper_rows.rows import PAPERS, Outcome, Paper
from dpaudit.reporting.environment import strict_environment
from dpaudit.reporting.text import escaped, markdown_table

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["Page", "headlines", "html", "markdown", "number_text", "value_text"]

TITLE = "What four papers state, and what comes out here"
HEADS = ("row", "statement", "what came out", "verdict", "command")
NOTES = (
    "One row for each theorem, lemma, algorithm, table and panel. A verdict follows from the "
    "numbers by a rule in the code, which the row states; nobody types it. “Improved” is a claim "
    "that holds with a better number, or what a paper leaves open; “refuted” is a claim that a "
    "proof or a counterexample shows false; “not reproduced” is what did not come out here, "
    "whosever fault it is.",
    "Errors are standard errors of the mean; differences are paired, trial by trial, on the same "
    "problems and seeds. A number without an error is computed. Where a paper leaves a setting "
    "out, ours is stated with the experiment.",
)


@dataclass(frozen=True)
class Page:
    """What is shown.

    Attributes:
        outcomes: of the rows, by id.
        records: by the name of the experiment.
        spots: trials that were run again.
    """

    outcomes: Mapping[str, Outcome]
    records: Mapping[str, Recording]
    spots: Sequence[Spot]

    def of(self, paper: Paper) -> list[Outcome]:
        """The outcomes of a paper's rows, in their order."""
        return [self.outcomes[row.id] for row in paper.rows if row.id in self.outcomes]

    @property
    def sources(self) -> Iterator[tuple[str, str, int, int, str]]:
        """Every record: name, title, cells, trials, and the command that makes it anew."""
        for name, record in self.records.items():
            trials = max(cell.trials for cell in record.cells.values())
            yield name, experiments()[name].title, len(record.cells), trials, command_of(name)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "counts": {str(verdict): count for verdict, count in counts(self.outcomes).items()},
            "rows": {name: outcome.to_dict() for name, outcome in self.outcomes.items()},
        }


def counts(outcomes: Mapping[str, Outcome]) -> dict[Verdict, int]:
    """How often each verdict was given, without those that never were."""
    found = [outcome.measured.verdict for outcome in outcomes.values()]
    return {verdict: found.count(verdict) for verdict in Verdict if verdict in found}


def headlines(page: Page) -> Iterator[str]:
    """The outcome in sentences."""
    found = counts(page.outcomes)
    decided = sum(count for verdict, count in found.items() if verdict.decided)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in found.items())
    yield f"{len(page.outcomes)} rows, {decided} decided by runs or computations: {listed}."
    agree = sum(spot.agrees for spot in page.spots)
    if page.spots:
        yield (
            f"Spot checks: {agree} of {len(page.spots)} recorded cells came out again within the "
            "stated error when their first trial was run anew for this page."
        )


# -- numbers in words ------------------------------------------------------------------------------


def value_text(value: float, error: float = 0.0) -> str:
    """A number to two digits of its error, or to four of its own.

    >>> value_text(470446.0, 34538.0), value_text(0.0381554, 0.0142826), value_text(2.0)
    ('470 000 ± 35 000', '0.038 ± 0.014', '2')
    """
    if error <= 0 or not math.isfinite(value):
        short = float(f"{value:.4g}")
        return _grouped(f"{short:.0f}" if 1e4 <= abs(short) < 1e9 else f"{short:.4g}")
    places = 1 - math.floor(math.log10(error))
    shown = [f"{round(each, places):.{max(places, 0)}f}" for each in (value, error)]
    return " ± ".join(map(_grouped, shown))


def _grouped(text: str) -> str:
    if "e" in text:
        return text
    whole, dot, rest = text.partition(".")
    sign, digits = ("−", whole[1:]) if whole.startswith("-") else ("", whole)
    if len(digits) > 4:
        digits = f"{int(digits):,}".replace(",", " ")
    return sign + digits + dot + rest


def number_text(number: Number) -> str:
    """One number of a row, in words."""
    runs = f" ({number.runs} runs)" if number.runs else ""
    printed = "" if number.paper is None else f"; paper: {value_text(number.paper)}"
    return f"{number.what}: {value_text(number.ours, number.error)}{runs}{printed}"


# -- pages -----------------------------------------------------------------------------------------


def markdown(page: Page) -> str:
    """The page for a code host; pictures stand in the HTML."""
    lines = [f"# {TITLE}", ""]
    for text in (*headlines(page), *NOTES, "Pictures: [papers.html](papers.html)."):
        shown = text if text.startswith("Pictures") else escaped(text)
        lines += [shown, ""]
    for paper in PAPERS:
        lines += [f"## {escaped(paper.reference)}", ""]
        lines += markdown_table(HEADS, map(_cells, page.of(paper)))
    lines += ["## Records", "", *_records(page)]
    return "\n".join(lines) + "\n"


def _cells(outcome: Outcome) -> Iterator[str]:
    row, measured = outcome.row, outcome.measured
    yield f"**{row.id}**"
    yield f"**{escaped(row.place)}**<br>{escaped(row.claim)}"
    yield "<br>".join(escaped(number_text(number)) for number in measured.numbers) or "–"
    yield f"**{measured.verdict}**<br>{escaped(measured.because)}"
    commands = [row.command] if measured.verdict.decided else []
    yield "<br>".join(f"`{each}`" for each in [*commands, *map(command_of, outcome.recorded)])


def _records(page: Page) -> Iterator[str]:
    heads = ("record", "what", "cells", "trials", "command")
    yield from markdown_table(
        heads,
        (
            (f"[{name}](papers/{name}.json)", escaped(title), str(cells), str(trials), f"`{made}`")
            for name, title, cells, trials, made in page.sources
        ),
    )


def html(page: Page) -> str:
    """The same as one page without scripts, with pictures."""
    from markupsafe import Markup

    sections = [
        (
            paper,
            page.of(paper),
            [Markup(each) for name in paper.pictures for each in pictures_of(page.records, name)],
        )
        for paper in PAPERS
    ]
    return _template().render(
        title=TITLE,
        headlines=list(headlines(page)),
        notes=NOTES,
        heads=HEADS,
        sections=[section for section in sections if section[1]],
        records=list(page.sources),
        command_of=command_of,
    )


@cache
def _template() -> Template:
    from jinja2 import FileSystemLoader, PackageLoader

    here = FileSystemLoader(Path(__file__).parent / "templates")
    environment = strict_environment(here, PackageLoader("dpaudit.workflow"))
    environment.filters["number"] = number_text
    return environment.get_template("rows.html.j2")
