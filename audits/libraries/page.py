"""The page: what was found, in tables; its sentences stand in ``page.md.j2``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from audits.libraries.accountants import (
    CLOSE,
    PREFIX,
    SETTINGS,
    SUBJECTS,
    Setting,
    Subject,
    verdict,
)
from audits.libraries.row import Row
from audits.libraries.targets import TARGETS
from audits.libraries.verdicts import Fault, Judged, Standing
from dpaudit.base.errors import InputError

UNTRIED = (
    "SmartNoise's covariance and odometer (opendp/smartnoise-sdk issues 622 and 621, mended in "
    "pull request 624), Synthcity, dpmm and MOSTLY AI (Cebere et al.), whose environments take "
    "gigabytes; the reordering attacks of Casacuberta et al. on libraries in other languages; "
    "precision-based attacks on samplers (Haney, Desfontaines, Hartman, Shrestha and Hay 2022; "
    "diffprivlib issue 94), of which only the lowest bits are tried."
)


def judged(rows: Iterable[Row], table: dict[str, Any]) -> list[Judged]:
    """The rows that were run, with what was found; InputError if a result is not of its row."""
    found = []
    for row in rows:
        own = table.get(row.name)
        if own is None:
            continue
        if own.get("commands") != row.commands():
            raise InputError(f"results of {row.name!r} are of other commands; measure it anew.")
        found.append(Judged(row, {"version": "", **own}))
    return found


def _count(rows: Sequence[Judged], standing: str) -> int:
    return sum(each.standing is Standing(standing) for each in rows)


def _faults(rows: Sequence[Judged], name: str) -> int:
    return sum(each.fault is Fault[name] for each in rows)


def _several(rows: Sequence[Judged]) -> int:
    return sum(each.row.queries > 1 for each in rows)


def _interval(truth: Sequence[float]) -> str:
    low, high = truth
    return f"{low:.4g} – {high:.4g}" if low < high * (1 - 1e-4) else f"{high:.4g}"


class _Accountants:
    """Their cells, from the table."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table

    @property
    def truths(self) -> dict[str, Any]:
        """The intervals by the names of settings; of those that were computed."""
        return dict(self.table.get(f"{PREFIX}truth", {}))

    def said(self, subject: Subject, setting: Setting) -> dict[str, Any]:
        """What one said in one setting."""
        own = self.table.get(subject.key, {"error": "not run"})
        cell: dict[str, Any] = own.get("cells", {}).get(setting.name, own)
        return cell

    def verdict(self, subject: Subject, setting: Setting) -> str:
        """In words."""
        cell = self.said(subject, setting)
        return verdict(cell.get("epsilon"), self.truths[setting.name])

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

    @property
    def settings(self) -> list[Setting]:
        """Those whose truth was computed."""
        return [each for each in SETTINGS if each.name in self.truths]

    def version(self, subject: Subject) -> str:
        """Of its library."""
        return str(self.table.get(subject.key, {}).get("version", "not run"))


def render(rows: Iterable[Row], table: dict[str, Any]) -> str:
    """The page of one file of results, as Markdown.

    Raises:
        InputError: if a result is not of its row.
    """
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    filters = {"count": _count, "faults": _faults, "several": _several, "interval": _interval}
    environment.filters |= filters
    found = judged(rows, table)
    libraries: dict[str, list[Judged]] = {}
    for each in found:
        libraries.setdefault(each.row.library, []).append(each)
    published = [each for each in found if each.row.published is not None]
    again = [each for each in published if each.accused or each.over.startswith("over")]
    accountants = _Accountants(table)
    template = (Path(__file__).parent / "page.md.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(
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
        untried=UNTRIED,
        settings=accountants.settings,
        subjects=SUBJECTS,
        truths=accountants.truths,
        cells=accountants.cell,
        summary=accountants.summary,
        versions={each.name: accountants.version(each) for each in SUBJECTS},
        close=CLOSE,
        targets=[each.shown(table) for each in TARGETS if each.key in table],
    )
