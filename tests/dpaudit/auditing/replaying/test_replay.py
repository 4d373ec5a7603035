"""Each mistake is planted in a small algorithm, and the replay must name its place.

What must hold of two neighbours that were given the same noise.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from examples import Answers, gaussian_invocation

from dpaudit import (
    AddRemove,
    Contribution,
    Gaussian,
    Group,
    Invocation,
    Laplace,
    Membership,
    Plan,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    RunResult,
    TrustModel,
    ZeroOut,
)
from dpaudit.auditing.replaying.recording import Routine, Step
from dpaudit.auditing.replaying.replay import (
    facts_differ,
    groups_overlap,
    replay,
    too_far,
)
from dpaudit.base.errors import PlanMismatchError
from dpaudit.mechanisms import BinaryTree, ContinualLaplace

ROW = PrivacyUnit("row")
NOISE = Laplace(2.0, clip=(-1.0, 1.0))
ROWS = np.array([0.5, -0.5, 0.25])
OTHER = np.array([0.5, 0.5, 0.25])


def invocation(mechanism=NOISE, sensitivity=2.0, **changes):
    facts = {"unit": ROW, "relation": AddRemove(), "trust": TrustModel.CENTRAL}
    return Invocation(mechanism, sensitivity, **(facts | changes))


def rounds(number):
    return Plan.of(*(invocation(at=f"round {t}") for t in range(1, number + 1)))


def adaptive(rows, ledger, rng):
    """Twenty rounds, each of which depends on the releases before and on its own randomness."""
    released = 0.0
    for t in range(1, 21):
        released = ledger.release(
            NOISE, rows.mean() + 0.1 * released + rng.normal(), at=f"round {t}"
        )
    return RunResult({"last": released})


def test_a_sound_algorithm_has_no_finding():
    report = replay(Routine(rounds(20), adaptive), ROWS, OTHER, seed=3)
    assert report.clean
    assert len(report.comparisons) == 20
    assert replay(Answers(), np.array([2.0, 1.0, 0.0]), np.array([2.0, 1.0, -2.0])).clean


def test_values_are_compared_after_the_clip_of_the_mechanism():
    def total(rows, ledger, rng):
        ledger.release(NOISE, 1e6 * rows.sum(), at="round 1")

    report = replay(Routine(rounds(1), total), ROWS, -ROWS)
    assert report.comparisons[0].observed == 2.0
    assert report.clean


def test_a_sensitivity_understated_twofold_is_named_with_its_round_and_line():
    def run(rows, ledger, rng):
        for t in range(1, 21):
            ledger.release(Laplace(2.0), (4.0 if t == 7 else 2.0) * rows[1], at=f"round {t}")

    plan = Plan.of(*(invocation(Laplace(2.0), at=f"round {t}") for t in range(1, 21)))
    report = replay(Routine(plan, run), ROWS, OTHER)
    (finding,) = report.findings
    assert finding.rule == "sensitivity-understated"
    assert finding.at == "round 7"
    assert "are 4 apart in l1 at " in finding.message
    assert "the declared sensitivity is 2" in finding.message
    line = run.__code__.co_firstlineno + 2
    assert f"test_replay:{line}" in finding.message


def test_norms_are_those_of_the_mechanism():
    plan = Plan.of(gaussian_invocation(at="mean"))
    run = Routine(plan, lambda v, ledger, rng: ledger.release(Gaussian(4.0), v, at="mean"))
    assert replay(run, np.zeros(4), np.full(4, 0.5)).clean  # 2 in L1, 1 in L2
    far = replay(run, np.zeros(4), np.full(4, 0.51)).findings
    assert "in l2" in far[0].message


def test_a_branch_on_private_data_is_found_where_it_forks():
    def run(rows, ledger, rng):
        ledger.release(NOISE, rows[0], at="round 1")
        if rows[1] > 0:
            ledger.release(NOISE, rows[1], at="round 3")
        ledger.release(NOISE, rows[1], at="round 2")

    for x, x_prime in ((ROWS, OTHER), (OTHER, ROWS)):
        findings = replay(Routine(rounds(3), run), x, x_prime).findings
        assert [f.rule for f in findings] == ["private-control-flow"]
        assert "After 1 equal releases" in findings[0].message
        assert "'round 2'" in findings[0].message
        assert "'round 3'" in findings[0].message


def test_a_release_that_is_skipped_or_refused_is_a_branch_too():
    def stops(rows, ledger, rng):
        for t in range(1, 4):
            ledger.release(NOISE, 0.0, at=f"round {t}")
            if rows[1] > 0 and t == 2:
                break

    (finding,) = replay(Routine(rounds(3), stops), ROWS, OTHER).findings
    assert "goes on to 'round 3'" in finding.message
    assert "the end of the run" in finding.message

    def undeclared(rows, ledger, rng):
        ledger.release(NOISE, 0.0, at="round 9" if rows[1] > 0 else "round 1")

    (finding,) = replay(Routine(rounds(1), undeclared), ROWS, OTHER).findings
    assert "a label that is not declared" in finding.message
    with pytest.raises(PlanMismatchError, match="a label that is not declared"):
        replay(Routine(rounds(1), undeclared), OTHER, ROWS)


def test_a_branch_on_released_values_is_allowed():
    def run(rows, ledger, rng):
        first = ledger.release(NOISE, rows[1], at="round 1")
        for t in (2, 3) if first > 0 else (3, 2):
            ledger.release(NOISE, rows[1], at=f"round {t}")

    for seed in range(10):
        assert replay(Routine(rounds(3), run), ROWS, OTHER, seed=seed).clean


def tree(nodes):
    """A tree over four leaves, of which every datum is in three nodes."""
    call = invocation(Laplace(3.0), 1.0, count=3, total=8, group="nodes", at="tree")

    def run(leaves, ledger, rng):
        for number, (low, high) in enumerate(nodes):
            value = float(leaves[low:high].sum())
            ledger.release(Laplace(3.0), value, at="tree", unit=f"release {number} of {low}-{high}")

    return Routine(Plan.of(call), run)


def test_a_node_of_the_tree_that_is_noised_twice_is_named():
    leaves, other = np.array([1.0, 0, 1, 1]), np.array([1.0, 1, 1, 1])
    nodes = [(0, 4), (0, 2), (2, 4), (0, 1), (1, 2), (2, 3), (3, 4)]
    assert replay(tree(nodes), leaves, other).clean
    (finding,) = replay(tree([*nodes, (0, 2)]), leaves, other).findings
    assert finding.rule == "touched-too-often"
    assert "'release 7 of 0-2'" in finding.message
    assert "changes at most 3" in finding.message
    assert "In all it changes 4" in finding.message


def test_groups_that_are_not_disjoint_are_found():
    plan = Plan.of(invocation(group="even", at="even rows"), invocation(group="odd", at="odd rows"))

    def run(rows, ledger, rng):
        ledger.release(NOISE, rows[::2].sum() / 2, at="even rows", unit="even")
        ledger.release(NOISE, rows.sum() / 2, at="odd rows", unit="odd")

    (finding,) = replay(Routine(plan, run), ROWS, np.array([-0.5, -0.5, 0.25])).findings
    assert finding.rule == "groups-overlap"
    assert finding.at == "odd rows"


def test_streams_may_differ_in_as_many_steps_as_are_declared():
    noise = ContinualLaplace(scale=3.0, factorization=BinaryTree(4), participations=1)
    plan = Plan.of(invocation(noise, 1.0, at="stream"))
    run = Routine(plan, lambda stream, ledger, rng: ledger.release(noise, stream, at="stream"))
    stream = np.array([1.0, 0.0, 1.0, 0.0])
    assert replay(run, stream, np.array([1.0, 1.0, 1.0, 0.0])).clean
    twice = replay(run, stream, np.array([1.0, 1.0, 1.0, 1.0]))
    assert twice.findings[0].rule == "sensitivity-understated"


def test_results_that_no_release_explains_and_hidden_randomness_are_found():
    def peeks(rows, ledger, rng):
        return RunResult({"noisy": ledger.release(NOISE, rows[0], at="round 1"), "raw": rows[1]})

    (finding,) = replay(Routine(rounds(1), peeks), ROWS, OTHER).findings
    assert finding.rule == "result-not-from-releases"

    def draws_privately(rows, ledger, rng):
        rng.normal(size=1 + int(rows[1] > 0))
        ledger.release(NOISE, rows[0], at="round 1")

    (finding,) = replay(Routine(rounds(1), draws_privately), ROWS, OTHER).findings
    assert finding.rule == "private-use-of-randomness"

    def elsewhere(rows, ledger, rng):
        ledger.release(NOISE, np.random.default_rng().random(), at="round 1")

    (finding,) = replay(Routine(rounds(1), elsewhere), ROWS, OTHER).findings
    assert finding.rule == "hidden-randomness"
    assert "'round 1'" in finding.message


def summed(rows, ledger, rng):
    """Of rows (name, value) the sum over people."""
    names, values = zip(*rows, strict=True)
    return RunResult({"sum": ledger.sum(values, units=names)})


def first_of_each_value(rows, ledger, rng):
    return summed(
        list({int(value): (name, value) for name, value in rows[::-1]}.values()), ledger, rng
    )


def less_the_largest(rows, ledger, rng):
    top = max(value for _, value in rows)
    return summed([(name, value / top) for name, value in rows], ledger, rng)


def renumbered(rows, ledger, rng):
    """Numbers of places for names, and values that are rounded by how many rows there are."""
    values = np.array([value for _, value in rows]) * (1 + 1e-12 * len(rows))
    return RunResult({"sum": ledger.sum(values, units=np.arange(len(rows)))})


PEOPLE = [("ann", 1.25), ("bob", 1.75), ("cid", 2.5), ("dan", 0.5)]


@pytest.mark.parametrize(
    ("relation", "other"),
    [
        (AddRemove(), PEOPLE[1:]),
        (ReplaceOne(), [("eve", 1.5), *PEOPLE[1:]]),
        (ZeroOut(), [("ann", 0.0), *PEOPLE[1:]]),
    ],
)
def test_a_part_of_another_unit_is_found_though_the_sum_hardly_moves(relation, other):
    facts = (PrivacyUnit("person"), relation, TrustModel.CENTRAL)
    plan = Plan.of(Invocation.bounded(Laplace(1.0), Contribution(10.0), *facts, at="sum"))

    def found(function, rows=PEOPLE):
        report = replay(Routine(plan, function), rows, other)
        assert all(each.observed <= each.declared for each in report.comparisons)
        return [each.rule for each in report.findings]

    assert found(summed) == found(renumbered) == []
    assert found(less_the_largest, [*PEOPLE[:2], ("cid", 5.0), *PEOPLE[3:]]) == ["parts-of-others"]
    assert found(summed, [*PEOPLE[:2], ("cid", 2.6), ("dan", 0.4)]) == ["parts-of-others"]
    if other == PEOPLE[1:]:  # bob comes for ann
        assert found(first_of_each_value) == ["parts-of-others"]
    wide = Plan.of(
        Invocation(Laplace(1.0), 60.0, *facts, contribution=Contribution(10.0), at="sum")
    )
    assert replay(Routine(wide, less_the_largest), PEOPLE, other).clean


def test_where_others_moved_a_sum_the_remedy_is_no_clip():
    """Values that are divided by the largest one: without it, the parts of all others grow."""
    facts = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
    invocation = Invocation.bounded(Laplace(1.0), Contribution(0.5), *facts, at="sum")
    rows = [*((f"p{n}", 0.4) for n in range(20)), ("top", 5.0)]

    def remedies(function, rows, other):
        report = replay(Routine(Plan.of(invocation), function), rows, other)
        return {each.rule: each.remedy for each in report.findings}

    told = remedies(less_the_largest, rows, rows[:-1])
    assert told["sensitivity-understated"].startswith("Compute what a unit adds from its own rows")
    assert "parts-of-others" in told

    def scaled(rows, ledger, rng):
        value = sum(value for _, value in rows)
        return RunResult({"sum": ledger.release(Laplace(1.0), value, at="sum")})

    invocation = Invocation(Laplace(1.0), 1.0, *facts, at="sum")
    told = remedies(scaled, rows, rows[:-1])
    assert told["sensitivity-understated"].startswith("Declare the true sensitivity")


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
    assert "are 1.5 apart in l1 at " in finding.message
    assert "the declared sensitivity is 1" in finding.message
    assert too_far(steps(1.0, 1.0 + 1e-12)) == []


@pytest.mark.parametrize(
    ("mechanism", "most"), [(Laplace(1.0), 1), (RandomizedResponse(0.5, 4), 2)]
)
def test_a_zeroed_unit_moves_two_groups_where_it_is_no_absent_one(mechanism, most):
    facts = {"mechanism": mechanism, "relation": ZeroOut()}
    groups = (Group(f"part {number}", Membership.VALUE) for number in range(3))
    moved = [pair for each in groups for pair in steps(1.0, group=each, at=each.name, **facts)]
    assert groups_overlap(moved[:most]) == []
    assert len(groups_overlap(moved[: most + 1])) == 1


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
