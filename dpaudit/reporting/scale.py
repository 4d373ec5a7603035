"""Scales of a report: bars with marks, and a caption at the value of each mark."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpaudit.base.numbers import down, percent, plain, up
from dpaudit.certificate import Certificate
from dpaudit.reporting.figures.plot import Ink
from dpaudit.reporting.wording.headline import Odds


class Mark(NamedTuple):
    """A value: its place from 0 to 100, its colour, and a caption that says what it is."""

    place: float
    ink: Ink
    caption: str


class Scale(NamedTuple):
    """A bar between two ends, filled from one place to another, with marks."""

    ends: tuple[str, str]
    bar: tuple[float, float]
    marks: tuple[Mark, ...]


def guess_scale(odds: Odds) -> Scale:
    """How often the best guess is right at most, from a coin toss to certainty."""
    bounds = ((odds.proved, Ink.PROVED, "proved"), (odds.claimed, Ink.CLAIM, "claimed"))
    marks = tuple(
        Mark(200 * (share - 0.5), ink, f"{name}: ≤ {percent(share)}")
        for share, ink, name in bounds
        if share is not None
    )
    filled = 0.0 if odds.proved is None else marks[0].place
    return Scale(("coin toss: 50 %", "certainty: 100 %"), (0.0, filled), marks)


def epsilon_scale(certificate: Certificate) -> Scale | None:
    """What was attacked, proved and claimed at one δ; None where no attack shows a finite ε."""
    claim, proved = certificate.claim, certificate.guarantee
    delta = next((each.delta for each in (proved, claim) if each is not None), 0.0)
    found = max((a.epsilon_lower or 0.0 for a in certificate.audits if a.delta == delta), default=0)
    if not 0 < found < math.inf:
        return None
    values = [(found, Ink.ATTACK, f"attacked: ε ≥ {down(found)}")]
    if proved is not None and proved.epsilon < math.inf:
        values.append((proved.epsilon, Ink.PROVED, f"proved: ε ≤ {up(proved.epsilon)}"))
    if claim is not None and claim.risk is None and claim.delta == delta:
        values.append((claim.epsilon, Ink.CLAIM, f"claimed: ε = {plain(claim.epsilon)}"))
    largest = max(value for value, _, _ in values)
    marks = tuple(Mark(100 * value / largest, ink, said) for value, ink, said in values)
    end = next((mark.place for mark in marks if mark.ink is Ink.PROVED), 100.0)
    return Scale(("ε = 0", ""), (marks[0].place, end), marks)
