"""Bounded queries, the bounds that they keep, and streams."""

import copy
import time
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from effort import examples
from examples import gaussian_invocation
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import (
    AddRemove,
    ClosedLedgerError,
    Contribution,
    DiscreteLaplace,
    Gaussian,
    Group,
    InputError,
    Invocation,
    Laplace,
    Ledger,
    MetricBall,
    Plan,
    PlanMismatchError,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
    UnsupportedError,
    ZeroOut,
    guarantee,
)
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.ledger import read_journal
from dpaudit.ledger.bounding import (
    bounded_counts,
    bounded_total,
    cells_of,
    first_rows,
    quantile_utilities,
)
from dpaudit.ledger.units import Units
from dpaudit.mechanisms import ExponentialMechanism, LaplaceVector, Norm
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian
from dpaudit.project.plan_file import read_plan_file

# -- queries whose sensitivity holds by construction -----------------------------------------------


QUIET = Gaussian(1e-9)


def bounded(mechanism, bound=1.0, rows=None, relation=None, at="sum"):
    return Invocation.bounded(
        mechanism,
        Contribution(bound, rows),
        PrivacyUnit("person"),
        relation or AddRemove(),
        TrustModel.CENTRAL,
        at=at,
    )


def opened(*invocations):
    return Ledger(Plan.of(*invocations), rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("relation", "factor"), [(AddRemove(), 1), (ReplaceOne(), 2), (MetricBall(0.1), 2)]
)
def test_the_relation_gives_the_sensitivity(relation, factor):
    assert bounded(Laplace(1.0), 3.0, relation=relation).sensitivity == 3.0 * factor
    with pytest.raises(InputError, match="parts bounded by 3 make it"):
        Invocation(
            Laplace(1.0),
            3.0 * factor - 0.1,
            PrivacyUnit("person"),
            relation,
            TrustModel.CENTRAL,
            contribution=Contribution(3.0),
        )


def test_a_sum_is_that_of_bounded_parts():
    ledger = opened(bounded(QUIET, 2.0))
    released = ledger.sum([[3.0, 4.0], [1.0, 0.0], [np.nan, np.inf]], units=["a", "b", "c"])
    np.testing.assert_allclose(released, [1.2 + 1.0, 1.6 + 2.0], rtol=1e-6)
    assert [entry.unit for entry in ledger] == [None]


def test_a_bounded_invocation_takes_no_other_value():
    ledger = opened(bounded(QUIET), Invocation(
        QUIET, 1.0, PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL, at="free"
    ))  # fmt: skip
    with pytest.raises(PlanMismatchError, match="use the ledger's sum"):
        ledger.release(QUIET, 100.0, at="sum")
    with pytest.raises(PlanMismatchError, match="use the ledger's sum"):
        ledger.release_each(QUIET, [100.0], units=["a"], at="sum")
    with pytest.raises(PlanMismatchError, match="without a contribution"):
        ledger.sum([1.0], at="free")
    with pytest.raises(PlanMismatchError, match="without a contribution"):
        ledger.sum([1.0], at="elsewhere")
    assert len(ledger) == 0


def test_counts_are_of_people_or_of_rows():
    ledger = opened(
        bounded(DiscreteLaplace(1e-3), 1.0, 1, at="people"),
        bounded(DiscreteLaplace(1e-3), 2.0, 2, at="rows"),
        bounded(DiscreteLaplace(1e-3), at="all"),
    )
    units = ["ann"] * 5 + ["bob"]
    assert ledger.count(units=units, at="people") == 2
    assert ledger.count(units=units, at="rows") == 3
    assert ledger.count(7, at="all") == 7
    with pytest.raises(InputError, match="n and units are missing"):
        ledger.count(at="all")


def test_a_count_of_any_size_is_exact_or_refused():
    declared = bounded(QUIET, at="all"), bounded(QUIET, 0.3, at="parts")
    ledger = Ledger(Plan.of(*declared), noise=RecordingNoise(np.random.default_rng(0)))
    ledger.count(10**15, at="all")
    ledger.count(1000, at="parts")
    whole, parts = (step.value for step in ledger.noise.steps)
    assert whole == 10**15
    assert parts == 1000 * bounded_total([1], Units(None, 1), Contribution(0.3), Norm.L2)[0]
    for n, at in ((2**53 + 1, "all"), (10**400, "all"), (2**50, "parts")):
        with pytest.raises(InputError, match="n is too large for an exact count"):
            opened(*declared).count(n, at=at)


def test_no_total_is_refused_for_its_size():
    """Who hears that a sum is above 2^53 hears more than its noise tells."""
    about = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
    noise, bound = DiscreteLaplace(1.0), Contribution(2.0**52)
    plan = Plan.of(Invocation.bounded(noise, bound, *about, at="sum", count=2))
    with Ledger(plan, rng=np.random.default_rng(0)) as ledger:
        for sign in (1, -1):
            rows = np.full((5, 1), sign * 2.0**52)
            assert abs(ledger.sum(rows, units=np.arange(5), at="sum")[0] - sign * 2**53) < 100


def test_a_mean_is_a_sum_over_a_number():
    plan = bounded(QUIET, 2.0), bounded(QUIET, at="count")
    people = ["a", "a", "b", "c"]
    with opened(*plan) as ledger:
        assert ledger.mean([0.5, 0.5, 9.0, np.nan], units=people) == pytest.approx(3.0 / 3)
        assert len(ledger) == 2
    with opened(*plan) as ledger:
        assert ledger.mean([]) == pytest.approx(0.0, abs=1e-6), "nobody counts as one"


def test_a_histogram_has_public_keys():
    ledger = opened(bounded(DiscreteLaplace(1e-3), 2.0, 2))
    keys = ["red", "blue", "red", "unheard of", "red"]
    units = ["ann", "ann", "ann", "bob", "cid"]
    released = ledger.histogram(keys, ["blue", "green", "red"], units=units)
    assert released.tolist() == [1, 0, 2]


def test_a_quantile_is_one_of_the_candidates():
    choice = ExponentialMechanism(200.0, utility_sensitivity=0.5)
    invocation = bounded(choice, rows=1)
    values = np.arange(101.0)
    median = opened(invocation).quantile(values, 0.5, [0.0, 25.0, 50.0, 75.0])
    assert median == 50.0
    tenth = bounded(ExponentialMechanism(200.0, utility_sensitivity=0.9), rows=1)
    assert opened(tenth).quantile([*values, np.nan], 0.1, [5.0, 10.0, 50.0]) == 10.0
    replaced = bounded(ExponentialMechanism(200.0), rows=1, relation=ReplaceOne())
    assert opened(replaced).quantile(values, 0.5, [0.0, 25.0, 50.0, 75.0]) == 50.0
    for wrong, message in [
        (
            bounded(ExponentialMechanism(1.0, utility_sensitivity=0.4), rows=1),
            "rows can move the utility",
        ),
        (bounded(ExponentialMechanism(1.0)), "does not bound the rows"),
        (bounded(Laplace(1.0), rows=1), "not an exponential mechanism"),
        (bounded(choice, rows=1, relation=ReplaceOne()), "move the utility by up to 1"),
        (bounded(choice, rows=1, relation=ZeroOut()), "move the utility by up to 1"),
    ]:
        with pytest.raises(InputError, match=message):
            opened(wrong).quantile(values, 0.5, [0.0, 1.0])
    with pytest.raises(InputError, match="increasing"):
        opened(invocation).quantile(values, 0.5, [1.0, 0.0])


def test_a_utility_moves_by_no_more_than_is_declared():
    rng = np.random.default_rng(1)
    candidates = [-1.0, 0.0, 0.5, 2.0]
    for share in (0.1, 0.3, 0.5, 0.75, 1e-12, 1 - 2**-53):
        absent = max(share, 1 - share)
        for relation, each in ((AddRemove(), absent), (ReplaceOne(), 1.0), (ZeroOut(), 1.0)):
            choice = ExponentialMechanism(1.0, utility_sensitivity=2 * each)
            invocation = bounded(choice, rows=2, relation=relation)
            for _ in range(100):
                values, units = rng.normal(size=20), rng.integers(0, 5, 20)
                before = quantile_utilities(invocation, values, share, candidates, units)
                kept = units != 0
                if not isinstance(relation, AddRemove):
                    other = rng.normal(size=20) * 3 * relation.replaces
                    changed = np.where(kept, values, other)
                    after = quantile_utilities(invocation, changed, share, candidates, units)
                else:
                    after = quantile_utilities(
                        invocation, values[kept], share, candidates, units[kept]
                    )
                pairs = zip(before.tolist(), after.tolist(), strict=True)
                moved = [abs(Fraction(one) - Fraction(other)) for one, other in pairs]
                assert max(moved) <= Fraction(2 * each)


def test_a_contribution_is_written_read_and_proved(tmp_path):
    plan = Plan.of(bounded(Laplace(2.0), 1.0, 3, ReplaceOne()))
    assert Plan.from_dict(plan.to_dict()) == plan
    assert guarantee(plan).epsilon == 1.0
    path = tmp_path / "plan.toml"
    path.write_text(
        """
[plan]
relation = "replace-one"
unit = "person"
[[invocation]]
mechanism = "laplace"
scale = 2.0
at = "sum"
contribution = { bound = 1.0, rows = 3 }
"""
    )
    assert read_plan_file(path).plan == plan
    path.write_text(path.read_text().replace("rows", "row"))
    with pytest.raises(InputError, match="did you mean 'rows'"):
        read_plan_file(path)


def test_what_is_bounded_at_the_door_leaves_by_no_other():
    """A stream, and another library, would not bound what one unit adds."""
    stream = ContinualGaussian(sigma=1.0, factorization=BinaryTree(4), participations=1)
    invocation = replace(gaussian_invocation(mechanism=stream, sensitivity=2.0, at="here"),
                         contribution=Contribution(1.0))  # fmt: skip
    ledger = Ledger(Plan.of(invocation), rng=np.random.default_rng(1))
    with pytest.raises(PlanMismatchError, match="bounded contribution"):
        ledger.stream(stream, (), at="here")
    with pytest.raises(PlanMismatchError, match="bounded contribution"):
        ledger.observe(stream, SimpleNamespace(sampler="torch", draw=lambda: None), at="here")
    assert len(ledger) == 0


def test_no_sum_is_bounded_for_a_mechanism_that_has_a_sensitivity_of_its_own():
    box = LaplaceVector((1.0, 1.0), (1.0, 1.0))
    for mechanism in (box, ExponentialMechanism(1.0)):
        with pytest.raises(InputError, match="states by itself"):
            opened(bounded(mechanism, 100.0)).sum([[50.0, 50.0]])


# -- one unit moves a total by no more than its bound, exactly, whatever the data are --------------


numbers = st.one_of(
    st.floats(width=64),
    st.sampled_from([0.0, 1.0, 3.0, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf, 1e154, 0.1]),
)
bounds = st.sampled_from([1.0, 3.0, 0.1, 1e-200, 1e200, 2.0**26, np.sqrt(2), 7.0])


def norm_of(difference, norm):
    """Exactly: the L1 norm, or the square of the L2 norm."""
    exact = [Fraction(float(x)) for x in difference]
    return sum(map(abs, exact)) if norm is Norm.L1 else sum(x * x for x in exact)


def within(difference, bound, norm):
    limit = Fraction(bound) if norm is Norm.L1 else Fraction(bound) ** 2
    return norm_of(difference, norm) <= limit


@settings(max_examples=examples(100, 2000), deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), numbers, numbers), min_size=1, max_size=12),
    bound=bounds,
    norm=st.sampled_from([Norm.L1, Norm.L2]),
    most=st.sampled_from([None, 1, 2]),
)
@example([(0, 1.0, 1.0), (1, 1e308, 1e308), (0, 1e308, 1e308)], 1.0, Norm.L2, None)
@example([(0, 1e154, 1e154)], 1e200, Norm.L2, None)
@example([(0, 2.2e-168, 0.0)], 1e-200, Norm.L2, None)
@example([(0, np.inf, -np.inf), (0, -np.inf, 1.0)], 3.0, Norm.L1, None)
@example([(0, 3e100, 0.0), (0, -2e100, 0.0), (1, -5e100, 0.0)], 1.0, Norm.L1, None)
def test_a_removed_unit_moves_the_total_by_its_bound(rows, bound, norm, most):
    codes = np.array([code for code, *_ in rows])
    values = np.array([[one, two] for _, one, two in rows])
    contribution = Contribution(bound, most)
    total = bounded_total(values, Units(codes, 4), contribution, norm)[0]
    assert np.isfinite(total).all()
    for gone in range(4):
        kept = codes != gone
        less = bounded_total(values[kept], Units(codes[kept], 4), contribution, norm)[0]
        # Totals of few parts are exact on the grid, so that their difference is the part itself.
        part = bounded_total(values[~kept], Units(codes[~kept], 4), contribution, norm)[0]
        assert within(part, bound, norm)
        np.testing.assert_array_equal(total, less + part)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=20), st.integers(5, 2**20))
def test_integers_within_the_bound_stay_whole(values, bound):
    total = bounded_total(values, Units.of(None, len(values)), Contribution(bound), Norm.L2)[0]
    assert total == sum(values)


def test_parts_are_scaled_not_cut():
    rows = np.array([[3.0, 4.0], [0.3, 0.4]])
    total = bounded_total(rows, Units.of(None, 2), Contribution(1.0), Norm.L2)[0]
    np.testing.assert_allclose(total, [0.6 + 0.3, 0.8 + 0.4], rtol=1e-7)
    one_norm = bounded_total(rows, Units.of(None, 2), Contribution(7.0), Norm.L1)[0]
    np.testing.assert_allclose(one_norm, [3.3, 4.4], rtol=1e-7)


def test_rows_of_a_unit_are_joined_before_they_are_bounded():
    rows, units = [4.0, -3.5, 1.0], ["ann", "ann", "bob"]
    total = bounded_total(rows, Units.of(units, 3), Contribution(1.0), Norm.L1)[0]
    assert total == pytest.approx(1.5, rel=1e-7)
    alone = bounded_total(rows, Units.of(None, 3), Contribution(1.0), Norm.L1)[0]
    assert alone == pytest.approx(1.0, rel=1e-7)


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 3))
def test_the_first_rows_of_each_unit_count(codes, most):
    seen, expected = {}, []
    for code in codes:
        seen[code] = seen.get(code, 0) + 1
        expected.append(seen[code] <= most)
    units = Units(np.array(codes, dtype=np.int64), 5)
    assert first_rows(units, most).tolist() == expected


def test_keys_are_known_beforehand():
    assert cells_of(["b", "x", "a"], np.array(["a", "b"])).tolist() == [1, -1, 0]
    with pytest.raises(InputError, match="distinct"):
        cells_of(["a"], np.array(["a", "a"]))
    with pytest.raises(InputError, match="not a text, a number or a tuple"):
        cells_of(["a"], [["a"]])


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("keys", "public", "cells"),
    [
        ([1, "1", "a", "a\0"], ["1", "a\0", 1], [2, 0, -1, 1]),
        ([("a", 1), ("a", 2), (1, "a")], [("a", 2), ("a", 1)], [1, 0, -1]),
        ([2**53 + 1, 2.0**53, np.float64(3.0)], [2**53, 3], [-1, 0, 1]),
        ([Colour.RED, "red", None], ["red", None], [0, 0, 1]),
        ([["a"], {"a"}, ("a", ["b"]), object()], ["a"], [-1, -1, -1, -1]),
        (np.array([1.0, np.nan, 2.0]), [1, 2], [0, -1, 1]),
        ([], ["a"], []),
    ],
)
def test_keys_are_what_they_are_and_nobodys_own_stops_a_release(keys, public, cells):
    assert cells_of(keys, public).tolist() == cells


@pytest.mark.parametrize("rows", [["x"], 3.0, [[1.0], [1.0, 2.0]][:1] * 0 or [None], [3j]])
def test_rows_are_numbers(rows):
    with pytest.raises(InputError, match="rows are of type"):
        bounded_total(rows, Units.of(None, np.size(rows)), Contribution(1.0), Norm.L1)


def test_nothing_is_nothing():
    empty = bounded_total(np.zeros((0, 3)), Units.of(None, 0), Contribution(1.0), Norm.L2)[0]
    assert empty.tolist() == [0.0, 0.0, 0.0]


def test_bounding_costs_little_beside_clipping_and_summing():
    """A ratio in one process: the least of several runs of each, in turn."""
    rng = np.random.default_rng(0)
    rows, codes = rng.normal(size=(200_000, 10)), rng.integers(0, 60_000, 200_000)

    def plain():
        joined = np.stack([np.bincount(codes, column, minlength=60_000) for column in rows.T], 1)
        norms = np.sqrt(np.einsum("ij,ij->i", joined, joined))
        return (joined * np.minimum(1, 3 / np.maximum(norms, 1e-300))[:, None]).sum(axis=0)

    def ours():
        return bounded_total(rows, Units.of(codes, len(rows)), Contribution(3.0), Norm.L2)[0]

    np.testing.assert_allclose(ours(), plain(), atol=1e-3)
    times = {plain: [], ours: []}
    for _ in range(7):
        for task, taken in times.items():
            start = time.process_time()
            task()
            taken.append(time.process_time() - start)
    assert min(times[ours]) <= 2 * min(times[plain])


@pytest.mark.parametrize("bound", [2.0**26, 2.0**26 + 1, 1e12, 1e200])
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_integers_of_any_bound_stay_integers_within_it(bound, norm):
    rows = np.array([3, -5, 2**40, 2**62], dtype=np.int64)
    everybody = bounded_total(rows, Units.of(None, 4), Contribution(bound), norm)[0]
    assert everybody == np.floor(everybody)
    for place in range(4):
        others = np.delete(rows, place)
        without = bounded_total(others, Units.of(None, 3), Contribution(bound), norm)[0]
        assert within([everybody - without], bound, norm)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_totals_of_many_large_integers_are_exact(norm):
    rows, bound = np.full(100_000, 2**52 - 1), 2.0**52
    everybody = bounded_total(rows, Units.of(None, 100_000), Contribution(bound), norm)[0]
    without = bounded_total(rows[1:], Units.of(None, 99_999), Contribution(bound), norm)[0]
    assert float(everybody - without) * 100_000 == everybody
    assert within([everybody - without], bound, norm)


@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 3)), max_size=60),
    bound=st.sampled_from([0.3, 1.0, 1.5, 2.0, 3.0, 7.7, 2.0**26, 2.0**40, 1e-50]),
    norm=st.sampled_from([Norm.L1, Norm.L2]),
    most=st.sampled_from([None, 1, 2, 5]),
    whole=st.booleans(),
    named=st.booleans(),
)
def test_counts_of_cells_are_totals_of_rows_of_one_each(rows, bound, norm, most, whole, named):
    codes, cells = (np.array([row[n] for row in rows], dtype=np.int64) for n in range(2))
    units = Units.of(codes if named else None, len(rows))
    present = cells >= 0
    dense = np.equal.outer(cells[present], np.arange(4)).astype(np.int64)
    contribution = Contribution(bound, most)
    total, parts = bounded_total(dense, units.where(present), contribution, norm, whole=whole)
    found, own = bounded_counts(cells, 4, units, contribution, norm, whole=whole)
    np.testing.assert_array_equal(found, total)
    np.testing.assert_array_equal(own()[own().any(axis=1)], parts[parts.any(axis=1)])
    assert all(within(part, bound, norm) for part in own())
    assert not whole or (found == np.floor(found)).all()


def test_integer_noise_is_of_whole_parts_whatever_the_data_are():
    with opened(bounded(DiscreteLaplace(1.0), 2.0, at="sum")) as ledger:
        ledger.noise = RecordingNoise(np.random.default_rng(0))
        ledger.histogram(["a", "a", "a", "b", "b"], ["a", "b"], units=[0, 0, 0, 0, 1], at="sum")
        assert ledger.noise.steps[0].value.tolist() == [1, 1]
    with opened(bounded(DiscreteLaplace(1.0), 2.0, at="sum")) as ledger:
        ledger.noise = RecordingNoise(np.random.default_rng(0))
        ledger.sum([3, 1], at="sum")
        assert ledger.noise.steps[0].value == 3


def test_a_choice_among_rows_declares_that_it_changes():
    with pytest.raises(InputError, match="so declare 1"):
        replace(bounded(ExponentialMechanism(1.0), rows=1), sensitivity=0.0)


# -- streams pass the same door as releases do -----------------------------------------------------


SUMS = ContinualGaussian(
    sigma=2.0, factorization=BinaryTree(steps=6), participations=2, min_separation=2
)
PLAN = Plan.of(gaussian_invocation(mechanism=SUMS, at="sums"))


def streaming(plan=PLAN, **options):
    return Ledger(plan, rng=np.random.default_rng(1), **options)


def test_a_stream_ends_with_its_ledger():
    ledger = streaming()
    stream = ledger.stream(SUMS, ())
    stream.add(1.0)
    ledger.close()
    with pytest.raises(ClosedLedgerError):
        stream.add(1.0)
    assert (stream.taken, stream.steps) == (1, 6)


def test_a_stream_under_local_trust_is_of_a_unit_that_is_named():
    own = gaussian_invocation(mechanism=SUMS, at="sums", trust=TrustModel.LOCAL)
    ledger = streaming(Plan.of(own))
    with pytest.raises(PlanMismatchError, match="stream of one row under local trust; name it"):
        ledger.stream(SUMS, ())
    assert not len(ledger)
    stream = ledger.stream(SUMS, (), unit="ann")
    stream.add(1.0)
    with pytest.raises(PlanMismatchError, match="at least 2 steps apart"):
        stream.add(1.0)


def test_a_stream_is_not_copied():
    stream = streaming().stream(SUMS, ())
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
        streaming().stream(own, ())


def test_named_contributions_are_held_against_the_declaration(tmp_path):
    path = tmp_path / "ledger.jsonl"
    stream = streaming(journal=path).stream(SUMS, ())
    stream.add(1.0, unit="ann")
    with pytest.raises(PlanMismatchError, match="at least 2 steps apart; this row has taken"):
        stream.add(1.0, unit="ann")
    stream.add(1.0, unit="bob")
    stream.add(1.0, unit="ann")
    stream.add(1.0)
    with pytest.raises(PlanMismatchError, match="2 participations; this row has used all of them"):
        stream.add(1.0, unit="ann")
    steps = [(each.unit, each.step) for each in read_journal(path).entries]
    assert steps == [(None, None), ("ann", 0), ("bob", 1), ("ann", 2)]


@pytest.mark.parametrize("trust", TrustModel)
@pytest.mark.parametrize("unit", ["ann", None])
@pytest.mark.parametrize(("participations", "steps"), [(1, 6), (1, 1), (6, 6)])
def test_a_whole_stream_of_one_unit_takes_part_at_each_step(participations, steps, unit, trust):
    """Six steps of one unit move the nodes of the tree 3 times as far as one does."""
    stream = replace(SUMS, participations=participations, min_separation=1)
    ledger = streaming(Plan.of(gaussian_invocation(mechanism=stream, trust=trust)))
    of_many = unit is None and trust is not TrustModel.LOCAL
    if of_many or participations == steps:
        assert np.shape(ledger.release(stream, [0.1] * steps, unit=unit)) == (steps,)
    else:
        with pytest.raises(PlanMismatchError, match="takes part at each of 6 steps"):
            ledger.release(stream, [0.1] * steps, unit=unit)
        assert not len(ledger)


def test_a_stream_that_one_unit_was_charged_for_is_its_own():
    stream = streaming().stream(SUMS, (), unit="ann")
    stream.add(1.0)
    with pytest.raises(PlanMismatchError, match="2 steps apart; this row has taken"):
        stream.add(1.0)
    with pytest.raises(PlanMismatchError, match="and only that one was charged"):
        stream.add(1.0, unit="bob")
    assert stream.taken == 1


def test_a_contributor_belongs_to_one_group(tmp_path):
    def invocation(number):
        return Invocation(
            **(
                vars(gaussian_invocation(mechanism=SUMS))
                | {"group": Group(f"round {number}"), "at": f"sums {number}"}
            )
        )

    ledger = streaming(Plan.of(invocation(1), invocation(2)), journal=tmp_path / "ledger.jsonl")
    one, two = (ledger.stream(SUMS, (), at=f"sums {number}") for number in (1, 2))
    one.add(1.0, unit="ann")
    with pytest.raises(PlanMismatchError, match="belonged to 'round 1'"):
        two.add(1.0, unit="ann")
    ledger.journal.release()
    account = read_journal(tmp_path / "ledger.jsonl").account()
    with pytest.raises(PlanMismatchError, match="belonged to 'round 1'"):
        account.require_member(ledger.plan.invocations[1], "ann")


def test_only_continual_release_is_a_stream():
    noise = Gaussian(1.0)
    ledger = Ledger(Plan.of(gaussian_invocation(1.0, at="sum")), rng=np.random.default_rng(0))
    with pytest.raises(PlanMismatchError, match="not a continual release"):
        ledger.stream(noise, ())
    assert len(ledger) == 0


def test_exact_noise_refuses_a_stream():
    ledger = Ledger(PLAN)
    with pytest.raises(UnsupportedError, match="no exact sampler"):
        ledger.stream(SUMS, ())
    assert len(ledger) == 0


def test_a_refused_value_counts_as_no_step():
    stream = streaming().stream(SUMS, (2,))
    for value in ([1.0], [np.nan, 0.0], "x", None):
        with pytest.raises(InputError, match="value"):
            stream.add(value, unit="ann")
    assert stream.taken == 0
    stream.add([1.0, 0.0], unit="ann")
