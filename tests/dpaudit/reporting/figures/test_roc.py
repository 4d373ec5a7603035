"""Operating curves of audits, and several certificates side by side."""

from dataclasses import replace

import numpy as np
import pytest

from dpaudit.reporting.comparison import comparison, tally
from dpaudit.reporting.figures.roc import roc_figure, roc_points
from dpaudit.reporting.view import view


def test_points_are_sorted_and_few():
    rates = list(np.linspace(1, 0, 1000))
    false, true = roc_points({"roc": {"fpr": rates, "tpr": rates}})
    assert len(false) == len(true) == 200
    assert (np.diff(false) >= 0).all()
    assert (false[0], false[-1]) == (0, 1)


@pytest.mark.parametrize(
    "roc",
    [
        None,
        "curve",
        {},
        {"fpr": [0, 1]},
        {"fpr": [0, 1], "tpr": [0]},
        {"fpr": [0], "tpr": [0]},
        {"fpr": [0, 2], "tpr": [0, 1]},
        {"fpr": [0, "1"], "tpr": [0, 1]},
        {"fpr": "01", "tpr": "01"},
    ],
)
def test_what_is_no_curve_is_not_drawn(certificates, roc):
    audit = replace(certificates["certified"].audits[0], details={"roc": roc})
    assert roc_points(audit.details) is None
    assert roc_figure(audit, 1) is None
    shown = view(replace(certificates["certified"], audits=(audit,))).audits[0]
    assert any(name.startswith("roc") for name, _ in shown.facts)


def test_claim_bounds_the_hits(certificates):
    """Hits are at most e^ε times the false alarms (δ = 0)."""
    audit = certificates["scripts"].audits[0]
    figure = roc_figure(audit, 3)
    limit = figure.plot.lines[1]
    small = limit.x < 0.2
    assert limit.y[small] == pytest.approx(np.e * limit.x[small])
    assert figure.name == "roc-3"
    assert "0.588235" in figure.description


def test_rows_side_by_side(certificates):
    views = [view(certificates[kind]) for kind in ("certified", "exceeded", "refuted", "bare")]
    rows = comparison(views)
    assert [str(row.verdict) for row in rows] == ["certified", "unproven", "refuted", "certified"]
    assert rows[0].attacked == "ε ≥ 0.91 at δ = 0"
    assert rows[2].attacked == "ε ≥ 1.93456 at δ = 0"
    assert rows[3].attacked == "not attacked"
    assert rows[1].claimed == "ε = 0.1, δ = 1e-05"
    assert rows[2].guess == rows[3].claimed == "–"
    assert tally(views) == "4 reports: 1 refuted, 1 unproven, 2 certified."
