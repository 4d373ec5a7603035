"""Streams pass the same door as releases do."""

import copy

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import (
    ClosedLedgerError,
    Gaussian,
    Group,
    InputError,
    Invocation,
    Ledger,
    Plan,
    PlanMismatchError,
    UnsupportedError,
)
from dpaudit.ledger import read_journal
from dpaudit.mechanisms import BinaryTree, ContinualGaussian

SUMS = ContinualGaussian(
    sigma=2.0, factorization=BinaryTree(steps=6), participations=2, min_separation=2
)
PLAN = Plan.of(gaussian_invocation(mechanism=SUMS, at="sums"))


def opened(plan=PLAN, **options):
    return Ledger(plan, rng=np.random.default_rng(1), **options)


def test_a_stream_ends_with_its_ledger():
    ledger = opened()
    stream = ledger.stream(SUMS, ())
    stream.add(1.0)
    ledger.close()
    with pytest.raises(ClosedLedgerError):
        stream.add(1.0)
    assert (stream.taken, stream.steps) == (1, 6)


def test_a_stream_is_not_copied():
    stream = opened().stream(SUMS, ())
    with pytest.raises(InputError, match="cannot be copied or sent"):
        copy.deepcopy(stream)


def test_the_declared_mechanism_draws_not_the_callers():
    class Silent(ContinualGaussian):
        def start(self, shape, rng):
            raise AssertionError("the caller's object was asked")

        def __eq__(self, other):
            return True

        __hash__ = ContinualGaussian.__hash__

    own = Silent(sigma=2.0, factorization=BinaryTree(steps=6), participations=1)
    with pytest.raises(PlanMismatchError, match="Silent"):
        opened().stream(own, ())


def test_named_contributions_are_held_against_the_declaration(tmp_path):
    path = tmp_path / "ledger.jsonl"
    stream = opened(journal=path).stream(SUMS, ())
    stream.add(1.0, unit="ann")
    with pytest.raises(PlanMismatchError, match="at least 2 steps apart; this row has taken"):
        stream.add(1.0, unit="ann")
    stream.add(1.0, unit="bob")
    stream.add(1.0, unit="ann")
    stream.add(1.0)
    with pytest.raises(PlanMismatchError, match="2 participations; this row has had them"):
        stream.add(1.0, unit="ann")
    steps = [(each.unit, each.step) for each in read_journal(path).entries]
    assert steps == [(None, None), ("ann", 0), ("bob", 1), ("ann", 2)]


def test_a_contributor_belongs_to_one_group(tmp_path):
    def invocation(number):
        return Invocation(
            **(
                vars(gaussian_invocation(mechanism=SUMS))
                | {"group": Group(f"round {number}"), "at": f"sums {number}"}
            )
        )

    ledger = opened(Plan.of(invocation(1), invocation(2)), journal=tmp_path / "ledger.jsonl")
    one, two = (ledger.stream(SUMS, (), at=f"sums {number}") for number in (1, 2))
    one.add(1.0, unit="ann")
    with pytest.raises(PlanMismatchError, match="belongs to 'round 1'"):
        two.add(1.0, unit="ann")
    ledger.journal.release()
    account = read_journal(tmp_path / "ledger.jsonl").account()
    with pytest.raises(PlanMismatchError, match="belongs to 'round 1'"):
        account.require_member(ledger.plan.invocations[1], "ann")


def test_only_continual_release_is_a_stream():
    noise = Gaussian(1.0)
    ledger = Ledger(Plan.of(gaussian_invocation(1.0, at="sum")), rng=np.random.default_rng(0))
    with pytest.raises(PlanMismatchError, match="no continual release"):
        ledger.stream(noise, ())
    assert len(ledger) == 0


def test_exact_noise_refuses_a_stream():
    ledger = Ledger(PLAN)
    with pytest.raises(UnsupportedError, match="no exact sampler"):
        ledger.stream(SUMS, ())
    assert len(ledger) == 0


def test_a_refused_value_counts_as_no_step():
    stream = opened().stream(SUMS, (2,))
    for value in ([1.0], [np.nan, 0.0], "x", None):
        with pytest.raises(InputError, match="value"):
            stream.add(value, unit="ann")
    assert stream.taken == 0
    stream.add([1.0, 0.0], unit="ann")
