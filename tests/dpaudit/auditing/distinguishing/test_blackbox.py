"""Code that cannot be audited is refused in one sentence."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpaudit import AuditPair, InconclusiveError, InputError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing.scores import Identity

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

        with pytest.raises(InputError, match=r"failed on x: InputError at test_blackbox\.py:"):
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
            with pytest.raises(InputError, match=f"no parameter '{wrong}' to set.*k, scale may"):
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

    def test_one_that_swallows_exceptions_too(self):
        def stubborn(data, rng):
            while True:
                try:
                    time.sleep(0.01)
                except Exception:  # noqa: BLE001
                    continue

        with pytest.raises(InconclusiveError, match="took more than"):
            audit(stubborn, timeout=0.05)

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
