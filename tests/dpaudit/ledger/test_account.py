"""What is charged to whom: the account of a run, and of each unit."""

import copy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from examples import LAPLACE, RESPONSE, gaussian_invocation
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import (
    AddRemove,
    Contribution,
    FixedSizeSampling,
    Gaussian,
    Group,
    IndividualGaussian,
    InputError,
    Invocation,
    Laplace,
    Ledger,
    Membership,
    MetricBall,
    Plan,
    PlanMismatchError,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    SecureNoise,
    TrustModel,
    UnsupportedError,
    ZeroOut,
    guarantee,
)
from dpaudit.auditing.replaying.recording import RecordingNoise, Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.errors import ClosedLedgerError
from dpaudit.certificate import SubjectRecord, certify
from dpaudit.checker import prove
from dpaudit.mechanisms import ExponentialMechanism
from dpaudit.plan import TruncatedPoissonSampling, WithReplacementSampling

# -- groups are disjoint, whatever a program says of them; and one sample serves one release -------


NOISE = Laplace(1.0)


def grouped(groups=20, relation=None, membership=Membership.POSITION, count=1, total=3):
    return Plan.of(
        *(
            Invocation(
                NOISE,
                1.0,
                RESPONSE,
                relation or AddRemove(),
                TrustModel.CENTRAL,
                count=count,
                total=total,
                group=Group(f"round {number}", membership),
                at=f"sum {number}",
            )
            for number in range(groups)
        )
    )


def test_a_named_unit_stays_in_the_group_of_its_first_release():
    ledger = Ledger(grouped(), rng=np.random.default_rng(0))
    ledger.release(NOISE, 1.0, unit="ann", at="sum 0")
    with pytest.raises(
        PlanMismatchError, match="this response has belonged to 'round 0' since its first"
    ):
        ledger.release(NOISE, 1.0, unit="ann", at="sum 1")
    ledger.release(NOISE, 1.0, unit="bob", at="sum 1")
    assert guarantee(ledger.spent()).epsilon == guarantee(ledger.plan).epsilon == 1.0


def test_a_release_without_a_unit_touches_its_group_alone():
    ledger = Ledger(grouped(3), rng=np.random.default_rng(0))
    for number in range(3):
        ledger.release(NOISE, 1.0, at=f"sum {number}")
    with pytest.raises(PlanMismatchError, match="this one has been charged that often"):
        ledger.release(NOISE, 1.0, unit="ann", at="sum 0")
    spent = ledger.spent()
    assert {str(each.group) for each in spent.invocations} == {"round 0", "round 1", "round 2"}
    assert guarantee(spent).epsilon == 1.0


def test_what_a_named_unit_and_its_group_had_adds_up():
    ledger = Ledger(grouped(2, count=2), rng=np.random.default_rng(0))
    ledger.release(NOISE, 1.0, unit="ann", at="sum 0")
    ledger.release(NOISE, 1.0, at="sum 0")
    ledger.release(NOISE, 1.0, at="sum 1")
    assert guarantee(ledger.spent()).epsilon == 2.0


def test_a_unit_named_outside_groups_may_be_in_any_of_them():
    plan = Plan.of(*grouped(2).invocations, gaussian_of_one())
    ledger = Ledger(plan, rng=np.random.default_rng(0))
    ledger.release(NOISE, 1.0, at="sum 0")
    ledger.release(NOISE, 1.0, at="sum 1")
    ledger.release(NOISE, 1.0, unit="ann", at="own")
    assert guarantee(ledger.spent()).epsilon == 2.0


def gaussian_of_one():
    return Invocation(
        NOISE, 1.0, RESPONSE, AddRemove(), TrustModel.CENTRAL, count=1, total=3, at="own"
    )


@pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne()])
def test_a_unit_that_moves_between_groups_costs_two(relation):
    by_position = grouped(5, relation)
    by_value = grouped(5, relation, Membership.VALUE)
    assert guarantee(by_position).epsilon == 1.0
    moved = 2.0 if isinstance(relation, ReplaceOne) else 1.0
    assert guarantee(by_value).epsilon == moved
    assert guarantee(grouped(1, relation, Membership.VALUE)).epsilon == 1.0


@pytest.mark.parametrize(("mechanism", "cost"), [(NOISE, 1.0), (ExponentialMechanism(1.0), 2.0)])
def test_a_zeroed_unit_is_seen_in_two_groups_where_it_is_no_absent_one(mechanism, cost):
    declared = grouped(3, ZeroOut(), Membership.VALUE).invocations
    plan = Plan.of(*(replace(each, mechanism=mechanism) for each in declared))
    assert guarantee(plan).epsilon == cost
    made = certify(plan, subject=SubjectRecord("tests:Groups"), delta=0.0)
    assert float(prove(made.to_dict()).epsilon) == pytest.approx(cost)


def test_many_groups_that_are_alike_are_two():
    assert len(grouped(500, ReplaceOne(), Membership.VALUE).by_unit()) == 1
    assert len(grouped(500, AddRemove(), Membership.VALUE).by_unit()) == 500


def test_of_different_groups_every_two_count():
    plan = Plan.of(
        *grouped(2, ReplaceOne(), Membership.VALUE).invocations,
        Invocation(
            Laplace(0.25),
            1.0,
            RESPONSE,
            ReplaceOne(),
            TrustModel.CENTRAL,
            group=Group("large", Membership.VALUE),
            at="large",
        ),
    )
    assert guarantee(plan).epsilon == 5.0


def test_one_group_has_one_membership():
    one, other = grouped(2).invocations[0], grouped(2, membership=Membership.VALUE).invocations[0]
    with pytest.raises(InputError, match="by position and by value"):
        Plan((one, Invocation(**(vars(other) | {"at": "again"}))))


def test_groups_are_written_and_read():
    for membership in Membership:
        plan = grouped(2, membership=membership)
        assert Plan.from_dict(plan.to_dict()) == plan
    assert grouped(1).to_dict()["invocations"][0]["group"] == "round 0"
    with pytest.raises(InputError, match="did you mean 'membership'"):
        Group.from_dict({"name": "a", "membrship": "value"})
    with pytest.raises(InputError, match="membership is 'luck'"):
        Group.from_dict({"name": "a", "membership": "luck"})


def test_a_different_mechanism_of_the_same_kind_is_no_match():
    class Noiseless(Laplace):
        def _sample(self, values, rng):
            return values

        def __eq__(self, other):
            return True

        __hash__ = Laplace.__hash__

    ledger = Ledger(Plan.of(gaussian_of_one()), rng=np.random.default_rng(0))
    with pytest.raises(PlanMismatchError, match="declares Laplace"):
        ledger.release(Noiseless(1.0), 5.0, unit="ann")
    with pytest.raises(InputError, match="not a registered mechanism"):
        gaussian_invocation(mechanism=Noiseless(1.0))


def test_a_local_clip_is_wider_than_the_sensitivity():
    wide = Laplace(10.0, clip=(0.0, 10.0))
    for relation, declared in ((ReplaceOne(), 10.0), (ZeroOut(), 10.0)):
        with pytest.raises(InputError, match="moves by up to 10"):
            Invocation(wide, 1.0, RESPONSE, relation, TrustModel.LOCAL)
        Invocation(wide, declared, RESPONSE, relation, TrustModel.LOCAL)
    for radius, moved in ((3.0, 3.0), (100.0, 10.0)):
        with pytest.raises(InputError, match=f"moves by up to {moved:g}"):
            Invocation(wide, 0.9 * moved, RESPONSE, MetricBall(radius), TrustModel.LOCAL)
        near = Invocation(wide, moved, RESPONSE, MetricBall(radius), TrustModel.LOCAL)
        with pytest.raises(InputError, match="of 4 entries"):
            near.require_covered(4)  # all of which may move, by the radius in L2
    assert LAPLACE.clip == (-2.0, 2.0)


def sampled_ledger(sampling):
    use = gaussian_invocation(relation=ReplaceOne(), sampling=sampling, count=2, at="sum")
    return Ledger(Plan.of(use), rng=np.random.default_rng(0)), use.mechanism


def test_every_release_of_a_sampled_label_has_a_sample_of_its_own():
    ledger, noise = sampled_ledger(PoissonSampling(0.5))
    ledger.sample("ab", at="sum")
    with pytest.raises(PlanMismatchError, match="sample that has not been released yet"):
        ledger.sample("ab")
    ledger.release(noise, 0.0, at="sum")
    with pytest.raises(PlanMismatchError, match="needs a sample for each release"):
        ledger.release(noise, 0.0)
    assert len(ledger) == 1
    ledger.sample("ab")
    ledger.release(noise, 0.0)
    ledger.check()


def test_who_samples_without_the_ledger_is_let_through():
    ledger, noise = sampled_ledger(PoissonSampling(0.5))
    ledger.release(noise, 0.0)
    ledger.release(noise, 0.0)
    ledger.check()


@pytest.mark.parametrize(
    ("sampling", "units", "error", "sentence"),
    [
        (None, "ab", PlanMismatchError, "declares no sampling for 'sum'"),
        (FixedSizeSampling(1, 3), "ab", InputError, "the declared population of 3"),
        (TruncatedPoissonSampling(0.5, 1, 2), "abc", InputError, "at most the population of 2"),
        (WithReplacementSampling(2, 2), "ab", PlanMismatchError, "are not drawn by the ledger"),
        (PoissonSampling(0.5), "aba", InputError, "names a unit twice"),
        (PoissonSampling(0.5), ["a", 1], InputError, "unit is a int"),
    ],
)
def test_samples_are_of_named_units_as_declared(sampling, units, error, sentence):
    ledger, noise = sampled_ledger(sampling)
    with pytest.raises(error, match=sentence):
        ledger.sample(units, at="sum")
    ledger.release(noise, 0.0)  # nothing waits


def test_a_closed_ledger_draws_no_samples():
    ledger, _ = sampled_ledger(PoissonSampling(0.5))
    ledger.close()
    with pytest.raises(ClosedLedgerError):
        ledger.sample("ab")


# -- sums in which every unit has a budget of its own ----------------------------------------------


ABOUT = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)


def declared(steps=8, bound=2.0, sigma=4.0, **facts):
    mechanism = IndividualGaussian(sigma, steps)
    return Invocation.bounded(mechanism, Contribution(bound), *ABOUT, at="sums", **facts)


def opened(shape=(), **facts):
    """The sums, and what remembers the values before noise."""
    kept = RecordingNoise(np.random.default_rng(1))
    ledger = Ledger(Plan.of(declared(**facts)), noise=kept)
    return ledger.individual(shape), kept.steps


def test_who_is_used_up_adds_nothing_and_others_go_on():
    sums, steps = opened()
    for _ in range(6):
        sums.add([1.0, -0.5], units=["ann", "bob"])
    assert [float(step.value) for step in steps] == [0.5, 0.5, 0.5, 0.5, -0.5, -0.5]


def test_what_no_longer_fits_is_scaled_down():
    sums, steps = opened()
    sums.add([1.5], units=["ann"])
    sums.add([1.5], units=["ann"])
    sums.add([1.5], units=["ann"])
    assert float(steps[1].value) == pytest.approx(np.sqrt(4 - 1.5**2), rel=1e-7)
    assert sum(float(step.value) ** 2 for step in steps) == pytest.approx(4, rel=1e-7)


def test_most_bounds_a_step_and_not_the_budget():
    sums, steps = opened(shape=(2,))
    for most in (0.5, 50.0):
        sums.add([[30.0, 40.0], [np.nan, np.inf]], units=[3, 8], most=most)
    np.testing.assert_allclose(steps[0].value, [0.3, 0.9], rtol=1e-6)
    assert np.linalg.norm(steps[1].value - [0, 2]) < 2


PARTS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@settings(max_examples=150, derandomize=True)
@given(
    parts=st.lists(st.tuples(PARTS, PARTS), min_size=1, max_size=8),
    bound=st.sampled_from([1e-200, 5e-3, 1.0, 2.0 / 3, 7e7, 1e200]),
    most=st.none() | st.floats(1e-300, 1e300),
)
@example(parts=[(1.0, 0.0)] * 8, bound=1.0, most=0.1)
@example(parts=[(5e-324, 5e-324), (1.7e308, -1.7e308)] * 4, bound=1e200, most=None)
def test_a_unit_never_exceeds_its_budget_whatever_its_rows(parts, bound, most):
    sums, steps = opened(shape=(2,), bound=bound, sigma=bound)
    for part in parts:
        sums.add([part], units=["ann"], most=most)
    squares = sum(Fraction(float(entry)) ** 2 for step in steps for entry in step.value)
    assert squares <= Fraction(bound) ** 2


def adaptive(rows, ledger, rng):
    """Later steps depend on what was released before."""
    sums = ledger.individual((), at="sums")
    weight = 1.0
    for _ in range(8):
        shown = sums.add(weight * np.array(list(rows.values())), units=list(rows))
        weight = float(np.clip(shown, -1, 1))


def test_neighbours_are_within_the_bound_all_steps_together():
    plan, rows = Plan.of(declared()), {str(number): 1.0 for number in range(5)}
    less = {name: row for name, row in rows.items() if name != "3"}
    assert replay(Routine(plan, adaptive), rows, less).clean


def test_a_step_that_depends_on_other_units_is_found():
    def normalised(rows, ledger, rng):
        values = np.array(list(rows.values()))
        sums = ledger.individual((), at="sums")
        for _ in range(8):
            sums.add(values / values.max(), units=list(rows))

    plan, rows = Plan.of(declared()), {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.5}
    less = {name: row for name, row in rows.items() if name != "e"}
    rules = [found.rule for found in replay(Routine(plan, normalised), rows, less).findings]
    assert rules == ["sensitivity-understated"]


def test_steps_count_together_where_none_alone_is_too_far():
    """Every step is 1.5 from the neighbour's, of 2; all three are 2.6."""

    def scaled(rows, ledger, rng):
        sums = ledger.individual((), at="sums")
        for _ in range(3):
            sums.add(np.full(6, 1.0 if "last" in rows else 0.75), units=range(6))

    plan, rows = Plan.of(declared(steps=3)), {str(number): 0.0 for number in range(6)}
    report = replay(Routine(plan, scaled), rows | {"last": 0.0}, rows)
    assert [each.observed for each in report.comparisons] == pytest.approx([1.5] * 3, abs=1e-6)
    assert [found.rule for found in report.findings] == ["sensitivity-understated"]
    two = replay(Routine(Plan.of(declared(steps=3, bound=2.7)), scaled), rows | {"last": 0.0}, rows)
    assert two.clean


def test_it_is_one_invocation_of_as_many_steps_as_declared(tmp_path):
    journal = tmp_path / "ledger.jsonl"
    with Ledger(Plan.of(declared(steps=1)), rng=np.random.default_rng(), journal=journal) as ledger:
        sums = ledger.individual(())
        sums.add([1.0], units=["ann"])
        with pytest.raises(InputError, match="steps is 1 and all have been released"):
            sums.add([1.0], units=["ann"])
        with pytest.raises(PlanMismatchError, match="declared 1 times"):
            ledger.individual(())
    assert "ann" not in journal.read_text()
    assert len(ledger) == 1


@pytest.mark.parametrize(
    ("rows", "units", "most", "what"),
    [
        ([1.0], ["ann", "bob"], None, "units has 2 entries and rows 1"),
        (
            [1.0],
            [1.0],
            None,
            "units has labels of type float; give texts",
        ),
        (
            [1.0],
            [None],
            None,
            "units has labels of type NoneType; give",
        ),
        ([1.0], "ann", None, r"units is a str; it must have one entry for each row"),
        ([[1.0]], ["ann"], None, r"value has shape \(1,\); it must be \(\)"),
        (["x"], ["ann"], None, "rows are of type str_; they must be an array of numbers"),
        ([1.0], ["ann"], 0.0, "most must be a finite number above 0"),
    ],
)
def test_bad_input_is_refused_and_costs_nothing(rows, units, most, what):
    sums, steps = opened()
    with pytest.raises(InputError, match=what):
        sums.add(rows, units=units, most=most)
    assert (sums.taken, sums._left, steps) == (0, {}, [])


def test_a_run_names_its_units_in_one_way():
    """Merged, 7 and "7" would share a budget; apart, one unit of two names would have two."""
    sums, _ = opened()
    sums.add([1.0, 1.0], units=[7, 8])
    sums.add([1.0, 1.0], units=np.array([7, 9], dtype=np.uint8))
    assert sorted(sums._left) == [7, 8, 9]
    with pytest.raises(PlanMismatchError, match="by texts and by whole numbers in one run"):
        sums.add([1.0], units=["7"])


def test_a_unit_belongs_to_one_group():
    plan = Plan.of(
        *(
            Invocation.bounded(
                IndividualGaussian(4.0, 2), Contribution(1.0), *ABOUT, group=Group(name), at=name
            )
            for name in ("north", "south")
        )
    )
    with Ledger(plan, rng=np.random.default_rng()) as ledger:
        north, south = ledger.individual((), at="north"), ledger.individual((), at="south")
        north.add([1.0], units=["ann"])
        with pytest.raises(PlanMismatchError, match="declared for the group 'south'"):
            south.add([1.0], units=["ann"])


def test_only_what_is_declared_for_it_is_opened():
    plain = Invocation.bounded(Gaussian(2.0), Contribution(1.0), *ABOUT, at="plain")
    open_ = Invocation(IndividualGaussian(2.0, 3), 1.0, *ABOUT, at="open")
    sampled = declared(sampling=PoissonSampling(0.5))
    ledger = Ledger(Plan.of(plain, open_, sampled), rng=np.random.default_rng())
    with pytest.raises(PlanMismatchError, match="has no budgets of units"):
        ledger.individual((), at="plain")
    with pytest.raises(PlanMismatchError, match="without a contribution"):
        ledger.individual((), at="open")
    with pytest.raises(PlanMismatchError, match=r"sampl"):
        ledger.individual((), at="sums")
    with pytest.raises(PlanMismatchError, match="has steps; open it with ledger"):
        Ledger(Plan.of(declared()), rng=np.random.default_rng()).sum([1.0], at="sums")


def test_budgets_are_not_copied_and_not_drawn_exactly():
    sums, _ = opened()
    with pytest.raises(InputError, match="a run of sums cannot be copied or sent"):
        copy.deepcopy(sums)
    pytest.importorskip("opendp")
    with pytest.raises(UnsupportedError, match="individual-gaussian at 'sums' has no exact"):
        Ledger(Plan.of(declared()), noise=SecureNoise()).individual(())


def test_a_replaced_unit_counts_twice():
    used = Invocation.bounded(
        IndividualGaussian(1.0, 2), Contribution(1.5), ABOUT[0], ReplaceOne(), ABOUT[2]
    )
    assert used.sensitivity == 3.0


def test_code_that_stops_early_closes_its_ledger():
    plan = Plan.of(Invocation(Gaussian(1.0), 1.0, *ABOUT, count=3, at="each"))
    with Ledger(plan, rng=np.random.default_rng()) as ledger:
        ledger.release(Gaussian(1.0), 0.0)
        ledger.close()
    assert list(ledger.left()) == ["gaussian at 'each' is declared 3 times and ran 1 times"]
    with (
        pytest.raises(PlanMismatchError, match="ran 1 times"),
        Ledger(plan, rng=ledger.noise._rng) as other,
    ):
        other.release(Gaussian(1.0), 0.0)
