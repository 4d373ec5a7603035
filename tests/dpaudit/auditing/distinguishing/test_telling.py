"""What is told of an event, and of fields that differ in nearly every run."""

import hashlib
import itertools
import re
import time
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import AuditPair, Claim, InconclusiveError, InputError, Laplace
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing.event_description import Fields, is_unique, rates_in_words
from dpaudit.auditing.distinguishing.scores import ColumnScore, FixedScore, Identity
from dpaudit.auditing.evidence.events import Direction, Event, PairCounts
from dpaudit.project import Execution
from dpaudit.project.audit_request import AuditRequest
from dpaudit.workflow.attacking import attack

RNG = np.random.default_rng
PAIR = AuditPair([0.0], [1.0])


def audit(function, **settings):
    settings = {"epsilon": 1.0, "runs": 2000, "seed": 1, **settings}
    return audit_release(BlackBox(function), PAIR, **settings)


def test_a_learned_event_names_fields_and_directions():
    x, other = RNG(0).normal(size=(400, 3)), RNG(1).normal(size=(400, 3))
    score = FixedScore(lambda outputs: outputs[:, 2] - outputs[:, 0], "learned score")
    fields = Fields((x, other), ("a", "b", "c"))
    words = fields.in_words(score, Event(lower=1.0))
    assert set(words.removeprefix("outputs where ").split(" (")[0].split(" and ")) == {
        "a is smaller",
        "c is larger",
    }
    assert words.endswith("(learned score)")
    assert Fields((x, other)).in_words(score, Event(lower=1.0)).count("output[") == 2
    assert fields.in_words(score, Event()) is None
    assert Fields((x[:, :1], other[:, :1])).in_words(Identity(), Event(lower=0.0)) is None


def said(truth, rng):
    return bool(truth if rng.random() < 0.9 else not truth)


@pytest.mark.parametrize("kind", [bool, np.bool_, int])
def test_true_and_false_are_told_as_the_code_returns_them(kind):
    pair = AuditPair(True, False)
    code = BlackBox(lambda truth, rng: kind(said(truth, rng)))
    record = audit_release(code, pair, epsilon=1.0, runs=2000, seed=1)
    assert record.refuted
    if kind is int:
        assert record.event.startswith(tuple(f"output {sign} " for sign in "=≥>≤<"))
        assert set(record.details["examples"]) <= {"0", "1"}
        return
    told = re.match(r"output is (True|False), likelier under x'?$", record.event)
    assert told
    assert set(record.details["examples"]) == {told[1]}


def test_examples_lie_in_the_event():
    x, other = np.arange(10.0), np.arange(10.0) + 0.5
    assert Fields((x, other)).examples(Identity(), Event(lower=7.0)) == ["7", "8", "9"]
    backward = Event(lower=8.0, direction=Direction.BACKWARD)
    assert Fields((x, other)).examples(Identity(), backward) == ["8.5", "9.5"]
    rows = np.c_[x, x, 0 * x, x]
    told = Fields((rows, rows)).examples(FixedScore(lambda o: o[:, 0]), Event(lower=9.0))
    assert told == ["output[0]: 9; output[1]: 9; output[3]: 9"]
    named = Fields((rows, rows), tuple("abcd")).examples(ColumnScore(3, "d"), Event(lower=9.0))
    assert named == ["a: 9; b: 9; d: 9"]


def test_a_score_with_a_name_of_its_own_keeps_it():
    x = RNG(0).normal(size=(400, 3))
    norm = FixedScore(lambda outputs: np.abs(outputs).sum(axis=1), "norm of the output")
    assert Fields((x, x)).in_words(norm, Event(lower=3.0)) is None
    assert "a is " in Fields((x, x), ("a", "b", "c")).in_words(norm, Event(lower=3.0))


def test_the_last_line_says_what_was_tested_and_what_was_not():
    record = audit(lambda data, rng: {"sum": data[0] + rng.laplace(), "other": rng.normal()})
    assert record.power.startswith("Tested: output['sum'] ")
    assert "a ratio of" in record.power
    assert "where the claim allows 2.72. " in record.power
    assert record.power.endswith("this is no verdict on the code.")
    assert len(record.details["examples"]) == 3
    assert all(each.startswith("output['") for each in record.details["examples"])


def test_rates_are_told_of_the_side_on_which_they_were_counted():
    counts = PairCounts(50, 100, 20, 100)
    event = Event(lower=1.0, direction=Direction.BACKWARD)
    words = rates_in_words(counts, event, Claim(1.0, 0.01), "output ≥ 1, likelier under x'")
    assert words == (
        "Tested: output ≥ 1, in 50 % of the runs on x' and 20 % of those on x: a ratio of 2.5, "
        "where the claim allows 2.72 and δ = 0.01 beyond."
    )
    none = rates_in_words(PairCounts(1, 4, 0, 4), event, Claim(1.0), "it")
    assert none.endswith(
        "it, in 25 % of the runs on x' and in none on x, where the claim allows a ratio of 2.72."
    )
    assert rates_in_words(None, event, Claim(1.0), "it") == ""


@pytest.mark.parametrize(
    ("hits", "delta", "chance"),
    [((6, 2), 0.0, True), ((5, 2), 0.0, False), ((6, 2), 0.1, False), ((1, 0), 0.0, True)],
)
def test_an_event_beyond_the_claim_that_refutes_nothing_is_said_to_be_chance(hits, delta, chance):
    counts = PairCounts(hits[0], 10, hits[1], 10).to_dict()
    record = audit(lambda data, rng: data[0] + rng.laplace())
    record = replace(record, refuted=False, delta=delta, details={"counts": counts})
    assert ("by chance" in record.caution) is chance


def test_a_bound_that_refutes_narrowly_is_said_to_be_near_the_claim():
    def noisy(scale):
        return audit(lambda data, rng: data[0] + rng.laplace(scale=scale), runs=20_000, seed=2)

    near, far = noisy(0.93), noisy(0.5)
    assert near.refuted
    assert near.epsilon_lower < 1.1
    assert "close to the claim" in near.caution
    assert "with a probability of up to 0.05: if" in near.caution
    barely = replace(near, claim_epsilon=1.0, epsilon_lower=1.000004)
    assert barely.bound() == "1.000004"  # not 1, which is the claim
    assert replace(barely, epsilon_lower=0.999).bound(2) == "0.99"
    assert far.refuted
    assert far.caution == ""


def test_rare_fields_that_no_event_tested_are_counted():
    def rare(data, rng):
        return {"n": data[0] + rng.laplace(), **({"trace": 1} if rng.random() < 0.001 else {})}

    told = audit(rare, runs=4000, seed=5).power
    found = r" \d+ of 6000 outputs had a field, a text, a type or the like that hardly any output"
    assert re.search(found, told)
    assert "hardly any" not in audit(lambda data, rng: {"n": data[0] + rng.laplace()}).power


def seeded(data, rng):
    seed = int(rng.integers(2**32))
    return {
        "seed": seed,
        "nonce": hashlib.sha256(str(seed).encode()).hexdigest(),
        "count": int(data[0]) + int(rng.geometric(0.5)),
        "sum": data[0] + rng.laplace(),
        "text": f"the sum is {rng.laplace():.3f}",
    }


def test_seeds_and_nonces_are_told_of_and_noise_is_not():
    unique = audit(seeded, runs=600).details["unique_fields"]
    assert sorted(unique) == ["output['nonce']", "output['seed']"]
    listed = lambda data, rng: [data[0] + rng.laplace(), float(rng.integers(2**32))]  # noqa: E731
    plain = audit(listed, runs=600)
    assert plain.details["unique_fields"] == {"output[1]": "undeclared"}
    assert "unique_fields" not in audit(lambda data, rng: data[0] + rng.laplace()).details


def test_wide_whole_numbers_alone_are_unique():
    rng = RNG(0)
    assert is_unique(rng.integers(2**40, size=100).astype(float))
    assert not is_unique(rng.integers(2**40, size=20).astype(float))
    assert not is_unique(rng.integers(1000, size=100).astype(float))
    assert not is_unique(rng.normal(scale=1e6, size=100))


def ask(**fields):
    request = AuditRequest(
        seeded, pair=PAIR, epsilon=1.0, fields=fields, execution=Execution(runs=500, seed=1)
    )
    return attack(request).details["unique_fields"]


def test_a_field_is_declared_for_what_it_is():
    told = ask(**{"output['seed']": "random"})
    assert told == {"output['seed']": "random", "output['nonce']": "undeclared"}
    with pytest.raises(InputError, match="which is no field that differs in nearly every run"):
        ask(**{"output['count']": "seed"})


CLOCK, STEPS = itertools.count(1_700_000_000.25, 0.001), itertools.count()


def stamped(data):
    return {"at": next(CLOCK), "n": data[0] + RNG().laplace()}


def stamped_row(data):
    return [data[0] + RNG().laplace(), next(CLOCK)]


def stamped_text(data):
    return {"at": f"{next(CLOCK):.3f} UTC", "n": data[0] + RNG().laplace()}


def leaking_stamp(data):
    return {"at": next(CLOCK), "n": data[0] + RNG().laplace(scale=0.1)}


def at_once(function, **fields):
    execution = Execution(runs=1500, seed=1, confidence=1 - 1e-6)
    return attack(
        AuditRequest(function, pair=PAIR, epsilon=1.0, fields=fields, execution=execution)
    )


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (stamped, "output['at']"),
        (stamped_row, "output[1]"),
        (stamped_text, "output['at']"),
        (leaking_stamp, "output['at']"),
    ],
)
def test_a_clock_is_named_and_is_left_out_where_it_is_declared(function, name):
    with pytest.raises(InconclusiveError, match=re.escape(f'--field "{name}=time".')):
        at_once(function)
    record = at_once(function, **{name: "time"})
    assert record.refuted is (function is leaking_stamp)
    assert record.details["unique_fields"] == {name: "time"}
    assert name not in record.event


def noise_by_the_clock(data):
    """The noise follows from a clock that stands still for 50 runs, and is no clock itself."""
    at = next(STEPS) // 50
    return {"at": "today", "n": data[0] + RNG(at).laplace()}


def test_noise_that_repeats_is_not_taken_for_a_clock():
    with pytest.raises(InconclusiveError, match="runs are not independent") as caught:
        at_once(noise_by_the_clock)
    assert "--field" not in str(caught.value)


def test_whole_seconds_are_taken_for_a_clock():
    start = int(time.time())

    def seconds(data):
        return {"at": start + next(STEPS) // 50, "n": data[0] + RNG().laplace()}

    with pytest.raises(InconclusiveError, match=re.escape("--field \"output['at']=time\".")):
        at_once(seconds)


def constant(data):
    return {"at": next(CLOCK), "version": 3}


def test_an_audit_that_tested_no_event_concludes_nothing():
    record = at_once(constant, **{"output['at']": "time"})
    assert not record.refuted
    assert record.details["untested"] is True
    assert "No event was tested" in record.power


@pytest.mark.parametrize("name", ["output['when']", "output", "at"])
def test_a_clock_that_no_output_has_is_refused(name):
    with pytest.raises(InputError, match=r"--field names .*(no output has|the whole output)"):
        at_once(stamped, **{name: "time"})


def test_nothing_is_left_out_of_what_a_mechanism_releases():
    request = AuditRequest(
        Laplace(1.0), pair=AuditPair(0, 1), epsilon=1.0, fields={"output": "time"}
    )
    with pytest.raises(InputError, match="of the output of a function"):
        attack(request)


@pytest.mark.parametrize(
    ("typed", "words"),
    [("seed", "must be FIELD=KIND"), ("output['a']=nonce", "must be one of random, seed, time")],
)
def test_a_declaration_that_is_none_is_refused(typed, words):
    options = {"target": "f.py:f", "fields": [typed]}
    with pytest.raises(InputError, match=words):
        AuditRequest.of_options(options)
