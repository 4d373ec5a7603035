"""The operating curve of an audit that recorded one: hits against false alarms of its attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.accounting import CurvePoint
from dpaudit.base.numbers import plain
from dpaudit.certificate import AuditRecord
from dpaudit.mechanisms.pairs import Floats
from dpaudit.reporting.curves import trade_off
from dpaudit.reporting.figures.plot import Figure, Ink, Key, Line, Mark, Plot
from dpaudit.reporting.figures.privacy import rates

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
