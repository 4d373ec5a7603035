"""Figures: what they plot, and what they say of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import Claim
from dpaudit.reporting.figures.plot import LARGEST, Ink, drawable
from dpaudit.reporting.figures.privacy import figures, roc_figure, roc_points, series_figures
from dpaudit.reporting.html import svg
from dpaudit.reporting.view import view

# What a figure draws


def test_what_no_axis_can_span_is_drawn_at_its_end():
    drawn = drawable([np.inf, -np.inf, 1e308, 1.0, -0.0])
    assert drawn.tolist() == [LARGEST, -LARGEST, LARGEST, 1.0, 0.0]


def test_marks_of_colours_are_unique():
    """A drawing is searched for them, so no one may be the start of another."""
    values = [ink.value for ink in Ink]
    assert len(set(values)) == len(values)
    assert {len(value) for value in values} == {7}
    assert len(Ink.series()) == 6


# The figures of claim, proof and attack


def test_figures_show_claim_proof_and_attack(certificates):
    curve, trade_off = figures(certificates["refuted"])
    labels = [key.label for key in curve.legend]
    assert any("guarantee: ε = 1, δ = 0" in label for label in labels)
    assert any("claim" in label for label in labels)
    assert any("attacked" in label for label in labels)
    assert "the strongest attack shows ε ≥ 1.93456" in curve.description
    assert "right at most 69.7 % of the time" in trade_off.description


def test_no_figures_where_nothing_is_known(certificates):
    assert figures(certificates["opaque"]) == ()
    assert figures(replace(certificates["unbounded"], claim=Claim(1.0))) == ()


# Operating curves of audits


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


# The figures of a run


def test_long_series_are_thinned():
    (figure,) = series_figures({"noise": [float(i * 7919 % 1000) for i in range(100_000)]})
    assert len(svg.markup(figure.plot, figure.name)) < 40_000


@pytest.mark.parametrize(
    "values",
    [[1e308, -1e308], [1e308] * 3, [0.0, 1e308, 5e-324], [-1e308], [math.inf, 1.0], [1e-310, 0.0]],
)
def test_extreme_series_are_drawn_in_silence(values):
    (figure,) = series_figures({"regret": values})
    assert "<svg" in svg.markup(figure.plot, figure.name)
    assert ("Values beyond" in figure.description) == (max(map(abs, values)) > 1e100)


def test_series_of_like_size_share_a_figure(certificates):
    drawn = series_figures(certificates["certified"].run["series"])
    assert [[key.label for key in figure.legend] for figure in drawn] == [
        ["cumulative regret", "without privacy"],
        ["simple regret"],
    ]
    assert "cumulative regret ends at 3000" in drawn[0].description
