"""The report as pages of a PDF: the sections, in the order of the HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reportlab.platypus import Paragraph, Spacer

from dpaudit.reporting.comparison import comparison, tally
from dpaudit.reporting.pdf.page import WIDTH, Heading, Part, build, paragraph
from dpaudit.reporting.pdf.parts import bar, boxed, side_by_side, table, terms
from dpaudit.reporting.pdf.sections import sections
from dpaudit.reporting.pdf.text import shortened
from dpaudit.reporting.text import percent, plain, up
from dpaudit.reporting.view import View

__all__ = ["pages"]


def pages(views: Sequence[View]) -> bytes:
    """The file: one report, or a page of verdicts and the reports after it."""
    single = len(views) == 1
    reports = [Part(_footer(shown), list(_report(shown, 0 if single else 1))) for shown in views]
    if single:
        head = views[0].headline
        return build(f"{head.label}: {views[0].certificate.subject.name}", reports)
    return build("Privacy reports", [Part(tally(views), list(_comparison(views))), *reports])


def _footer(shown: View) -> str:
    name = shortened(shown.certificate.subject.name, 32)
    return f"{shown.headline.label}: {name} · certificate {shown.digest[:16]}…"


def _comparison(views: Sequence[View]) -> Iterator[Any]:
    yield Heading("Privacy reports", 0, "section")
    yield paragraph(
        f"{tally(views)} Each speaks of its own subject: their numbers are not to be added up or "
        "compared where unit, relation or δ differ."
    )
    heads = ("subject", "verdict", "claimed", "proved", "attacked", "best guess", "protects")
    rows = [
        (
            f"{row.number}. {row.name}",
            paragraph(f"{shown.headline.sign} {row.verdict}", "strong", str(row.verdict)),
            row.claimed,
            row.proved,
            row.attacked,
            row.guess,
            f"{row.protects}. Open points: {row.open_points}",
        )
        for row, shown in zip(comparison(views), views, strict=True)
    ]
    yield table(heads, rows, (19, 11, 13, 14, 14, 9, 20))


def _report(shown: View, level: int) -> Iterator[Any]:
    yield from _first_page(shown, level)
    for title, story in sections(shown):
        pieces = list(story)
        if pieces:
            yield Heading(title, level + 1, "section")
            if len(pieces) > 1 and isinstance(pieces[0], Paragraph):
                pieces[0].keepWithNext = 1  # an introduction alone at the foot of a page
            yield from pieces


def _first_page(shown: View, level: int) -> Iterator[Any]:
    certificate, head = shown.certificate, shown.headline
    plan, verdict = certificate.plan, str(head.verdict)
    yield Heading(f"Privacy report of {certificate.subject.name}", level, "title")
    room = WIDTH - 22
    card = [
        paragraph(f"{head.sign} {head.label}", "label", verdict),
        paragraph(head.sentence, "sentence"),
        *(paragraph(detail, "detail") for detail in head.details),
    ]
    card += [paragraph(head.open_points, "detail")] if head.open_points else []
    card += [bar(head.odds, room), paragraph(_scale(shown), "small")]
    yield boxed(card, verdict, f"{verdict}-soft")
    yield Spacer(0, 6)
    yield side_by_side(_claimed(shown), _proved(shown), whole=False)
    yield terms(
        (
            ("Who is protected", f"one {plan.unit} (privacy unit)"),
            ("Against what", f"{shown.neighbours} Relation: {plan.relation}."),
            *(("Trust model", sentence) for sentence in shown.trust),
            ("What is published", "; ".join(shown.published)),
        )
    )


def _scale(shown: View) -> str:
    odds = shown.headline.odds
    proved = "refuted by attack" if odds.contradicted else "nothing"
    if odds.proved is not None:
        proved = f"≤ {percent(odds.proved)}"
    claimed = "" if odds.claimed is None else f" · by the claim (mark) ≤ {percent(odds.claimed)}"
    return f"coin toss 50 % · by the proved ε, δ (bar) {proved}{claimed} · certainty 100 %"


def _claimed(shown: View) -> list[Any]:
    claim = shown.certificate.claim
    if claim is None:
        said = [paragraph("no claim", "big"), paragraph("Nothing was stated beforehand.", "muted")]
    else:
        said = [paragraph(f"ε = {plain(claim.epsilon)}, δ = {plain(claim.delta)}", "big")]
        said += [paragraph(f"Stated in {claim.source}", "muted")] if claim.source else []
    return [paragraph("Claimed", "muted"), *said]


def _proved(shown: View) -> list[Any]:
    proved = shown.certificate.guarantee
    if proved is None:
        said = ("nothing", "No accountant has a theorem for this plan.")
    else:
        kept = " What was attacked does not keep it." if shown.headline.odds.contradicted else ""
        said = (
            f"ε = {up(proved.epsilon)}, δ = {plain(proved.delta)}",
            f"Accountant: {proved.accountant}, rounded up.{kept}",
        )
    title = paragraph("Proved of the declared plan", "muted")
    return [title, paragraph(said[0], "big"), paragraph(said[1], "muted")]
