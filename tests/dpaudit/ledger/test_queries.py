"""Queries whose sensitivity holds by construction."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import (
    AddRemove,
    Contribution,
    DiscreteLaplace,
    Gaussian,
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
    ZeroOut,
    guarantee,
)
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.ledger.bounding import bounded_total, quantile_utilities
from dpaudit.ledger.units import Units
from dpaudit.mechanisms import ExponentialMechanism, LaplaceVector, Norm
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian
from dpaudit.project.plan_file import read_plan_file

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
        (bounded(ExponentialMechanism(1.0)), "bounds no rows"),
        (bounded(Laplace(1.0), rows=1), "no exponential mechanism"),
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
    for share in (0.1, 0.5, 0.75):
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
                assert np.abs(before - after).max() <= 2 * each + 1e-12


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
        with pytest.raises(InputError, match="says itself"):
            opened(bounded(mechanism, 100.0)).sum([[50.0, 50.0]])
