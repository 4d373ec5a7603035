"""The figures of a run."""

import math

import pytest

from dpaudit.reporting.figures.runs import series_figures
from dpaudit.reporting.html import svg


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
