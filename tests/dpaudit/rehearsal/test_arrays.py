"""Sequences become arrays that give back what they were made of."""

from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.rehearsal.frames import column, entries, hashable, labels_like, numeric


class Level(IntEnum):
    LOW = 1


@given(st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())))
def test_entries_keep_their_types(values):
    assert repr(entries(column(values))) == repr(values)


def test_numbers_are_known_among_what_is_missing():
    assert numeric(column([3, None, 5])).tolist() == [3, 3, 5]
    for values in ([None], [True, None], [Level.LOW, 2], ["a"], [np.nan], []):
        assert numeric(column(values)) is None


@pytest.mark.parametrize("label", [np.int8(3), [1], {"a": 1}, float("nan"), np.float64("nan")])
def test_every_label_can_be_a_key(label):
    assert hashable(label) == hashable(label)
    assert {hashable(label): 1}


def test_labels_are_of_the_type_of_others():
    assert next(iter(labels_like(column([3, None])))) == 4
    assert "a new unit" in labels_like(column(["a"]))
    assert list(labels_like(column([(1, 2)]))) == []
