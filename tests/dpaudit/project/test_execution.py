"""How runs are drawn: one object, its fields, and the same fields as keywords."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from dpaudit import InputError
from dpaudit.project import Execution
from dpaudit.project.audit_request import ExecutionFields


def test_keywords_are_the_fields():
    assert [*ExecutionFields.__annotations__] == [field.name for field in fields(Execution)]
    assert get_type_hints(ExecutionFields) == get_type_hints(Execution)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"runs": 0}, "runs is 0; it must be an integer of at least 1"),
        ({"runs": 10.5}, "runs is 10.5"),
        ({"runs": 2 * 10**9}, r"runs is 2000000000; it must be at most 1000000000"),
        ({"confidence": 1}, "confidence is 1"),
        ({"seed": -1}, "seed is -1"),
        ({"workers": 0}, "workers is 0"),
        ({"dask": ""}, "dask is ''"),
        ({"timeout": 0}, "timeout is 0"),
        ({"journal": "trials.jsonl"}, "journal is given without a seed"),
    ],
)
def test_what_is_wrong_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        Execution(**wrong)
    with pytest.raises(InputError, match=message):
        Execution().updated(wrong)


def test_keywords_replace_fields():
    execution = Execution(runs=500, seed=3)
    assert execution.updated({"seed": 4, "workers": 2}) == Execution(500, seed=4, workers=2)
    assert execution.updated({}) == execution
    with pytest.raises(TypeError, match="runz"):
        execution.updated({"runz": 3})


def test_fields_without_a_use_are_refused():
    execution = Execution(seed=3)
    assert execution.only("seed", "confidence") is execution
    with pytest.raises(InputError, match="runs is 70; this audit takes seed, confidence and no"):
        Execution(runs=70).only("seed", "confidence")


def test_a_fresh_seed_is_drawn_where_there_is_none():
    assert Execution(seed=5).known_seed() == 5
    assert Execution().known_seed() != Execution().known_seed()


def test_who_is_told_is_no_part_of_what_is_run():
    assert Execution(progress=print) == Execution()
