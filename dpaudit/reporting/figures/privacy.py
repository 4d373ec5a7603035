"""The figures of a report: what is drawn, and what it says in words.

They show what is claimed, proved and attacked; the operating curve of an audit that recorded one,
hits against false alarms of its attack; and what a run recorded for its owner.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.accounting import CurvePoint
from dpaudit.base.numbers import down, percent, plain, up
from dpaudit.certificate import AuditRecord, Certificate
from dpaudit.mechanisms.pairs import Floats
from dpaudit.reporting.curves import (
    Growth,
    Step,
    best_odds,
    densify,
    proved_points,
    thin_series,
    trade_off,
)
from dpaudit.reporting.figures.plot import LARGEST, Dot, Figure, Ink, Key, Line, Mark, Plot


def figures(certificate: Certificate) -> tuple[Figure, ...]:
    """The privacy and trade-off curves; none where there is neither proof nor attack."""
    proved = certificate.guarantee
    points = () if proved is None else proved_points(proved)
    if not points and (certificate.claim is None or not attacked(certificate.audits)):
        return ()
    return (_privacy_curve(certificate, points), _trade_off_curve(certificate, points))


def rates() -> Floats:
    """Rates of false alarms at which curves of tests are drawn; closer where they are small."""
    grid = np.concatenate([[0.0], np.logspace(-4, 0, 120), np.linspace(0, 1, 81)])
    return np.unique(grid)


def attacked(audits: Iterable[AuditRecord]) -> list[tuple[float, float]]:
    """Finite, positive lower bounds of audits, as (ε, δ)."""
    bounds = ((a.epsilon_lower, a.delta) for a in audits)
    return sorted({(e, d) for e, d in bounds if e is not None and 0 < e < math.inf})


def _privacy_curve(certificate: Certificate, points: Sequence[CurvePoint]) -> Figure:
    claim, proved, attacks = certificate.claim, certificate.guarantee, attacked(certificate.audits)
    deltas = [p.delta for p in points] + [d for _, d in attacks]
    stated = () if claim is None else claim.points
    deltas += [point.delta for point in stated]
    floor = _floor(deltas)
    lines, dots, legend = [], [], []
    if points:
        epsilon, delta = densify(points)
        lines.append(Line(epsilon, np.maximum(delta, floor), Ink.PROVED))
        legend.append(Key(Mark.LINE, Ink.PROVED, "proved: (ε, δ) holds on and above it"))
    if proved is not None and proved.epsilon < math.inf:
        dots.append(Dot(proved.epsilon, max(proved.delta, floor), Ink.PROVED, Mark.CIRCLE))
        shown = f"guarantee: ε = {up(proved.epsilon)}, δ = {plain(proved.delta)}"
        legend.append(Key(Mark.CIRCLE, Ink.PROVED, shown))
    if claim is not None:
        places = [(point.epsilon, max(point.delta, floor)) for point in stated]
        dots += [Dot(*place, Ink.CLAIM, Mark.SQUARE, hollow=True) for place in places]
        legend.append(Key(Mark.SQUARE, Ink.CLAIM, f"claim: {claim}"))
    for epsilon_lower, delta_at in attacks:
        dots.append(Dot(epsilon_lower, max(delta_at, floor), Ink.ATTACK, Mark.TRIANGLE))
    if attacks:
        words = "attacked: the true ε lies at or to the right of it"
        legend.append(Key(Mark.TRIANGLE, Ink.ATTACK, words))
    return Figure(
        "privacy-curve",
        "What is proved at every ε" if points else "What is claimed, and what was attacked",
        _in_words(certificate),
        Plot("ε", "δ", tuple(lines), tuple(dots), floor=floor),
        tuple(legend),
    )


def _floor(deltas: Sequence[float]) -> float:
    """Tell where δ = 0 is drawn on a logarithmic axis: one decade below the least positive δ."""
    least = min((delta for delta in deltas if delta > 0), default=1e-6)
    return float(10.0 ** (max(math.floor(math.log10(least)), -30) - 1))


def _in_words(certificate: Certificate) -> str:
    parts = []
    claim, proved = certificate.claim, certificate.guarantee
    if proved is not None:
        parts.append(f"The guarantee is ε = {up(proved.epsilon)} at δ = {plain(proved.delta)}")
    if claim is not None:
        parts.append(f"the claim is {claim}")
    attacks = attacked(certificate.audits)
    if any(audit.epsilon_lower == math.inf for audit in certificate.audits):
        parts.append("an attack, which cannot be drawn, shows that no finite ε holds")
    elif attacks:
        epsilon, delta = attacks[-1]
        parts.append(f"the strongest attack shows ε ≥ {down(epsilon)} at δ = {plain(delta)}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _trade_off_curve(certificate: Certificate, points: Sequence[CurvePoint]) -> Figure:
    claim, attacks, grid = certificate.claim, attacked(certificate.audits), rates()
    toss = np.array([0.0, 1.0])
    lines = [Line(toss, 1 - toss, Ink.MUTED, (1, 3))]
    legend = [Key(Mark.LINE, Ink.MUTED, "coin toss: nothing is learnt", (1, 3))]
    if points:
        lines.append(Line(grid, trade_off(points, grid), Ink.PROVED, shaded=True))
        legend.append(Key(Mark.LINE, Ink.PROVED, "proved: no test reaches below it"))
    if claim is not None:
        limit = trade_off(claim.points, grid)
        lines.append(Line(grid, limit, Ink.CLAIM, (6, 3)))
        legend.append(Key(Mark.LINE, Ink.CLAIM, f"claim: {claim}", (6, 3)))
    if attacks:
        reached = trade_off([CurvePoint(*attacks[-1])], grid)
        lines.append(Line(grid, reached, Ink.ATTACK, (2, 2)))
        words = "attacked: some test reaches it, or below"
        legend.append(Key(Mark.LINE, Ink.ATTACK, words, (2, 2)))
    bound = percent(best_odds(points))
    proof = f"By the proof, a 50:50 guess can be improved to be right at most {bound} of the time."
    return Figure(
        "trade-off",
        "What a test can reach",
        "Rates of misses against false alarms of the best test of two neighbouring data sets. "
        + (proof if points else ""),
        Plot("false alarms", "misses", tuple(lines), square=True),
        tuple(legend),
    )


def growth_figure(certificate: Certificate, growth: Growth) -> Figure:
    """ε against the number of uses, and beyond the plan where all of it is run again."""
    claim = certificate.claim
    lines, legend = [], []
    if len(growth.within) > 1:
        lines.append(_growth_line(growth.within, ()))
        legend.append(Key(Mark.LINE, Ink.PROVED, "proved, in the order of the plan"))
    lines.append(_growth_line((growth.within[-1], *growth.beyond), (4, 3)))
    legend.append(Key(Mark.LINE, Ink.PROVED, "if the whole plan is run again", (4, 3)))
    if claim is not None and claim.risk is None and claim.delta == growth.delta:
        ends = np.array([0.0, lines[-1].x[-1]])
        lines.append(Line(ends, np.full(2, claim.epsilon), Ink.CLAIM, (6, 3)))
        legend.append(Key(Mark.LINE, Ink.CLAIM, f"claim: {claim}", (6, 3)))
    once = growth.within[-1]
    last = growth.beyond[-1] if growth.beyond else once
    dot = Dot(once.uses, once.epsilon, Ink.PROVED, Mark.CIRCLE)
    legend.insert(-1, Key(Mark.CIRCLE, Ink.PROVED, "the plan, run once"))
    return Figure(
        "growth",
        "How the loss grows over time",
        f"After one run of the plan ({once.uses} {'use' if once.uses == 1 else 'uses'}) "
        f"ε = {up(once.epsilon)}; after {last.runs} "
        f"{'run' if last.runs == 1 else 'runs'} ε = {up(last.epsilon)}; all at "
        f"δ = {plain(growth.delta)}, by the accountant {growth.accountant}.",
        Plot("uses", "ε", tuple(lines), (dot,)),
        tuple(legend),
    )


def _growth_line(steps: Sequence[Step], dashes: tuple[int, ...]) -> Line:
    uses = np.array([float(step.uses) for step in steps])
    return Line(uses, np.array([step.epsilon for step in steps]), Ink.PROVED, dashes)


_MOST_POINTS = 200


def roc_points(details: Mapping[str, Any]) -> tuple[Floats, Floats] | None:
    """False and true positive rates that an audit recorded as ``roc: {"fpr": …, "tpr": …}``.

    Returns:
        Two arrays of the same shape (n,), 2 ≤ n ≤ 200, by increasing rate of false positives; None
        where there are none, or where they are no rates.
    """
    roc = details.get("roc")
    if not isinstance(roc, Mapping):
        return None
    false, true = _rates(roc.get("fpr")), _rates(roc.get("tpr"))
    if false is None or true is None or len(false) != len(true) or len(false) < 2:
        return None
    order = np.lexsort((true, false))
    if len(order) > _MOST_POINTS:
        order = order[np.linspace(0, len(order) - 1, _MOST_POINTS).astype(int)]
    return false[order], true[order]


def _rates(values: Any) -> Floats | None:
    if not isinstance(values, Sequence) or isinstance(values, str):
        return None
    if not all(isinstance(value, int | float) and 0 <= value <= 1 for value in values):
        return None
    return np.array(values, dtype=np.float64)


def roc_figure(audit: AuditRecord, number: int) -> Figure | None:
    """The curve with the bound that the claim sets; None where the audit recorded none."""
    points = roc_points(audit.details)
    if points is None:
        return None
    diagonal, grid = np.array([0.0, 1.0]), rates()
    limit = 1 - trade_off([CurvePoint(audit.claim_epsilon, audit.delta)], grid)
    area = audit.details.get("auc")
    spoken = f" The area below it is {plain(float(area))}." if isinstance(area, int | float) else ""
    return Figure(
        f"roc-{number}",
        f"Audit {number}: hits against false alarms",
        f"What the attack of audit {number} reached in {len(points[0])} points.{spoken} A point "
        "above the claim’s line is evidence against the claim only beyond its sampling error, "
        "which the audit’s lower bound takes into account.",
        Plot(
            "false positives",
            "true positives",
            (
                Line(diagonal, diagonal, Ink.MUTED, (1, 3)),
                Line(grid, limit, Ink.CLAIM, (6, 3)),
                Line(*points, Ink.ATTACK),
            ),
            square=True,
        ),
        (
            Key(Mark.LINE, Ink.ATTACK, "the attack"),
            Key(Mark.LINE, Ink.CLAIM, "the most that the claim allows", (6, 3)),
            Key(Mark.LINE, Ink.MUTED, "guessing", (1, 3)),
        ),
    )


_LINES_A_FIGURE = 6
_MOST_SERIES = 24
_PATTERNS = ((), (6, 2), (2, 2), (8, 2, 2, 2), (1, 1), (4, 4))


def series_figures(series: Mapping[str, Sequence[float]]) -> tuple[Figure, ...]:
    """Curves of a run; those of like length and size share a figure."""
    groups: list[list[str]] = []
    for name in [name for name, values in sorted(series.items()) if len(values) > 0][:_MOST_SERIES]:
        home = next((g for g in groups if _share_axes(series[g[0]], series[name], len(g))), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return tuple(_series_figure(number, names, series) for number, names in enumerate(groups, 1))


def _share_axes(one: Sequence[float], other: Sequence[float], lines: int) -> bool:
    sizes = sorted(max(map(abs, values)) for values in (one, other))
    return lines < _LINES_A_FIGURE and len(one) == len(other) and sizes[1] <= 20 * sizes[0]


def _clipping_note(names: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """Return what to say where values are too large to be drawn."""
    if max(abs(value) for name in names for value in series[name]) <= LARGEST:
        return ""
    return f" Values beyond ±{LARGEST:g} are drawn as ±{LARGEST:g}; the table has them."


def _series_figure(
    number: int, names: Sequence[str], series: Mapping[str, Sequence[float]]
) -> Figure:
    lines, legend, spoken = [], [], []
    for ink, pattern, name in zip(Ink.series(), _PATTERNS, names, strict=False):
        lines.append(Line(*thin_series(series[name]), ink, pattern))
        legend.append(Key(Mark.LINE, ink, name, pattern))
        spoken.append(f"{name} ends at {plain(float(series[name][-1]))}")
    about = f"After {len(series[names[0]])} rounds, {'; '.join(spoken)}."
    return Figure(
        f"series-{number}",
        f"Run: {', '.join(names)}",
        about + _clipping_note(names, series),
        Plot("round", "value", tuple(lines)),
        tuple(legend),
    )
