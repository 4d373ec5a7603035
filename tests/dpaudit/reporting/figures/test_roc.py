"""Operating curves of audits."""

from dataclasses import replace

import numpy as np
import pytest

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
