"""Sums in which every unit has a budget of its own."""

import copy
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import (
    AddRemove,
    Contribution,
    Gaussian,
    Group,
    IndividualGaussian,
    InputError,
    Invocation,
    Ledger,
    Plan,
    PlanMismatchError,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    SecureNoise,
    TrustModel,
    UnsupportedError,
)
from dpaudit.auditing.replaying.recording import RecordingNoise, Routine
from dpaudit.auditing.replaying.replay import replay

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
        ([1.0], "ann", None, r"units is a str; it must have one entry a row"),
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
    with pytest.raises(PlanMismatchError, match="has steps; open it by individual"):
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
