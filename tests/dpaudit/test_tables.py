"""Tables that people write: what is wrong is told briefly, whatever its size."""

import time

import pytest

from dpaudit import tables
from dpaudit.errors import InputError


def test_a_near_word_is_named():
    with pytest.raises(InputError, match="unknown key 'epsilom'; did you mean 'epsilon'"):
        tables.table("claim", {"epsilom": 1}, ("epsilon", "delta"))


@pytest.mark.parametrize(
    "word", ["x" * 10**6, 10**5000, ["a"] * 10**5, None], ids=["text", "int", "list", "none"]
)
def test_a_huge_word_is_told_briefly_and_at_once(word):
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        tables.chosen(("epsilon", "delta"), accountant=word)
    assert len(str(caught.value)) < 200
    assert time.perf_counter() - start < 1


def test_of_many_words_some_are_named():
    with pytest.raises(InputError) as caught:
        tables.chosen([f"{number}" * 50 for number in range(10**4)], name="y")
    assert len(str(caught.value)) < 2000
