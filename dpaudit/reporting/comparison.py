"""Several certificates side by side: the first page of a report on more than one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaudit.base.numbers import down, percent, plain, up
from dpaudit.certificate import Verdict
from dpaudit.reporting.view import View
from dpaudit.reporting.wording.tables import Row
from dpaudit.reporting.wording.words import stated

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
    """Tell how many have which verdict, worst first.

    The verdicts of several certificates are not added up: each speaks of its own subject.
    """
    counts = [
        f"{sum(shown.certificate.verdict is verdict for shown in views)} {verdict}"
        for verdict in (Verdict.REFUTED, Verdict.UNPROVEN, Verdict.CERTIFIED)
    ]
    return f"{len(views)} reports: {', '.join(counts)}."
