"""What code is given is a copy; what it gives back are numbers, one output for each run."""

import numpy as np
import pytest

from dpaudit import InputError
from dpaudit.auditing.distinguishing.outputs import (
    NotPlainError,
    Plain,
    Raised,
    attempt,
    check_outputs,
    copies,
    singles,
)


@pytest.mark.parametrize(
    ("data", "change"),
    [
        ([1.0], lambda data: data.append(1.0)),
        ({"rows": [[1.0]]}, lambda data: data["rows"][0].append(1.0)),
        (([1.0],), lambda data: data[0].append(1.0)),
        ({1.0}, lambda data: data.add(5.0)),
        (np.ones(3), lambda data: np.add(data, 1, out=data)),
    ],
)
def test_copies_are_fresh_and_of_the_data_as_they_were(data, change):
    before, fresh = repr(data), copies(data)
    one = fresh()
    assert type(one) is type(data)
    change(one)
    assert repr(fresh()) == before == repr(data)
    change(data)
    assert repr(fresh()) == before


def test_whatever_else_data_hold_is_shared():
    kept = object()
    assert copies([kept])()[0] is kept


@pytest.mark.parametrize("raw", [[1, 2, 3], [True, False, True], np.ones(3, dtype=np.float32)])
def test_numbers_become_floats(raw):
    assert check_outputs(raw, 3, "").dtype == np.float64


def test_infinite_outputs_and_arrays_are_taken():
    assert check_outputs([[np.inf, 1.0]] * 2, 2, "").shape == (2, 2)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (["yes", "no"], r"returned \['yes'\] in runs 1 to 2; every output must be a number"),
        ([[1.0], [1.0, 2.0]], "outputs of changing shapes in runs 1 to 2"),
        ([1.0], r"shape \(1,\) in runs 1 to 2; its first axis must be the 2 runs"),
        (1.0, r"shape \(\) in runs"),
        (np.zeros((2, 0)), "returned nothing in runs 1 to 2"),
        ([1.0, np.nan], "NaN in runs 1 to 2"),
        ([1j, 2j], "every output must be a number"),
        (None, "returned None in runs"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(raw, message):
    with pytest.raises(InputError, match=message) as caught:
        check_outputs(raw, 2, "in runs 1 to 2")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [2**62 + 100, -(2**62), np.uint64(2**63 + 1)])
def test_whole_numbers_that_no_float_holds_are_not_rounded(value):
    with pytest.raises(InputError, match="whole numbers beyond"):
        check_outputs(np.array([value, 0 * value]), 2, "in runs 1 to 2")
    assert check_outputs([2**53, -(2**53)], 2, "")[0] == 2**53


@pytest.mark.parametrize("raw", [[2**62 + 1, 0.5], [np.float64(0.5), 2**63]])
def test_nor_are_those_beside_fractions(raw):
    with pytest.raises(NotPlainError, match="whole numbers beyond"):
        check_outputs(raw, 2, "")


def test_an_exception_is_an_answer_but_for_memory_and_own_errors():
    def raises(error):
        def call():
            raise error

        return call

    assert attempt(raises(KeyError("a"))) == Raised("KeyError", "'a'")
    assert attempt(lambda: 3) == 3
    for error in (MemoryError(), InputError("no"), SystemExit(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            attempt(raises(error))


def test_a_batch_holds_as_many_outputs_as_there_are_runs():
    assert singles(["a", None], 2) == ["a", None]
    assert singles(np.ones((2, 3)), 2).shape == (2, 3)
    for raw in (["a"], 1.0, {"a": 1}, np.ones(3), "ab"):
        with pytest.raises(InputError, match="first axis must be the 2 runs"):
            singles(raw, 2)


@pytest.mark.parametrize("odd", [None, "a", np.nan, [1.0], Raised("KeyError", ""), 2**60, object()])
def test_outputs_that_no_pilot_has_shown_are_nan(odd):
    assert Plain(())([1.5, odd, 2]).tolist()[::2] == [1.5, 2.0]
    assert np.isnan(Plain(())([1.5, odd, 2])[1])
    assert np.isnan(Plain((2,))([odd, [1, 2]])).tolist() == [[True, True], [False, False]]
    assert (Plain((2,))(np.ones((3, 2))) == 1).all()
