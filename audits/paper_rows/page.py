"""The page: every statement of the four papers with what came out, for people and machines.

The words stand in the rows and in ``page.md.j2``, the numbers in the records of the measurements;
here they are put together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from audits.paper_rows.measurement import Verdict
from audits.paper_rows.pictures import picture_of_trust, pictures_of
from audits.paper_rows.recording import Recording, Spot, command_of, experiments
from audits.paper_rows.rows import PAPERS
from audits.result_table import Record, render

TITLE = "What four papers state, and what comes out here"
HEADS = ("row", "statement", "what came out", "verdict", "command")
UNDECIDED = (Verdict.NO_DATA, Verdict.NOT_FOUND, Verdict.NOT_RUN)
"""Of what neither runs nor computations decided anything."""
NOTES = (
    "There is one row for each theorem, lemma, algorithm, table and panel. A rule in the code "
    "derives the verdict from the numbers, and the row states the rule; no verdict is entered by "
    "hand. “Improved”: a claim that holds with a better number, or a question that a paper leaves "
    "open and that is answered here. “Refuted”: a claim on privacy or noise that a proof or a "
    "counterexample shows to be false. “False or empty as printed”: a statement that contradicts "
    "its own numbers, a computation or its own conditions, or that says nothing at the size of "
    "the experiments. “Underspecified”: a statement whose settings are not printed, and that our "
    "settings do not show. “Data not at hand”: the data of the statement are not available here. "
    "“Not found”: a statement that was not reproduced here, for whatever reason; the row states "
    "which difference would have been found.",
    "Errors are standard errors of the mean; differences are paired, trial by trial, on the same "
    "problems and seeds. A number without an error is computed. Where a paper leaves a setting "
    "out, ours is stated with the experiment.",
)


@dataclass(frozen=True)
class Page:
    """What is shown.

    Attributes:
        outcomes: what came out for the rows, by id.
        records: by the name of the experiment.
        spots: trials that were run again.
    """

    outcomes: Mapping[str, Record]
    records: Mapping[str, Recording]
    spots: Sequence[Spot]

    @property
    def sources(self) -> Iterator[tuple[str, str, int, int, str]]:
        """Every record: name, title, cells, trials, and the command that makes it anew."""
        for name, record in self.records.items():
            trials = max(cell.trials for cell in record.cells.values())
            yield name, experiments()[name].title, len(record.cells), trials, command_of(name)

    def render(self, ending: str) -> str:
        """As ``.md`` for a code host, or as ``.html``: one page without scripts, with pictures."""
        sections = [
            (
                paper,
                {row.id: self.outcomes[row.id] for row in paper.rows if row.id in self.outcomes},
                [Markup(x) for name in paper.pictures for x in pictures_of(self.records, name)],
            )
            for paper in PAPERS
        ]
        return render(
            Path(__file__).parent / "templates" / f"rows{ending}.j2",
            *(number_text, command_of),
            title=TITLE,
            headlines=list(headlines(self)),
            notes=NOTES,
            heads=HEADS,
            undecided=UNDECIDED,
            sections=[section for section in sections if section[1]],
            records=list(self.sources),
            trust=Markup(picture_of_trust()),
        )


def headlines(page: Page) -> Iterator[str]:
    """The outcome in sentences."""
    verdicts = [record["verdict"] for record in page.outcomes.values()]
    found = {each: verdicts.count(each) for each in Verdict if each in verdicts}
    decided = sum(verdict not in UNDECIDED for verdict in verdicts)
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


def number_text(number: Record) -> str:
    """One number of a row, in words."""
    runs = f" ({number['runs']} runs)" if number["runs"] else ""
    printed = "" if number["paper"] is None else f"; paper: {value_text(number['paper'])}"
    return f"{number['what']}: {value_text(number['ours'], number['error'])}{runs}{printed}"
