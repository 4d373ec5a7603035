"""Outputs of any kind: right code is let pass, wrong code is refuted by an event to be read.

Rows tell outputs apart by what a sample showed, and count what it did not.
"""

import json
import math
import pickle
import struct
from dataclasses import dataclass

import numpy as np
import pytest

from dpaudit import AuditPair, InconclusiveError, InputError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing.output_facts import digests, forms
from dpaudit.auditing.distinguishing.output_features import Vocabulary

RUNS = 2000
EPSILON = 1.0


def audit(function, **settings):
    settings = {"epsilon": EPSILON, "runs": RUNS, "seed": 1, **settings}
    return audit_release(BlackBox(function), AuditPair([0], [1]), **settings)


# -- right mechanisms of ε = 1 ------------------------------------------------------------------


def randomised_text(data, rng):
    return "yes" if data[0] ^ (rng.random() > math.e / (1 + math.e)) else "no"


def stable_histogram(data, rng):
    noisy = {name: count + rng.laplace() for name, count in (("a", 5), ("b", data[0]))}
    return {name: count for name, count in noisy.items() if count > 1}


def noisy_length(data, rng):
    return [0.5] * max(0, round(5 + data[0] + rng.laplace()))


@dataclass
class Result:
    total: float
    names: set


def in_dataclass(data, rng):
    return Result(data[0] + rng.laplace(), {"sum", "of"})


def sometimes_nan(data, rng):
    return math.nan if rng.random() < 0.3 else data[0] + rng.laplace()


def sometimes_raises(data, rng):
    if rng.random() < 0.2:
        raise ValueError(f"no {rng.integers(3)}")
    return data[0] + rng.laplace()


def in_text(data, rng):
    return f"the sum is {data[0] + rng.laplace():.3f}"


def beyond_floats(data, rng):
    return 2**62 + data[0] + int(np.subtract(*rng.geometric(1 - math.exp(-1), size=2)))


def as_bytes(data, rng):
    return struct.pack("d", data[0] + rng.laplace())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "right",
    [
        *(randomised_text, stable_histogram, noisy_length, in_dataclass, sometimes_nan),
        *(sometimes_raises, in_text, beyond_floats, as_bytes),
    ],
)
def test_right_code_is_not_refuted(right, seed):
    # Each is refuted with a chance of 0.05 at most, at its worst; these bounds lie below ε.
    assert not audit(right, runs=2000, seed=seed, confidence=0.999).refuted


@pytest.mark.parametrize(
    "right", [randomised_text, stable_histogram, noisy_length, in_dataclass, as_bytes]
)
def test_a_claim_that_is_too_small_is_refuted(right):
    assert audit(right, epsilon=0.5).refuted


# -- wrong ones ---------------------------------------------------------------------------------


def key(data, rng):
    return {"a": rng.laplace(), **({"b": rng.laplace()} if data[0] else {})}


def longer(data, rng):
    return list(rng.laplace(size=3 + data[0]))


def raises(data, rng):
    if data[0] and rng.random() < 0.1:
        raise ValueError("bad row")
    return rng.laplace()


def always_raises(data, rng):
    return {}["key"] if data[0] else rng.laplace()


def message(data, rng):
    if rng.random() < 0.2:
        raise KeyError(data[0])
    return rng.laplace()


def nan(data, rng):
    return [rng.laplace(), math.nan if data[0] and rng.random() < 0.1 else 0.3]


def text(data, rng):
    return f"noise {rng.laplace()} on {data[0]}"


def member(data, rng):
    return {int(rng.integers(20, 99)), *([7] if data[0] else [])}


def packed(data, rng):
    return struct.pack("dd", rng.laplace(), data[0])


def large(data, rng):
    return np.int64(2**62 + 100 * data[0] + int(rng.integers(2)))


def of_two(data, rng):
    return [2**62 + data[0], rng.laplace()]


def dtype(data, rng):
    return np.float32(rng.laplace()) if data[0] else rng.laplace()


def cell(data, rng):
    cells = rng.laplace(size=30)
    cells[4] *= -float(data[0] == 0 or rng.random() > 0.2)
    return {"cells": cells}


def masked(data, rng):
    return np.ma.array([rng.laplace(), 1.0], mask=[False, data[0]])


class Named:
    """As a series of pandas."""

    def __init__(self, values, index):
        self.values, self.index = values, index

    def to_numpy(self):
        return np.array(self.values)

    __array__ = to_numpy

    def to_dict(self):
        return dict(zip(self.index, self.values, strict=True))


def named(data, rng):
    return Named([rng.laplace()], [f"user {data[0]}"])


def late_word(data, rng):
    words = rng.choice(["alpha", "beta", "gamma"], size=400)
    return " ".join([*words, *(["Smith"] if data[0] and rng.random() < 0.2 else [])])


def nothing(data, rng):
    return None if data[0] and rng.random() < 0.1 else rng.laplace()


def as_json(data, rng):
    return json.dumps({"mean": rng.laplace(), "n": 10 + data[0]})


def batch(data, rng, size):
    if data[0] and rng.random() < 0.9:
        raise RuntimeError
    return rng.laplace(size=size)


def texts(data, rng, size):
    return ["a" if data[0] and rng.random() < 0.9 else "b" for _ in range(size)]


class Numbers(list):
    """A list with something hung on it."""


class Number(float):
    """A number with something hung on it."""


def hung_on_a_list(data, rng):
    output = Numbers([rng.laplace()])
    output.source = data[0]
    return output


def hung_on_a_number(data, rng):
    output = Number(rng.laplace())
    output.source = data[0]
    return output


def imaginary(data, rng):
    return rng.laplace() + 1j * data[0]


def negative_zero(data, rng):
    return -0.0 if data[0] and rng.random() < 0.9 else 0.0


def noted(data, rng):
    if rng.random() < 0.5:
        return 0
    error = ValueError("no")
    error.add_note(f"row {data[0]}")
    raise error


def grouped(data, rng):
    if rng.random() < 0.5:
        return 0
    raise ExceptionGroup("several", [ValueError(data[0])])


def last_bit(data, rng):
    return [2 * int(rng.integers(2**60)) + data[0]]


WRONG = {
    negative_zero: "output",
    noted: "it raises ValueError with one particular message",
    grouped: "it raises ExceptionGroup with one particular message",
    last_bit: "(last bits of output)[0]",
    hung_on_a_list: "output.source",
    hung_on_a_number: "output.source",
    imaginary: "output.imag",
    key: "output['b'] is present",
    longer: "length of output ≤ 3",
    raises: "it raises ValueError",
    always_raises: "it raises KeyError",
    message: "it raises KeyError with one particular message",
    nan: "output[1] is NaN",
    text: "(numbers in output)[1]",
    member: "output holds 7",
    packed: "output[14]",
    large: "last 32 bits of output",
    of_two: "(last 32 bits of output)[0]",
    dtype: "output has type numpy.float32",
    cell: "output['cells'][4] = 0",
    masked: "output.mask[1]",
    named: "output.index[0]",
    late_word: "output holds the word 'Smith'",
    nothing: "output is None",
    as_json: "(numbers in output)[1]",
    batch: "it raises RuntimeError",
    texts: "output is 'a'",
}


NEGATED = (
    (" is present", " is absent"),
    (" is ", " is not "),
    (" has ", " does not have "),
    (" holds ", " does not hold "),
    ("it raises", "it does not raise"),
)
"""A fact, and that it does not hold: either may be the likelier one on its side."""


@pytest.mark.parametrize(("wrong", "event"), WRONG.items())
def test_wrong_code_is_refuted_by_an_event_that_can_be_read(wrong, event):
    record = audit(wrong)
    assert record.refuted
    negated = [event.replace(*words) for words in NEGATED if words[0] in event]
    assert any(told in record.event for told in (event, *negated[:1]))
    assert "secret" not in record.event


@pytest.mark.parametrize("seed", range(3))
def test_what_is_seldom_returned_is_found_without_a_pilot_too(seed):
    def seldom(data, rng):
        if data[0] and rng.random() < 0.1:
            raise ValueError("bad row")
        return rng.laplace()

    record = audit(seldom, stop_early=True, seed=seed)
    assert record.refuted
    assert record.runs < RUNS


@pytest.mark.processes
def test_forms_come_from_other_processes():
    def rarely_fails(data, rng):
        if rng.random() < 0.05:
            raise RuntimeError("by chance")
        return key(data, rng)

    alone = audit(rarely_fails, runs=80, score=lambda output: 0.0)  # which travels too
    assert "present" in alone.event
    assert audit(rarely_fails, runs=80, score=lambda output: 0.0, workers=2) == alone


def test_what_only_a_test_run_shows_neither_ends_nor_moves_an_audit():
    def late(data, rng):
        late.runs += 1
        if late.runs > 2_000 and rng.random() < 0.01:  # after checks and pilot
            raise ValueError
        return data[0] + rng.laplace()

    late.runs = 0
    record = audit(late, runs=5000, own_randomness=True)
    assert not record.refuted
    assert record.details["test_runs"] == 4500


def test_what_always_fails_is_an_error_of_the_input():
    with pytest.raises(
        InputError, match=r"raised ZeroDivisionError in runs .* at test_any_o"
    ) as told:
        audit(lambda data, rng: 1 / 0)
    assert str(told.value).endswith(
        "(DPAUDIT_DEBUG=1 shows the rest); it must run on both data sets."
    )
    with pytest.raises(InputError, match="returned nothing in every run"):
        audit(lambda data, rng: None)


def test_code_that_hardly_ever_answers_is_an_error_of_the_input():
    with pytest.raises(InputError, match="raises an error in over 90% of its runs on both sides"):
        audit(lambda data, rng: 1 // int(rng.random() < 0.03))


def test_what_tells_nothing_apart_is_called_no_event():
    assert audit(lambda data, rng: {}).event.startswith("none: nothing that was looked at")


async def awaited(data, rng):
    yield data[0] + rng.laplace()


@pytest.mark.parametrize(
    ("code", "part"),
    [
        (awaited, "output, a async_generator,"),
        (lambda data, rng: lambda: data, "output, a function,"),
        (lambda data, rng: Result(rng.laplace(), data.__iter__), "output.names, a method-wrapper,"),
        (lambda data, rng: [rng.laplace(), rng], r"output\[1\], a numpy.random._generator.Gen"),
    ],
)
def test_nothing_is_said_of_what_cannot_be_read(code, part):
    with pytest.raises(
        InputError, match=f"^{part}.* holds something that no test can read; return data"
    ):
        audit(code)


def test_a_sign_without_content_can_be_read():
    class Nothing:
        pass

    assert not audit(lambda data, rng: rng.laplace() if rng.random() < 0.5 else Nothing()).refuted


def test_a_batch_that_first_raises_in_a_test_is_inconclusive():
    def late(data, rng, size):
        late.runs += size
        if late.runs > 9_000:
            raise ValueError
        return data[0] + rng.laplace(size=size)

    late.runs = 0
    with pytest.raises((InconclusiveError, InputError), match="raised ValueError"):
        audit(late, runs=5000, own_randomness=True)


def test_a_journal_goes_on_with_the_same_vocabulary(tmp_path):
    path = tmp_path / "trials.journal"
    first = audit(key, journal=path)
    size = path.stat().st_size
    assert audit(key, journal=path).to_dict() == first.to_dict()
    assert path.stat().st_size == size


def test_one_entry_of_many_is_found():
    def narrow(data, rng, size):
        noise = rng.normal(size=(size, 1000))
        noise[:, 417] = data[0] + 0.5 * noise[:, 417]
        return noise

    record = audit(narrow, delta=0.127, runs=2000)
    assert record.refuted
    assert "entry 417 of the output" in record.event


def test_outputs_that_no_pilot_can_hold_are_screened(monkeypatch):
    monkeypatch.setattr("dpaudit.auditing.distinguishing.engine.WIDE", 1000)

    def shifted(data, rng):
        noise = rng.normal(size=(40, 50))
        noise[7, 3] += 3 * data[0]
        return noise

    record = audit(shifted, delta=0.2, runs=1000)
    assert record.refuted
    assert "output[7, 3]" in record.event


# -- what a score cannot take ----------------------------------------------------------------------


def infinities(data, rng):
    return [math.inf] * int(rng.integers(0, 4))


def infinities_of_both_signs(data, rng):
    return [[math.inf, -math.inf, 0.0][rng.integers(3)] for _ in range(rng.integers(0, 4))]


def infinite_array(data, rng):
    return np.full(3, math.inf if rng.random() < 0.5 else -math.inf)


def infinite_beside_a_number(data, rng):
    return {"a": [[], [math.inf]][rng.integers(2)], "b": data[0] + rng.laplace()}


def empty_at_times(data, rng):
    return {} if rng.random() < 0.4 else {"a": -math.inf}


def empty_array(data, rng):
    return np.zeros((int(rng.integers(0, 2)), 3))


def of_the_largest_floats(data, rng):
    return np.array([1.7e308 * rng.choice([-1, 1]), data[0] + rng.laplace()])


ODD = (
    infinities,
    infinities_of_both_signs,
    infinite_array,
    infinite_beside_a_number,
    empty_at_times,
    empty_array,
    of_the_largest_floats,
)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("function", ODD)
def test_infinite_and_empty_outputs_end_no_audit(function, early):
    # false alarms: 14 audits at 1e-6 each
    assert not audit(function, runs=600, stop_early=early, confidence=1 - 1e-6).refuted


def test_an_output_that_a_leak_makes_infinite_is_refuted():
    found = audit(lambda data, rng: [math.inf if data[0] else -math.inf, rng.random()])
    assert found.refuted


class OftenNaN:
    """A score that is no number for half of all outputs."""

    name = method = "half a score"

    def __call__(self, outputs):
        flat = outputs.reshape(len(outputs))
        return np.where(flat > 0, flat, np.nan)


def test_a_score_that_is_nan_counts_as_zero():
    found = audit(in_number, score=OftenNaN())
    assert not found.refuted
    assert found.epsilon_lower > 0
    assert audit(lambda data, rng: 5 * data[0] + rng.laplace(), score=OftenNaN()).refuted


def in_number(data, rng):
    return data[0] + rng.laplace()


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
