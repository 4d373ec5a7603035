"""The page of what was found, and private notes, one for each violation that nobody has published.

Their sentences stand in ``page.md.j2`` and ``note.md.j2``. Notes stand in ``out/libraries/notes``
and are no part of the repository: who maintains a library hears of it before anybody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from audits.libraries.accountants import (
    CLOSE,
    SETTINGS,
    SUBJECTS,
    TARGETS,
    TRUTH,
    Setting,
    Subject,
    Target,
)
from audits.libraries.rows import ROWS
from audits.libraries.verdicts import WORDS, Fault, RowVerdict, Standing
from audits.result_table import Record, render
from dpaudit.base import files


def judge_rows(found: Mapping[str, Record]) -> list[RowVerdict]:
    """The rows that were run, with what was found."""
    return [RowVerdict(row, {"version": ""} | found[row.name]) for row in ROWS if row.name in found]


def _count(rows: Sequence[RowVerdict], standing: str) -> int:
    return sum(each.standing is Standing(standing) for each in rows)


def _faults(rows: Sequence[RowVerdict], name: str) -> int:
    return sum(each.fault is Fault[name] for each in rows)


def _several(rows: Sequence[RowVerdict]) -> int:
    return sum(each.row.queries > 1 for each in rows)


def _interval(truth: Sequence[float]) -> str:
    low, high = truth
    return f"{low:.4g} – {high:.4g}" if low < high * (1 - 1e-4) else f"{high:.4g}"


def verdict(epsilon: float | None, interval: tuple[float, float]) -> str:
    """Of what an accountant says, in words."""
    low, high = interval
    if epsilon is None:
        return "no answer"
    if epsilon < low * (1 - CLOSE):
        return f"below by {_percent(1 - epsilon / low)}"
    if epsilon <= high * (1 + CLOSE):
        return "inside"
    return f"above by {_percent(epsilon / high - 1)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


@dataclass(frozen=True)
class _Accountants:
    """Their cells, from the table."""

    table: Mapping[str, Record]

    @property
    def truths(self) -> Record:
        """The intervals by the names of settings; of those that were computed."""
        return self.table.get(TRUTH, {})

    @property
    def settings(self) -> list[Setting]:
        """Those whose truth was computed."""
        return [each for each in SETTINGS if each.name in self.truths]

    def version(self, subject: Subject) -> str:
        """Of its library."""
        return str(self.table.get(subject.key, {}).get("version", "not run"))

    def said(self, subject: Subject, setting: Setting) -> Record:
        """What one said in one setting."""
        own = self.table.get(subject.key, {"error": "not run"})
        return own.get("cells", {}).get(setting.name, own)

    def verdict(self, subject: Subject, setting: Setting) -> str:
        """In words."""
        return verdict(self.said(subject, setting).get("epsilon"), self.truths[setting.name])

    def cell(self, subject: Subject, setting: Setting) -> str:
        """Number and verdict; a number below the truth stands out."""
        cell = self.said(subject, setting)
        if "epsilon" not in cell:
            return f"no answer ({cell.get('error', '')[:40]})"
        text = f"{cell['epsilon']:.4g}, {self.verdict(subject, setting)}"
        return f"**{text}**" if "below" in text else text

    def summary(self, subject: Subject) -> str:
        """How often it is what."""
        words = [self.verdict(subject, each).partition(" by")[0] for each in self.settings]
        parts = {word: words.count(word) for word in ("inside", "above", "below", "no answer")}
        return ", ".join(f"{times} {word}" for word, times in parts.items() if times)

    def target(self, target: Target) -> dict[str, str]:
        """What a calibrator was asked for, answers, and what that costs."""
        found, asked = self.table[target.key], target.epsilon
        words = f"ε = {asked:g}, δ = {target.delta:g}; q = {target.rate:.4g}, {target.steps} steps"
        shown = {"name": target.name, "asked": words}
        if "error" in found:
            return shown | {"sigma": "–", "costs": found["error"]}
        low, high = found["truth"]
        costs = f"{low:.4g} – {high:.4g}{', **more than asked**' if low > asked else ''}"
        return shown | {"sigma": f"{found['sigma']:.5g}", "costs": costs}


def page(found: Sequence[RowVerdict], table: Mapping[str, Record]) -> str:
    """The page, as Markdown, of rows and of all that one file of results holds."""
    libraries: dict[str, list[RowVerdict]] = {}
    for each in found:
        libraries.setdefault(each.row.library, []).append(each)
    published = [each for each in found if each.row.published is not None]
    again = [each for each in published if each.accused or each.over.startswith("over")]
    accountants = _Accountants(table)
    return render(
        Path(__file__).parent / "page.md.j2",
        *(_count, _faults, _several, _interval),
        rows=found,
        libraries=libraries,
        right=[each for each in found if each.row.right],
        accused=[each for each in found if each.false],
        harmless=[each for each in found if each.row.harmless],
        failed=[each for each in found if each.error],
        published=published,
        found=again,
        slowest=max((each.found["seconds"] for each in again), default=0),
        unpublished=[each for each in found if each.unpublished],
        accountants=accountants,
        subjects=SUBJECTS,
        close=CLOSE,
        targets=[accountants.target(each) for each in TARGETS if each.key in table],
    )


# -- notes -----------------------------------------------------------------------------------------

NOTES = Path("out/libraries/notes")
_OPEN = "; which neighbours it means, its documentation does not say"


def write_notes(found: Iterable[RowVerdict], place: Path | None = None) -> list[Path]:
    """Write the notes of what is unpublished, and say which.

    Args:
        found: rows with what was found.
        place: folder of the notes; ``NOTES`` where not given.
    """
    written = []
    for each in found:
        if each.unpublished:
            name = re.sub(r"\W+", "-", each.row.name).strip("-").lower()
            (place or NOTES).mkdir(parents=True, exist_ok=True)
            written.append(files.write((place or NOTES) / f"{name}.md", note(each)))
    return written


def note(judged: RowVerdict) -> str:
    """One note, as Markdown."""
    row = judged.row
    stated = _OPEN if row.stated == "open" else f" ({row.stated})"
    mend = WORDS["mends"].get(row.kind, WORDS["mends"]["general"])
    template = Path(__file__).parent / "note.md.j2"
    return render(template, row=row, each=judged, stated=stated, mend=mend)
