"""Checks of single values: what they accept, and how briefly they say what they were given."""

import time

import numpy as np
import pytest

from dpaudit import validate
from dpaudit.errors import InputError


class Rude:
    def __repr__(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10**7,
        b"x" * 10**7,
        10**10**6,
        [0] * 10**6,
        {n: n for n in range(10**5)},
        [[[[["x" * 10**6]]]]],
        [10**5000],
        (Rude(), "x"),
        Rude(),
        np.zeros(10**6),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_long_value_is_told_briefly_and_at_once(value):
    start = time.perf_counter()
    assert len(validate.shown(value)) <= 80
    assert time.perf_counter() - start < 1
    with pytest.raises(InputError) as caught:
        validate.positive(scale=value)
    assert len(str(caught.value)) <= 160


def test_a_short_value_is_told_as_it_is():
    assert validate.shown(0.1) == "0.1"
    assert validate.shown("a'b") == '"a\'b"'
    assert validate.shown([1, "a"]) == "[1, 'a']"


def test_a_whole_number_lies_between_its_bounds():
    assert validate.integer_at_least(1, 10**15, count=np.int64(7)) == 7
    with pytest.raises(
        InputError, match=r"count is 11; it must be an integer of at least 1 and at"
    ):
        validate.integer_at_least(1, 10, count=11)
    for wrong in (0, True, 1.0, "1", None, 10**5000):
        with pytest.raises(InputError, match=r"count is .*; it must be an integer of at least 1"):
            validate.integer_at_least(1, 10**15, count=wrong)
