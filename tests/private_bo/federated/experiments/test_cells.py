"""What the federated experiments run."""

import pytest

from private_bo.federated import DPFTSDE, Sensitivity
from private_bo.federated.experiments.cells import (
    PAPER,
    PLAIN,
    SAME,
    Experiment,
    Task,
    comparisons,
    panels,
)


def test_the_settings_are_those_of_the_figures() -> None:
    shown = panels(Experiment.FIGURE_2, Task.SYNTHETIC)
    assert [each.rate for each in shown["(c) q"].values()] == [0.15, 0.25, 0.5]  # type: ignore[union-attr]
    assert [type(each).__name__ for each in shown["(a) distributed exploration"].values()] == [
        "PlainTS", "FTS", "FTSDE", "FTSDE",
    ]  # fmt: skip
    losses = [each.published_loss for each in shown["(d) z"].values() if isinstance(each, DPFTSDE)]
    assert losses == pytest.approx([9.91, 7.39, 5.22], abs=0.01)
    real = panels(Experiment.FIGURE_3, Task.LANDMINES)
    losses = [
        each.published_loss
        for cells in real.values()
        for each in cells.values()
        if isinstance(each, DPFTSDE)
    ]
    published = [15.17, 7.12, 5.14, 3.05, 2.16, 3.75, 5.98, 7.69, 9.82, 15.17]
    assert losses == pytest.approx(published, abs=0.01)


def test_equal_epsilon_is_equal() -> None:
    (cells,) = panels(Experiment.EQUAL, Task.LANDMINES, rounds=12).values()
    paper, same = cells[PAPER], cells[SAME]
    assert isinstance(paper, DPFTSDE)
    assert isinstance(same, DPFTSDE)
    assert same.certified(Sensitivity.JOINT) == pytest.approx(paper.published_loss, rel=1e-3)
    assert same.certified(Sensitivity.JOINT) <= paper.published_loss
    assert (same.sigmas < 0.7 * paper.sigmas).all()
    labels = {label for pair in comparisons(Experiment.EQUAL) for label in pair}
    assert labels <= set(cells)
    assert PLAIN in cells
