"""The figures of a report: what is drawn, what it says in words, and its legend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.reporting import svg
from dpaudit.reporting._text import down, percent, plain, up
from dpaudit.reporting.curves import best_odds, densified, proved_points, thinned, trade_off
from dpaudit.reporting.svg import Ink

if TYPE_CHECKING:
    from dpaudit.accounting.proved import CurvePoint, Guarantee
    from dpaudit.certificate import Certificate

__all__ = ["Figure", "Key", "Mark", "figures", "series_figures"]

_LINES_A_FIGURE = 6
_MOST_SERIES = 24
_PATTERNS = ((), (6, 2), (2, 2), (8, 2, 2, 2), (1, 1), (4, 4))


class Mark(StrEnum):
    """How an entry of a legend is drawn."""

    LINE = "line"
    CIRCLE = "circle"
    SQUARE = "square"
    TRIANGLE = "triangle"


@dataclass(frozen=True)
class Key:
    """One entry of a legend. It stands beside the figure, as text of the page.

    Attributes:
        mark: how it is drawn.
        ink: in which colour.
        label: what it is.
        dashes: lengths of dash and gap of a line; empty for a whole one.
    """

    mark: Mark
    ink: Ink
    label: str
    dashes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A figure for a page.

    Attributes:
        name: unique within the page.
        title: what it shows.
        description: what there is to see, for those who cannot.
        markup: one ``<svg>`` element, free of text of the certificate.
        legend: its keys.
    """

    name: str
    title: str
    description: str
    markup: str
    legend: tuple[Key, ...]


@svg.drawing()
def figures(certificate: Certificate) -> tuple[Figure, ...]:
    """The privacy and trade-off curves; none where there is neither proof nor attack."""
    proved = certificate.guarantee
    points = () if proved is None else proved_points(proved)
    if not points and (certificate.claim is None or not _attacks(certificate)):
        return ()
    return (_privacy_curve(certificate, points), _trade_off_curve(certificate, points))


def _attacks(certificate: Certificate) -> list[tuple[float, float]]:
    """Finite, positive lower bounds of the audits, as (ε, δ)."""
    bounds = ((a.epsilon_lower, a.delta) for a in certificate.audits)
    return sorted({(e, d) for e, d in bounds if e is not None and 0 < e < math.inf})


def _privacy_curve(certificate: Certificate, points: Sequence[CurvePoint]) -> Figure:
    claim, proved, attacks = certificate.claim, certificate.guarantee, _attacks(certificate)
    deltas = [p.delta for p in points] + [d for _, d in attacks]
    deltas += [] if claim is None else [claim.delta]
    floor = _floor(deltas)
    chart = svg.Chart("ε", "δ")
    legend = []
    if points:
        epsilon, delta = densified(points)
        chart.line(epsilon, np.maximum(delta, floor), Ink.PROVED)
        legend.append(Key(Mark.LINE, Ink.PROVED, "proved: (ε, δ) holds on and above it"))
    if proved is not None and proved.epsilon < math.inf:
        at = max(proved.delta, floor)
        chart.point(proved.epsilon, at, Ink.PROVED, "o")
        legend.append(Key(Mark.CIRCLE, Ink.PROVED, _named("guarantee", proved)))
    if claim is not None:
        chart.point(claim.epsilon, max(claim.delta, floor), Ink.CLAIM, "s", hollow=True)
        legend.append(Key(Mark.SQUARE, Ink.CLAIM, f"claim: {claim}"))
    for epsilon_lower, delta_at in attacks:
        chart.point(epsilon_lower, max(delta_at, floor), Ink.ATTACK, ">")
    if attacks:
        legend.append(
            Key(Mark.TRIANGLE, Ink.ATTACK, "attacked: the true ε lies at or to the right of it")
        )
    chart.logarithmic(floor)
    return Figure(
        "privacy-curve",
        "What is proved at every ε" if points else "What is claimed, and what was attacked",
        _in_words(certificate),
        chart.markup("privacy-curve"),
        tuple(legend),
    )


def _floor(deltas: Sequence[float]) -> float:
    """Where δ = 0 is drawn on a logarithmic axis: one decade below the least positive δ."""
    least = min((delta for delta in deltas if delta > 0), default=1e-6)
    return float(10.0 ** (max(math.floor(math.log10(least)), -30) - 1))


def _named(what: str, proved: Guarantee) -> str:
    return f"{what}: ε = {up(proved.epsilon)}, δ = {plain(proved.delta)}"


def _in_words(certificate: Certificate) -> str:
    parts = []
    claim, proved = certificate.claim, certificate.guarantee
    if proved is not None:
        parts.append(f"The guarantee is ε = {up(proved.epsilon)} at δ = {plain(proved.delta)}")
    if claim is not None:
        parts.append(f"the claim is {claim}")
    attacks = _attacks(certificate)
    if attacks:
        epsilon, delta = attacks[-1]
        parts.append(f"the strongest attack shows ε ≥ {down(epsilon)} at δ = {plain(delta)}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _trade_off_curve(certificate: Certificate, points: Sequence[CurvePoint]) -> Figure:
    from dpaudit.accounting.proved import CurvePoint

    claim, attacks = certificate.claim, _attacks(certificate)
    rates = np.unique(np.concatenate([[0.0], np.logspace(-4, 0, 120), np.linspace(0, 1, 81)]))
    chart = svg.Chart("false alarms", "misses", square=True)
    chart.line([0, 1], [1, 0], Ink.MUTED, (1, 3))
    legend = [Key(Mark.LINE, Ink.MUTED, "coin toss: nothing is learnt", (1, 3))]
    misses = trade_off(points, rates)
    if points:
        chart.axes.fill_between(rates, 0, misses, color=Ink.PROVED, alpha=0.14, linewidth=0)
        chart.line(rates, misses, Ink.PROVED)
        legend.append(Key(Mark.LINE, Ink.PROVED, "proved: no test reaches below it"))
    if claim is not None:
        limit = trade_off([CurvePoint(claim.epsilon, claim.delta)], rates)
        chart.line(rates, limit, Ink.CLAIM, (6, 3))
        legend.append(Key(Mark.LINE, Ink.CLAIM, f"claim: {claim}", (6, 3)))
    if attacks:
        reached = trade_off([CurvePoint(*attacks[-1])], rates)
        chart.line(rates, reached, Ink.ATTACK, (2, 2))
        legend.append(
            Key(Mark.LINE, Ink.ATTACK, "attacked: some test reaches it, or below", (2, 2))
        )
    bound = percent(best_odds(points))
    return Figure(
        "trade-off",
        "What a test can reach",
        "Rates of misses against false alarms of the best test of two neighbouring data sets. "
        + (
            f"By the proof a guess at even odds is right at most {bound} of the time."
            if points
            else ""
        ),
        chart.markup("trade-off"),
        tuple(legend),
    )


@svg.drawing()
def series_figures(series: Mapping[str, Sequence[float]]) -> tuple[Figure, ...]:
    """Curves of a run; those of like length and size share a figure."""
    groups: list[list[str]] = []
    for name in [name for name, values in sorted(series.items()) if len(values) > 0][:_MOST_SERIES]:
        home = next((g for g in groups if _alike(series[g[0]], series[name], len(g))), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return tuple(_series_figure(number, names, series) for number, names in enumerate(groups, 1))


def _alike(one: Sequence[float], other: Sequence[float], lines: int) -> bool:
    sizes = sorted(max(map(abs, values)) for values in (one, other))
    return lines < _LINES_A_FIGURE and len(one) == len(other) and sizes[1] <= 20 * sizes[0]


def _cut(names: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """What to say where values are too large to be drawn."""
    if max(abs(value) for name in names for value in series[name]) <= svg.LARGEST:
        return ""
    return f" Values beyond ±{svg.LARGEST:g} are drawn as ±{svg.LARGEST:g}; the table has them."


def _series_figure(
    number: int, names: Sequence[str], series: Mapping[str, Sequence[float]]
) -> Figure:
    chart = svg.Chart("round", "value")
    legend, spoken = [], []
    for ink, pattern, name in zip(Ink.series(), _PATTERNS, names, strict=False):
        rounds, values = thinned(series[name])
        chart.line(rounds, values, ink, pattern)
        legend.append(Key(Mark.LINE, ink, name, pattern))
        spoken.append(f"{name} ends at {plain(float(series[name][-1]))}")
    return Figure(
        f"series-{number}",
        f"Run: {', '.join(names)}",
        f"After {len(series[names[0]])} rounds, {'; '.join(spoken)}.{_cut(names, series)}",
        chart.markup(f"series-{number}"),
        tuple(legend),
    )
