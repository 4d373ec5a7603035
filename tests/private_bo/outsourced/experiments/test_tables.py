"""Tables of the outsourced setting."""

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.outsourced import Hyperparameters, Modeller
from private_bo.outsourced.experiments import tables
from private_bo.outsourced.experiments.tables import Cell, Setting, grid_cells

CELLS = [Cell(None, Modeller(Hyperparameters(5.0), steps=2))]


def test_regrets_do_not_depend_on_the_workers():
    one, two = (tables.regrets(Setting.GRID, CELLS, trials=2, workers=n)[0].regrets for n in (1, 2))
    # Not to the last digit: where arrays lie in memory decides it on some processors.
    np.testing.assert_allclose(one, two, rtol=1e-12)
    assert (one >= 0).all()


def test_one_trial_has_no_standard_error():
    with pytest.raises(InputError, match="trials is 1"):
        tables.regrets(Setting.GRID, CELLS, trials=1)


def test_a_table_has_a_row_for_each_cell():
    outcomes = [tables.Outcome(cell, np.array([1.0, 3.0])) for cell in grid_cells({1.1: (3, 6)})]
    text = tables.regret_table("grid", outcomes)
    assert text.count("2.000 ± 1.000") == len(outcomes)
    assert "paper (refuted), r = 6" in text
    assert "## grid (2 runs)" in text


def test_the_branch_table_names_the_largest_dimension():
    text = tables.branch_table()
    assert text.startswith("σ_min = ")
    assert text.count("e^1.") == 3
