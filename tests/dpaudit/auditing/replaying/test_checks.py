"""What must hold of two neighbours that were given the same noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import Gaussian, Group, Laplace, Membership, RandomizedResponse, ZeroOut
from dpaudit.auditing.replaying.recording import Step
from dpaudit.auditing.replaying.replay import facts_differ, groups_overlap, too_far, too_often
from dpaudit.mechanisms import BinaryTree, ContinualLaplace

MOVED = ContinualLaplace(scale=2.0, factorization=BinaryTree(4), participations=1)
TREE = replace(MOVED, fixed_steps=True)


def call_of(mechanism):
    return gaussian_invocation(mechanism=mechanism, sensitivity=1.0, at="sum")


@pytest.mark.parametrize(
    ("mechanism", "one", "two", "expected"),
    [
        (Laplace(1.0), [1.0, 0.0], [0.0, 2.0], 3.0),
        (Gaussian(1.0), [3.0, 0.0], [0.0, 4.0], 5.0),
        (RandomizedResponse(0.5, 4), [1, 2], [1, 3], 1.0),
        (RandomizedResponse(0.5, 4), [1, 2], [1, 2], 0.0),
        (Laplace(1.0), [1.0], [1.0, 2.0], math.inf),
        (TREE, [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0], 2.0),
        (TREE, [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], math.inf),
        (TREE, [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], 0.0),
        (MOVED, [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], 1.0),  # one goes, another comes
        (MOVED, [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], math.inf),
    ],
)
def test_distance_is_that_of_the_mechanism(mechanism, one, two, expected):
    first, second = (Step(call_of(mechanism), None, "m:1", np.array(v), 0.0) for v in (one, two))
    assert first.distance(second) == pytest.approx(expected)


def test_not_a_number_is_infinitely_far():
    (finding,) = too_far(steps(math.nan))
    assert "inf apart" in finding.message


def test_a_large_public_constant_hides_no_distance():
    call = call_of(Laplace(1.0))
    pair = tuple(Step(call, None, "m:1", np.array(1e10 + v), 0.0) for v in (0.0, 131.0))
    assert [finding.rule for finding in too_far([pair])] == ["sensitivity-understated"]


def steps(*moves, **changes):
    """Releases of one invocation on two neighbours, each moved by so much."""
    facts = {"mechanism": Laplace(1.0), "sensitivity": 1.0, "at": "sum"}
    call = gaussian_invocation(**(facts | changes))
    return [
        tuple(Step(call, None, "module:1", np.array(value), 0.0) for value in (0.0, move))
        for move in moves
    ]


@pytest.mark.parametrize(("external", "rules"), [("", ["sensitivity-understated"]), ("torch", [])])
def test_other_libraries_round_to_32_bits(external, rules):
    call = call_of(Laplace(1.0))
    pair = tuple(
        Step(call, None, "m:1", np.array(v), 0.0, external=external) for v in (0.0, 1 + 2.0**-21)
    )
    assert [finding.rule for finding in too_far([pair])] == rules


def test_values_further_apart_than_declared_are_named_once():
    (finding,) = too_far(steps(1.0, 1.5, 2.0))
    assert "1.5 apart in l1; declared is a sensitivity of 1" in finding.message
    assert too_far(steps(1.0, 1.0 + 1e-12)) == []


def test_a_unit_that_moves_too_many_releases_is_counted():
    (finding,) = too_often(steps(1.0, 0.0, 1.0, 1.0, count=2))
    assert "moves release number 3 of 'sum'" in finding.message
    assert finding.message.endswith("In all it moves 3.")
    assert too_often(steps(1.0, 0.0, 1.0, count=2)) == []


@pytest.mark.parametrize(
    ("mechanism", "most"), [(Laplace(1.0), 1), (RandomizedResponse(0.5, 4), 2)]
)
def test_a_zeroed_unit_moves_two_groups_where_it_is_no_absent_one(mechanism, most):
    facts = {"mechanism": mechanism, "relation": ZeroOut()}
    groups = (Group(f"part {number}", Membership.VALUE) for number in range(3))
    moved = [pair for each in groups for pair in steps(1.0, group=each, at=each.name, **facts)]
    assert groups_overlap(moved[:most]) == []
    assert len(groups_overlap(moved[: most + 1])) == 1


def test_groups_that_share_a_unit_are_named():
    both = steps(1.0, group="north", at="a") + steps(1.0, group="south", at="b")
    (finding,) = groups_overlap(both)
    assert "'north'" in finding.message
    assert "'south'" in finding.message
    assert groups_overlap(steps(1.0, 1.0, group="north")) == []
    assert (
        groups_overlap(steps(1.0, group="north", at="a") + steps(0.0, group="south", at="b")) == []
    )


def test_what_a_library_draws_by_must_be_public():
    call = call_of(Laplace(1.0))
    made = [
        Step(call, None, "m:1", np.array(0.0), 0.0, external="lib 1", facts=facts)
        for facts in ({"rows": 10, "lower": 0.0}, {"rows": 9, "lower": 0.0})
    ]
    (finding,) = facts_differ([tuple(made), tuple(made)])
    assert (finding.rule, finding.at) == ("private-parameters", "sum")
    assert "(rows)" in finding.message
    assert facts_differ([(made[0], made[0])]) == []


def test_a_library_that_tells_its_facts_has_no_slack_of_32_bits():
    call = call_of(Laplace(1.0))
    pairs = [
        tuple(
            Step(call, None, "m:1", np.array(v), 0.0, external="lib 1", facts=facts)
            for v in (1e8, 1e8 + 50)
        )
        for facts in ({}, {"rows": 10})
    ]
    assert [len(too_far([pair])) for pair in pairs] == [0, 1]
