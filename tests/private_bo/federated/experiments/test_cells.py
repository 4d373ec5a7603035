"""What the federated experiments run."""

import numpy as np
import pytest

from private_bo.federated import DPFTS, DPFTSDE, FTSDE, PlainTS, Sensitivity
from private_bo.federated.experiments.figures import (
    PAPER,
    PLAIN,
    SAME,
    Experiment,
    Task,
    comparisons,
    panels,
    problem_of,
    regrets_of,
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


SMALL = DPFTSDE(agents=6, rate=0.5, features=10, rounds=3, initial=3)


def test_results_do_not_depend_on_the_workers() -> None:
    alike = {f: getattr(SMALL, f) for f in ("agents", "features", "rounds", "initial")}
    algorithms = [SMALL, DPFTS(**alike, rate=0.5), FTSDE(**alike), PlainTS(**alike)]
    one = regrets_of(algorithms, None, trials=3, seed=4, workers=1)
    two = regrets_of(algorithms, None, trials=3, seed=4, workers=2)
    assert list(one) == list(two) == algorithms
    for algorithm in algorithms:
        assert one[algorithm].shape == (3, 4)
        assert np.array_equal(one[algorithm], two[algorithm])
    assert not np.array_equal(one[SMALL][0], one[SMALL][1])


def test_synthetic_functions_are_new_in_every_trial() -> None:
    assert problem_of(Task.SYNTHETIC, 10) is None
