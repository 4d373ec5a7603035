"""What code is given is a copy; what it gives back are numbers, one output for each run.

What rides on objects beside what they show.
Code that cannot be audited is refused in one sentence.
"""

import enum
import re
import sys
import time
import types
from collections import defaultdict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from dpaudit import AuditPair, InconclusiveError, InputError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing.output_facts import canonical
from dpaudit.auditing.distinguishing.outputs import (
    NotPlainError,
    Plain,
    Raised,
    attempt,
    check_outputs,
    copies,
    singles,
)
from dpaudit.auditing.distinguishing.scores import Identity


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


class Lying(list):
    def __iter__(self):
        return iter(())


class Odd(float):
    def __float__(self):
        return 0.0


class Colour(enum.Enum):
    RED = 1


@dataclass
class Computing:
    value: float

    @property
    def other(self):
        return 3.0


@dataclass
class More:
    value: float

    def __post_init__(self):
        self.hidden = 3.0


Pair = namedtuple("Pair", "one two")


class Holder:
    secret = 0.0


@dataclass
class Record:
    value: float = 0.0


def of_class(secret):
    Holder.secret = secret
    return Holder()


def of_frame(secret):
    frame = pd.DataFrame({"x": [1.0]})
    frame.attrs["secret"] = secret
    return frame


def of_series(secret):
    series = pd.Series([1.0])
    object.__setattr__(series, "secret", secret)
    return series


RIDING = {
    "a view": lambda secret: np.array([1.0, secret])[:1],
    "a view of a view": lambda secret: np.array([[1.0, secret, 2.0]])[:, :2][0, :1],
    "metadata": lambda secret: np.array([1.0], np.dtype("f8", metadata={"secret": secret})),
    "a class": of_class,
    "a table": of_frame,
    "a column": of_series,
}


def differ(make, **how):
    one, two = (canonical(make(secret), **how) for secret in (3.0, 4.0))
    return one.digest != two.digest


@pytest.mark.parametrize("name", RIDING)
def test_it_is_read_where_it_is_asked_for(name):
    assert differ(RIDING[name], carried=True)
    assert not differ(RIDING[name])
    assert len(canonical(RIDING[name](3.0), carried=True).unread) == (name == "a class")


TENSORS = ["storage", "grad", "attribute"]


@pytest.mark.parametrize("name", TENSORS)
def test_tensors(name):
    torch = pytest.importorskip("torch")

    def make(secret):
        shown = torch.tensor([1.0, secret])[:1] if name == "storage" else torch.tensor([1.0])
        if name == "grad":
            shown.grad = torch.tensor([secret])
        if name == "attribute":
            shown.secret = secret
        return shown

    assert differ(make, carried=True)


def test_what_no_test_can_read_is_told():
    torch = pytest.importorskip("torch")
    computed = torch.tensor([1.0], requires_grad=True) * 2
    odds = [computed, lambda: 3.0, Holder, types.ModuleType("own"), torch.eye(2).to_sparse()]
    odds += [defaultdict(lambda: 3.0), Lying([1.0]), Colour.RED, ValueError(3.0), Computing(1.0)]
    odds += [Odd(1.0), [1.0, Odd(1.0)], {Odd(1.0): 1.0}, {Odd(1.0)}]
    odds += [More(1.0), memoryview(b"abc")[1:], re.match("a", "ab"), type("Own", (), {})()]
    for odd in odds:
        assert canonical([odd], carried=True).unread


@pytest.mark.parametrize(
    "plain",
    [
        *(
            1.0,
            "a",
            None,
            [1, 2.0],
            {"a": np.eye(2)},
            np.eye(2).reshape(4),
            np.float64(1),
            Record(),
            Pair(1, 2),
        ),
        *(pd.DataFrame({"x": [1.0], "y": [2.0]})["x"], pd.DataFrame({"x": [1.0]}), {1.0}),
    ],
)
def test_plain_data_carry_nothing(plain):
    assert canonical(plain, carried=True).unread == []
    own = isinstance(plain, Record | Pair)  # whose classes are read too
    assert own or canonical(plain, carried=True).digest == canonical(plain).digest


PAIR = AuditPair(0.0, 1.0)


def audit(function, **settings):
    settings = {"epsilon": 1.0, "runs": 60, "seed": 3, **settings}
    return audit_release(BlackBox(function), PAIR, **settings)


def rare(data, rng):
    if rng.random() < 0.05:
        raise KeyError("no such row")
    return data + rng.laplace()


def leaves(data, rng):
    if rng.random() < 0.05:
        sys.exit(0)
    return data + rng.laplace()


class TestExits:
    def test_are_failures_of_the_mechanism(self):
        with pytest.raises(InconclusiveError, match=r"raised SystemExit in runs \d+ to \d+ on x"):
            audit(leaves)

    def test_in_threads(self):
        with (
            ThreadPoolExecutor(1) as pool,
            pytest.raises(InconclusiveError, match="raised SystemExit"),
        ):
            pool.submit(audit, leaves).result()

    def test_an_interrupt_by_the_user_is_none(self):
        def interrupted(data, rng):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            audit(interrupted)


class TestData:
    @pytest.mark.parametrize("batched", [False, True])
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
    def test_code_may_change_what_it_is_given(self, data, change, batched):
        seen = []

        def one(data, rng):
            seen.append(repr(data))
            change(data)
            return rng.laplace()

        def many(data, rng, size):
            one(data, rng)
            return rng.laplace(size=size)

        before = repr(data)
        function = many if batched else one
        audit_release(BlackBox(function), AuditPair(data, data), epsilon=1.0, runs=60, seed=3)
        assert set(seen) == {before} == {repr(data)}


class TestOutputs:
    def test_one_run_or_a_batch_a_call(self):
        one = BlackBox(lambda data, rng: data + rng.laplace())
        many = BlackBox(lambda data, rng, size: data + rng.laplace(size=size))
        for box in (one, many):
            assert box(0.0, 5, np.random.default_rng(0)).shape == (5,)
        assert [one.batched, many.batched] == [False, True]
        rng = np.random.default_rng
        assert (one(0.0, 5, rng(0)) == many(0.0, 5, rng(0))).all()

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda d, r: None, "returned nothing"),
            (lambda d, r, size: r.laplace(size=size + 1), "first axis"),
            (lambda d, r, size: r.laplace(), "first axis"),
            (lambda d, r: 1 / 0, "ZeroDivisionError"),
        ],
    )
    def test_what_cannot_be_tested(self, function, message):
        with pytest.raises(InputError, match=message) as caught:
            audit(function)
        assert str(caught.value).count("\n") == 0

    @pytest.mark.parametrize(
        "function",
        [
            pytest.param(rare, marks=pytest.mark.unabridged),
            lambda d, r: float("nan"),
            pytest.param(lambda d, r: "yes", marks=pytest.mark.unabridged),
            lambda d, r: {"a": 1},
            lambda d, r: [[1.0], [1.0, 2.0]],
            lambda d, r: np.zeros(r.integers(1, 9)),
            lambda d, r: np.zeros(0),
            lambda d, r, size: [[1.0]] * (size - 1) + [[1.0, 2.0]],
        ],
    )
    def test_of_any_kind_may_be_audited(self, function):
        assert not audit(function).refuted

    def test_a_given_score_takes_numbers_of_one_shape(self):
        with pytest.raises(InputError, match=r"'yes'.*must be a number"):
            audit(lambda d, r: "yes", score=Identity())
        with pytest.raises(InconclusiveError, match=r"raised KeyError in runs \d+ to \d+ on x"):
            audit(rare, score=Identity())

    def test_what_code_says_in_our_name_is_not_repeated(self):
        def refusing(data, rng):
            raise InputError("value is 1; it must be 0.")

        with pytest.raises(InputError, match=r"failed on x: InputError at test_outputs\.py:"):
            audit(refusing)


class TestSignature:
    @pytest.mark.parametrize(
        "function",
        [lambda a, b, c, d: a, 3, lambda *, data, rng: data, lambda: 0, lambda **data: data],
    )
    def test_of_another_shape(self, function):
        with pytest.raises(InputError, match=r"f\(data, rng\)"):
            BlackBox(function)

    @pytest.mark.parametrize(
        ("function", "batched", "takes_rng", "expected"),
        [
            (lambda data: data, False, False, [0, 0, 0]),
            (lambda data, scale=2: scale, False, False, [2, 2, 2]),
            (lambda data, rng, k=5: k, False, True, [5, 5, 5]),
            (lambda data, gen, k=5: gen is not None, False, True, [1, 1, 1]),
            (lambda data, rng=None: rng is not None, False, True, [1, 1, 1]),
            (lambda data, *, rng: rng is not None, False, True, [1, 1, 1]),
            (lambda data, *, size, rng: np.arange(size), True, True, [0, 1, 2]),
            (lambda data, size=7: np.arange(size), True, False, [0, 1, 2]),
            (lambda *given: len(given), False, True, [2, 2, 2]),
            (lambda data, rng, **more: len(more), False, True, [0, 0, 0]),
        ],
    )
    def test_parameters_go_by_their_names(self, function, batched, takes_rng, expected):
        box = BlackBox(function)
        assert (box.batched, box.takes_rng) == (batched, takes_rng)
        assert box(0, 3, np.random.default_rng(0)).tolist() == expected

    def test_others_are_set_by_name(self):
        def scaled(data, rng, scale, *, k):
            return [scale] * k

        box = BlackBox(scaled, arguments={"scale": 2.0, "k": 3})
        assert box(0, 1, np.random.default_rng(0)).tolist() == [[2.0] * 3]
        with pytest.raises(InputError, match=r"scaled needs the parameter k.*--arg k=JSON"):
            BlackBox(scaled, arguments={"scale": 2.0})
        for wrong in ("no_such", "data", "rng", "size"):
            with pytest.raises(
                InputError, match=f"no parameter '{wrong}' to set.*be set: k, scale"
            ):
                BlackBox(scaled, arguments={"scale": 2.0, "k": 3, wrong: 1})

    def test_a_third_parameter_is_no_size(self):
        def five_answers(data, rng, k=5):
            return data + rng.laplace(size=k)

        record = audit(five_answers, runs=4000)
        assert record.refuted
        assert record.epsilon_lower > 2

    def test_defaults_do_not_count_against_it(self):
        assert not BlackBox(lambda data, rng, *, scale=1.0: data).batched


class TestTimeout:
    def test_a_hang_is_interrupted(self):
        def hangs(data, rng):
            while True:
                time.sleep(0.01)

        started = time.perf_counter()
        with pytest.raises(InconclusiveError, match=r"took more than 0\.05 s"):
            audit(hangs, timeout=0.05)
        assert time.perf_counter() - started < 5

    def test_a_single_slow_run_among_many(self):
        def sometimes(data, rng):
            if rng.random() < 0.02:
                time.sleep(30)
            return data + rng.laplace()

        started = time.perf_counter()
        with pytest.raises(InconclusiveError, match="took more than"):
            audit(sometimes, timeout=0.5, runs=4000)
        # One run is stopped, not its whole chunk of 63 after 30 s.
        assert time.perf_counter() - started < 10
