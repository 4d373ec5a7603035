"""Columns that differ between two samples are found among many that do not."""

import numpy as np
import pytest

from dpaudit.auditing.distinguishing.scores import ColumnScore, differences, scale, scaled
from dpaudit.auditing.evidence.types import Event


def sides(change, size=400, width=300):
    rng = np.random.default_rng(5)
    x, x_prime = rng.standard_cauchy(size=(2, size, width))
    change(x, rng)
    return x, x_prime


def spread(x, rng):
    x[:, 17] *= 0.5


def zeros(x, rng):
    x[rng.random(len(x)) < 0.1, 17] = 0.0


def missing(x, rng):
    x[rng.random(len(x)) < 0.1, 17] = np.nan


def bound(x, rng):
    x[:, 17] = np.minimum(x[:, 17], 4.0)


@pytest.mark.parametrize(
    "change", [lambda x, rng: np.add(x[:, 17], 1, out=x[:, 17]), spread, zeros, missing, bound]
)
def test_the_one_column_that_differs_is_the_clearest(change):
    told = differences(*sides(change))
    assert told.argmax() == 17
    # Of 300 equal columns with 9 statistics each none is beyond 5.2 but with a chance of 6e-4.
    assert np.delete(told, 17).max() < 5.2 < told[17]


def test_slabs_change_nothing(monkeypatch):
    x, x_prime = sides(zeros)
    whole = differences(x, x_prime)
    monkeypatch.setattr("dpaudit.auditing.distinguishing.scores.SLAB", 7 * 800)
    assert (differences(x, x_prime) == whole).all()


def test_odd_columns_are_no_trouble():
    odd = np.array([[np.nan, np.inf, 1.0, 1e308], [np.nan, -np.inf, 1.0, -1e308]])
    assert np.isfinite(differences(odd, odd)).all()
    assert np.isfinite(scaled(odd, *scale(odd))).all()
    assert differences(np.empty((2, 0)), np.empty((2, 0))).shape == (0,)


def test_a_flag_is_told_in_words():
    flag, number = ColumnScore(1, "the key is there", flag=True), ColumnScore(0, "output[0]")
    rows = np.array([[3.5, 0.0], [4.5, 1.0]])
    assert (flag(rows) == [0, 1]).all()
    assert (number(rows) == [3.5, 4.5]).all()
    assert flag.in_words(Event(lower=1.0)) == "the key is there"
    assert flag.in_words(Event(upper=0.0)) == "not: the key is there"
    assert flag.in_words(Event()) is number.in_words(Event(lower=1.0)) is None
