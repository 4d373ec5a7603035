"""What curator and modeller exchange."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.outsourced import (
    AnswerDesk,
    Release,
)
from private_bo.outsourced.problems import to_norm

RNG = np.random.default_rng(20200712)
ROWS = to_norm(RNG.normal(size=(40, 2)))


def test_desk_answers_each_row_once():
    desk = AnswerDesk(3, lambda row: 10.0 * row)
    assert desk.ask(2) == 20.0
    with pytest.raises(InputError, match="row is 2, which has been measured"):
        desk.ask(2)
    assert desk.ask(np.int64(0)) == 0.0


@pytest.mark.parametrize("row", [3, -1, 0.5, True, "1", None])
def test_desk_refuses_rows_that_do_not_exist(row):
    with pytest.raises(InputError, match="whole number from 0 to 2"):
        AnswerDesk(3, float).ask(row)


def test_desk_refuses_outputs_that_are_no_numbers():
    with pytest.raises(InputError, match="output"):
        AnswerDesk(3, lambda _: math.nan).ask(0)


def test_release_cannot_be_written_to():
    release = Release(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        release.points[0, 0] = 1.0
