"""Rows tell outputs apart by what a sample showed, and count what it did not."""

import pickle

import numpy as np
import pytest

from dpaudit.auditing.distinguishing.forms import digests, forms
from dpaudit.auditing.distinguishing.vocabulary import Vocabulary


def learned(x, x_prime):
    return Vocabulary.of(list(forms(x)), list(forms(x_prime)))


def columns(vocabulary, outputs):
    return dict(zip([each.name for each in vocabulary.scores], vocabulary(outputs).T, strict=True))


def test_facts_numbers_and_entries_are_columns():
    rng = np.random.default_rng(3)
    x = [{"a": rng.normal(), "list": list(rng.normal(size=3))} for _ in range(40)]
    x_prime = [{**each, "b": "yes"} for each in x]
    made = learned(x, x_prime)
    assert made.scores[0].name in {"output['b'] is present", "output['b'] is 'yes'"}
    told = columns(made, [{"a": 5.0, "list": [1.0, 2.0]}, {"b": "yes"}, None])
    assert told["output['b'] is present"].tolist() == [0, 1, 0]
    assert told["output['a']"][0] == 5.0
    assert told["output['list'][1]"][0] == 2.0
    assert told["sum of output['list']"][0] == 3.0
    unseen = told["number of facts not seen before"]
    assert unseen[0] == 0 < unseen[2]


@pytest.mark.parametrize(
    "odd",
    [None, "x", [np.nan], [np.inf, -np.inf], {"a": np.nan}, np.zeros(0), 1e308, [[1.0] * 99]],
)
def test_no_row_holds_nan(odd):
    rng = np.random.default_rng(4)
    made = learned([*rng.normal(size=20).tolist(), odd], [[each] for each in rng.normal(size=21)])
    assert made([odd, 1.0, [1.0], {}]).shape == (4, len(made.scores))
    assert not np.isnan(made([odd, 1.0, [1.0], {}])).any()


def test_equal_outputs_leave_two_columns_at_least():
    made = learned(["same"] * 5, ["same"] * 5)
    assert made(["same", "other"]).tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_the_clearest_of_many_entries_are_kept():
    rng = np.random.default_rng(5)
    x, x_prime = rng.normal(size=(2, 60, 5000))
    x[:, 4321] += 2
    made = learned(list(x), list(x_prime))
    weighted = ["weighted sum of output", "weighted squares of output"]
    assert "output[4321]" in [each.name for each in made.scores if each.name not in weighted][:1]
    assert len(made.scores) < 64


def test_vocabularies_travel_and_have_a_number():
    one, other = learned([1.0, "a"], ["b", "b"]), learned(["c", "a"], ["b", "b"])
    assert pickle.loads(pickle.dumps(one)).number == one.number != other.number


def test_digests_are_whole_numbers():
    one, same, other = digests([{"a": 1}, {"a": 1}, {"a": 2}])
    assert one == same != other
    assert one == np.floor(one) < 2**53
