"""Figures for notebooks: what is proved, claimed and attacked, on axes of matplotlib.

Each function draws on the axes that it is given, or makes some, and returns them. The style is the
user's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.accounting import CurvePoint, Guarantee, compose, epsilon_after_rounds, guarantee
from dpaudit.base import validate
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.numbers import down, plain
from dpaudit.certificate import AuditRecord, Certificate, Claim
from dpaudit.certificate.claim import USUAL_DELTA
from dpaudit.plan import Plan
from dpaudit.reporting.curves import densify, proved_points, trade_off
from dpaudit.reporting.figures.privacy import attacked, rates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 100
"""At so many more ε the curve of a plan is computed, where δ is above 0.001."""
_LOWEST = 1e-15
"""The δ that stands for 0, unless a smaller one is drawn."""


def plot_trade_off(
    of: Plan | Guarantee | Certificate, *, ax: Axes | None = None, label: str = "proved"
) -> Axes:
    """Draw the trade-off function: the least rate of misses at each rate of false alarms.

    No test of two neighbouring data sets goes below the line that is proved. The line of a plan is
    computed in more points than a guarantee or a certificate states, whose line may lie lower.

    Args:
        of: what is proved; of a certificate the claim (dashed) and the finite lower bounds of the
            audits (dotted) are drawn too: some test reaches the dotted line, or goes below it.
        ax: where it is drawn; new axes where not given.
        label: of the proved line.

    Raises:
        UnsupportedError: if there is nothing to draw.
    """
    points, claims, attacks = _parts(of)
    axes, alarms = _axes(ax), rates()
    if not axes.lines:
        axes.plot([0, 1], [1, 0], color="0.6", linewidth=1, label="coin toss")
    if points:
        axes.plot(alarms, trade_off(points, alarms), label=label)
    for claim in claims:
        axes.plot(alarms, trade_off(claim.points, alarms), "--", label=f"claim: {claim}")
    for epsilon, delta in attacks:
        shown = f"attacked: ε ≥ {down(epsilon)} at δ = {plain(delta)}"
        axes.plot(alarms, trade_off([CurvePoint(epsilon, delta)], alarms), ":", label=shown)
    axes.set(xlabel="false alarms", ylabel="misses", xlim=(0, 1), ylim=(0, 1))
    axes.legend()
    return axes


def plot_curve(
    of: Plan | Guarantee | Certificate,
    *,
    claims: Iterable[Claim] = (),
    audits: Iterable[AuditRecord] = (),
    ax: Axes | None = None,
    label: str = "proved",
) -> Axes:
    """Draw the privacy curve δ(ε) that is proved, with claims and attacked lower bounds as points.

    A claim is proved if all of its points lie on or above the curve. δ = 0 is drawn at the lower
    edge.

    Args:
        of: what is proved; a certificate brings its claim and its audits.
        claims: drawn as squares.
        audits: their finite lower bounds, drawn as triangles.
        ax: where it is drawn; new axes where not given.
        label: of the proved line.

    Raises:
        UnsupportedError: if there is nothing to draw.
    """
    points, stated, attacks = _parts(of, claims, audits)
    axes = _axes(ax)
    deltas = [each.delta for claim in stated for each in claim.points]
    deltas += [*(each.delta for each in points), *(delta for _, delta in attacks)]
    least = min((delta / 10 for delta in deltas if delta > 0), default=_LOWEST)
    floor = min(least, _LOWEST, axes.get_ylim()[0] if axes.lines else 1.0)
    if points:
        epsilon, delta = densify(points)
        axes.plot(epsilon, np.maximum(delta, floor), label=label)
    for claim in stated:
        x, y = zip(*((each.epsilon, max(each.delta, floor)) for each in claim.points), strict=True)
        axes.plot(x, y, "s", mfc="none", clip_on=False, label=f"claim: {claim}")
    if attacks:
        x, y = zip(*((epsilon, max(delta, floor)) for epsilon, delta in attacks), strict=True)
        axes.plot(x, y, ">", clip_on=False, label="attacked: ε is here or larger")
    axes.set(xlabel="ε", ylabel="δ", yscale="log", ylim=(floor, 1))
    axes.autoscale(axis="x")
    axes.set_xlim(left=0)
    axes.legend()
    return axes


def plot_rounds(
    plan: Plan,
    delta: float,
    rounds: int = 100,
    *,
    accountant: str = "rdp",
    ax: Axes | None = None,
    label: str = "proved",
) -> Axes:
    """Draw ε after each round, where one round is the whole plan.

    Args:
        plan: one round.
        delta: δ of every guarantee.
        rounds: how many.
        accountant: which one; ``rdp`` answers thousands of rounds at once.
        ax: where it is drawn; new axes where not given.
        label: of the line.

    Raises:
        InputError: if a number is out of range, or there is no such accountant.
        UnsupportedError: if the accountant has no theorem for an invocation, or proves no finite ε.
    """
    numbers = np.arange(1, validate.integer_at_least(1, rounds=rounds) + 1)
    epsilons = epsilon_after_rounds(plan, delta, numbers, accountant)
    if not np.isfinite(epsilons).any():
        raise UnsupportedError(f"no finite ε is proved at δ = {plain(delta)}; give a larger delta.")
    axes = _axes(ax)
    axes.plot(numbers, epsilons, label=f"{label} ({accountant})")
    axes.set(xlabel="rounds of the plan", ylabel=f"ε at δ = {plain(delta)}")
    axes.autoscale()
    axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def _parts(
    of: Plan | Guarantee | Certificate,
    claims: Iterable[Claim] = (),
    audits: Iterable[AuditRecord] = (),
) -> tuple[Sequence[CurvePoint], Sequence[Claim], Sequence[tuple[float, float]]]:
    """What is drawn: points that are proved, claims, and lower bounds as (ε, δ)."""
    proved = of if isinstance(of, Guarantee) else None
    if isinstance(of, Plan):
        proved = guarantee(of, USUAL_DELTA)
    if isinstance(of, Certificate):
        proved, audits = of.guarantee, [*of.audits, *audits]
        claims = [*([] if of.claim is None else [of.claim]), *claims]
    points = () if proved is None else proved_points(proved)
    if isinstance(of, Plan):
        points = _with_more(points, of)
    attacks = attacked(audits)
    if not (points or (claims := list(claims)) or attacks):
        raise UnsupportedError("no finite ε is proved, claimed or attacked; there is no curve.")
    return points, list(claims), attacks


def _with_more(points: Sequence[CurvePoint], plan: Plan) -> tuple[CurvePoint, ...]:
    """Further points where δ is large, as trade-off functions need them there."""
    last = max((point.epsilon for point in points if point.delta >= 1e-3), default=0.0)
    epsilons = np.linspace(0.0, last, _POINTS)
    deltas = np.minimum(compose(plan).deltas(epsilons), 1.0)
    least, kept = math.inf, []
    for point in sorted(
        {*points, *map(CurvePoint, epsilons.tolist(), deltas.tolist())}, key=CurvePoint.to_dict
    ):
        if point.delta < least:  # the points of one law may be looser than those of another
            least = point.delta
            kept.append(point)
    return tuple(kept)


def _axes(ax: Axes | None) -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots()[1] if ax is None else ax
