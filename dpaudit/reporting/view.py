"""The view of a report: one model of one or several certificates, for every format for people.

Several certificates stand side by side on the first page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from dpaudit.base.numbers import down, percent, plain, up
from dpaudit.certificate import AuditRecord, Certificate, Verdict
from dpaudit.reporting.checklists import checklists
from dpaudit.reporting.checklists.model import Checklist
from dpaudit.reporting.curves import Growth, growth
from dpaudit.reporting.figures.plot import Figure
from dpaudit.reporting.figures.privacy import figures, growth_figure, roc_figure, series_figures
from dpaudit.reporting.results import (
    ResultTable,
    cut_rows,
    is_told,
    result_tables,
    warning_of_owner,
)
from dpaudit.reporting.scale import Scale, epsilon_scale, guess_scale
from dpaudit.reporting.wording import headline, tables
from dpaudit.reporting.wording.statement import Statement, statement
from dpaudit.reporting.wording.tables import Row
from dpaudit.reporting.wording.words import stated

if TYPE_CHECKING:
    from dpaudit.certificate import SecondOpinion


@dataclass(frozen=True, eq=False)
class AuditView:
    """One audit.

    Attributes:
        record: the audit.
        facts: its further facts, nested ones under joined names.
        command: what repeats it; None where it does not fit a command line.
        figure: its operating curve, if it recorded one.
    """

    record: AuditRecord
    facts: tuple[tuple[str, str], ...]
    command: str | None
    figure: Figure | None


@dataclass(frozen=True, eq=False)
class View:
    """A certificate with all that formats share and that is not simply one of its fields.

    Attributes:
        certificate: what is shown.
        record: the same as JSON values, with digest and schema.
        headline: the verdict in words.
        statement: the guarantee in words.
        opinion: what another library says of it; None where it was not asked.
        curves: privacy and trade-off curves.
        growth: the loss over time, if it is finite.
        growth_figure: the same, drawn.
        guess: the best guess, on a scale.
        epsilons: attacked, proved and claimed ε, on a scale, if something was attacked.
        audits: what was attacked.
        checklists: what the certificate answers of published checklists.
        results: of a declared release, a table for each query.
        cut: what the bounds of a release cut, for its owner alone.
        warning: what follows from having read that.
        summary: results of a run.
        series: curves of a run, drawn.
        series_rows: curves of a run, in numbers.
    """

    certificate: Certificate
    record: Mapping[str, Any]
    headline: headline.Headline
    statement: Statement
    opinion: str | None
    curves: tuple[Figure, ...]
    growth: Growth | None
    growth_figure: Figure | None
    guess: Scale
    epsilons: Scale | None
    audits: tuple[AuditView, ...]
    checklists: tuple[Checklist, ...]
    results: tuple[ResultTable, ...]
    cut: tuple[tuple[str, str], ...]
    warning: str
    summary: tuple[tuple[str, str], ...]
    series: tuple[Figure, ...]
    series_rows: tuple[tables.Row, ...]


def views(
    certificates: Sequence[Certificate], opinions: Sequence[SecondOpinion] = ()
) -> list[View]:
    """Gather what formats for people show of certificates, with an opinion on each or none."""
    return [view(*each) for each in zip_longest(certificates, opinions)]


def view(certificate: Certificate, opinion: SecondOpinion | None = None) -> View:
    """Gather what the formats for people show of a certificate."""
    shown = {} if is_told(certificate) else certificate.owner or {}
    run = _with_owner(certificate.run or {}, shown)
    grown, said = growth(certificate), headline.headline(certificate)
    return View(
        certificate=certificate,
        record=certificate.to_dict(),
        headline=said,
        statement=statement(certificate),
        opinion=None if opinion is None else opinion.reason,
        curves=figures(certificate),
        growth=grown,
        growth_figure=None if grown is None else growth_figure(certificate, grown),
        guess=guess_scale(said.odds),
        epsilons=epsilon_scale(certificate),
        audits=tuple(_audit(certificate, n, a) for n, a in enumerate(certificate.audits, 1)),
        checklists=checklists(certificate),
        results=result_tables(certificate),
        cut=cut_rows(certificate),
        warning=warning_of_owner(certificate),
        summary=tables.nested_facts(run.get("summary", {})),
        series=series_figures(run.get("series", {})),
        series_rows=tables.series_rows(run.get("series", {})),
    )


def _with_owner(run: Mapping[str, Any], owner: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The results of a run; those of the owner alone say so."""
    return {
        part: dict(run.get(part, {}))
        | {f"{name} (for the owner alone)": each for name, each in owner.get(part, {}).items()}
        for part in ("summary", "series")
    }


def _audit(certificate: Certificate, number: int, record: AuditRecord) -> AuditView:
    figure = roc_figure(record, number)
    drawn = set() if figure is None else {"roc"}
    details = {name: value for name, value in record.details.items() if name not in drawn}
    command = tables.replay_command(certificate, record)
    return AuditView(record, tables.nested_facts(details), command, figure)


_NONE = "–"


def comparison(views: Sequence[View]) -> tuple[Row, ...]:
    """A row for each, in their order."""
    return tuple(_row(number, shown) for number, shown in enumerate(views, 1))


def _row(number: int, shown: View) -> Row:
    certificate, odds = shown.certificate, shown.headline.odds
    claim, proved, plan = certificate.claim, certificate.guarantee, certificate.plan
    proof = "nothing"
    if proved is not None and proved.epsilon < math.inf:
        proof = f"ε = {up(proved.epsilon)}, δ = {plain(proved.delta)}"
    return {
        "number": number,
        "name": certificate.subject.name,
        "verdict": certificate.verdict,
        "look": shown.headline.look,
        "protects": f"one {plan.unit}, {plan.relation}, {plan.trust}",
        "claimed": _NONE if claim is None else stated(claim),
        "proved": proof,
        "attacked": _attacked(shown),
        "guess": _NONE if odds.proved is None else f"≤ {percent(odds.proved)}",
        "open_points": shown.headline.open_points or "none",
    }


def _attacked(shown: View) -> str:
    audits = shown.certificate.audits
    if not audits:
        return "not attacked"
    bounds = [audit for audit in audits if audit.epsilon_lower is not None]
    if not bounds:
        return f"{len(audits)} audits, no bound"
    best = max(bounds, key=lambda audit: audit.epsilon_lower or 0.0)
    return f"ε ≥ {down(best.epsilon_lower or 0.0)} at δ = {plain(best.delta)}"


def tally(views: Sequence[View]) -> str:
    """How many have which verdict, worst first.

    The verdicts of several certificates are not added up: each speaks of its own subject.
    """
    counts = [
        f"{sum(shown.certificate.verdict is verdict for shown in views)} {verdict}"
        for verdict in (Verdict.REFUTED, Verdict.UNPROVEN, Verdict.CERTIFIED)
    ]
    return f"{len(views)} reports: {', '.join(counts)}."
