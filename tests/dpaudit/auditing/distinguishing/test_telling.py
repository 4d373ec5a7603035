"""What is told of an event, and of fields that differ in nearly every run."""

import hashlib

import numpy as np
import pytest

from dpaudit import AuditPair, Claim, InputError
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
    with pytest.raises(InputError, match="which does not differ in nearly every run"):
        ask(**{"output['count']": "seed"})


@pytest.mark.parametrize(
    ("typed", "words"),
    [("seed", "must be FIELD=KIND"), ("output['a']=nonce", "must be one of random, seed, time")],
)
def test_a_declaration_that_is_none_is_refused(typed, words):
    options = {"target": "f.py:f", "fields": [typed]}
    with pytest.raises(InputError, match=words):
        AuditRequest.of_options(options)
