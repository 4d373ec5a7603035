"""The index: published claim, what is proved, what was attacked, verdict.

A row is the certificate of one algorithm in words, under the paper that it is of. A certificate
that no paper lists is refused, so that none is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from audits.paper_rows.rows import PAPERS, Paper
from audits.result_table import render
from dpaudit.base.errors import InputError
from dpaudit.base.numbers import confidence, down, plain, up
from dpaudit.certificate import AuditRecord, Certificate
from dpaudit.reporting.text import visible
from dpaudit.reporting.wording.words import ACCOUNTANTS
from dpaudit.workflow.outcomes import Status, status_of

TITLE = "Four papers on private Bayesian optimisation, audited"
HEADS = ("algorithm", "published claim", "proved at that δ", "strongest attack", "verdict", "files")
_SIGN = re.compile(r" ([=≥]) ")
LOOSE = 0.9
"""A claim is called loose where at most this share of its ε is proved to be enough."""

NOTES = (
    "A claim is certified where an accountant proves it, and refuted where an attack on the code "
    "rejects it at the stated confidence. Guarantees are rounded up, attacks down. An attack "
    "bounds the true ε from below; what is between it and the proof is not known.",
    "Every report says what it does not cover. All of them are made by “make reports” from fixed "
    "seeds, so that they change where something has changed. Other formats: “dpaudit report "
    "reports/curator.json -o report.pdf”.",
)
SEE_ALSO = (
    ("papers.html", "What the four papers state, and what comes out here, row by row"),
    ("outsourced.md", "Outsourced Bayesian optimisation: a privacy theorem that does not hold"),
)


@dataclass(frozen=True)
class Row:
    """One certificate in words. Where two texts go together, the second is the smaller print.

    Attributes:
        name: of its files.
        status: what it says in one word.
        algorithm: title, remark.
        claim: ε and δ, where they are published.
        proved: ε, accountant.
        attack: lower bound on ε, by what attack.
        verdict: in one word, what it means.
    """

    name: str
    status: Status
    algorithm: tuple[str, str]
    claim: tuple[str, str]
    proved: tuple[str, str]
    attack: tuple[str, str]
    verdict: tuple[str, str]

    @property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """In the order of :data:`HEADS`, without the files."""
        return (self.algorithm, self.claim, self.proved, self.attack, self.verdict)

    def links(self, endings: Sequence[str]) -> list[tuple[str, str]]:
        """Ending and address of each file."""
        return [(ending.removeprefix("."), f"{self.name}{ending}") for ending in endings]


def row_of(name: str, algorithm: tuple[str, str], certificate: Certificate) -> Row:
    """What a certificate says, in words.

    Raises:
        InputError: if it states no claim.
    """
    claim = certificate.claim
    if claim is None:
        raise InputError(f"subject {name!r} states no claim; give it one.")
    return Row(
        name=name,
        status=status_of(certificate),
        algorithm=algorithm,
        claim=(f"ε = {plain(claim.epsilon)}, δ = {plain(claim.delta)}", claim.source),
        proved=_proved(certificate),
        attack=_attack(certificate.audits),
        verdict=_verdict(certificate),
    )


def _proved(certificate: Certificate) -> tuple[str, str]:
    proved = certificate.guarantee
    if proved is None or proved.epsilon == math.inf:
        return "nothing", ""
    return f"ε = {up(proved.epsilon)}", ACCOUNTANTS[proved.accountant]


def _attack(audits: Sequence[AuditRecord]) -> tuple[str, str]:
    """The audit of the largest bound."""
    if not audits:
        return "none", ""
    # Attacks of our own come last, and are named where none finds more than another.
    best = max(reversed(audits), key=lambda audit: (audit.epsilon_lower or 0.0, audit.refuted))
    bound = best.epsilon_lower or 0.0
    sure = "" if best.confidence is None else f", at {confidence(best.confidence)}"
    of = "" if len(audits) == 1 else f"; the best of {len(audits)} attacks"
    return _bound(bound), f"{best.method}{sure}{of}"


def _bound(epsilon: float) -> str:
    if epsilon == 0:
        return "found nothing"
    return "no ε holds" if epsilon == math.inf else f"ε ≥ {down(epsilon)}"


def _verdict(certificate: Certificate) -> tuple[str, str]:
    status = status_of(certificate)
    meaning = {
        Status.REFUTED: "the claim is false",
        Status.EXCEEDED: "more is proved than claimed, and not yet shown by an attack",
        Status.UNPROVEN: "no proof, no refutation",
    }.get(status, "the claim holds")
    return str(status), f"{meaning}, and is loose" if _is_loose(certificate) else meaning


def _is_loose(certificate: Certificate) -> bool:
    claim, proved = certificate.claim, certificate.guarantee
    if claim is None or proved is None or status_of(certificate) is not Status.CERTIFIED:
        return False
    return proved.delta <= claim.delta and proved.epsilon <= LOOSE * claim.epsilon


def require_places(names: Iterable[str]) -> None:
    """Refuse subjects that no paper lists.

    Raises:
        InputError: naming the first.
    """
    known = {name for paper in PAPERS for name in paper.certificates}
    for name in names:
        if name not in known:
            raise InputError(f"subject {name!r} has no place among the papers; add it there.")


def _sections(certificates: Mapping[str, Certificate]) -> list[tuple[Paper, list[Row]]]:
    """By paper, in the order of the papers; every certificate must have its place."""
    require_places(certificates)
    sections = []
    for paper in PAPERS:
        shown = [(n, words) for n, words in paper.certificates.items() if n in certificates]
        sections.append((paper, [row_of(n, words, certificates[n]) for n, words in shown]))
    return [(paper, rows) for paper, rows in sections if rows]


def _headlines(rows: Sequence[Row]) -> Iterator[str]:
    """The outcome in sentences."""
    counts = {status: sum(row.status is status for row in rows) for status in reversed(Status)}
    found = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    yield f"{len(rows)} certificates: {found}."
    false = [row.algorithm[0] for row in rows if row.status is Status.REFUTED]
    loose = [row.algorithm[0] for row in rows if row.verdict[1].endswith("loose")]
    if false:
        yield f"False: {'; '.join(false)}."
    if loose:
        share = f"{100 * LOOSE:g} %"
        yield f"True, but loose ({share} of the claimed ε is enough): {'; '.join(loose)}."


def index(certificates: Mapping[str, Certificate], endings: Sequence[str], ending: str) -> str:
    """The index, in the looks of any project's.

    Args:
        certificates: by the subject's name.
        endings: of the files of each, with the dot.
        ending: its own: ``.md`` for a code host, ``.html`` for one page without scripts.

    Raises:
        InputError: if a certificate has no place among the papers, or states no claim.
    """
    sections = _sections(certificates)
    return render(
        Path(__file__).parent / "templates" / f"papers{ending}.j2",
        _shown,
        title=TITLE,
        headlines=list(_headlines([row for _, rows in sections for row in rows])),
        notes=NOTES,
        heads=HEADS,
        sections=sections,
        endings=endings,
        see_also=SEE_ALSO,
    )


def _shown(text: str) -> str:
    """The text, with formulas and numbers kept on one line."""
    kept = _SIGN.sub("\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", visible(text))
    return kept.replace(" %", "\N{NO-BREAK SPACE}%")
