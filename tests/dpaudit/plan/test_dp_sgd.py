import math

import numpy as np
import pytest
from gaussian_truth import gaussian_delta
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpaudit import (
    AddRemove,
    FixedSizeSampling,
    InputError,
    MetricBall,
    Plan,
    PoissonSampling,
    ReplaceOne,
    UnsupportedError,
    ZeroOut,
    guarantee,
)
from dpaudit.accounting.closed_forms.additive import GaussianAccountant
from dpaudit.plan.dp_sgd import Batching


def test_poisson_steps_are_one_sampled_invocation():
    (only,) = Plan.dp_sgd(
        noise_multiplier=1.5, max_grad_norm=2.0, sample_rate=0.02, steps=70
    ).invocations
    assert (only.mechanism.sigma, only.sensitivity, only.count, only.total) == (3.0, 2.0, 70, 70)
    assert only.sampling == PoissonSampling(0.02)
    assert isinstance(only.relation, AddRemove)
    assert only.at == "gradient"


def test_rate_from_public_sizes_is_that_of_opacus():
    plan = Plan.dp_sgd(noise_multiplier=1.0, batch_size=64, dataset_size=1797, epochs=3)
    (only,) = plan.invocations
    assert only.sampling.rate == 1 / 29
    assert only.count == 87


@pytest.mark.parametrize(
    ("batching", "relation", "factor"),
    [
        (Batching.POISSON, AddRemove(), 1),
        (Batching.POISSON, ZeroOut(), 1),
        (Batching.POISSON, ReplaceOne(), 2),
        (Batching.DISJOINT, ZeroOut(), 1),
        (Batching.DISJOINT, ReplaceOne(), 2),
        (Batching.ARBITRARY, ZeroOut(), 1),
        (Batching.ARBITRARY, ReplaceOne(), 2),
        (Batching.SUBSETS, ReplaceOne(), 2),
        (Batching.SUBSETS, ZeroOut(), 1),
        (Batching.SUBSETS, AddRemove(), 1),
    ],
)
def test_sensitivity_follows_scheme_and_relation(batching, relation, factor):
    plan = Plan.dp_sgd(
        noise_multiplier=1.0,
        max_grad_norm=0.5,
        batch_size=10,
        dataset_size=100,
        epochs=2,
        batching=batching,
        relation=relation,
    )
    assert {each.sensitivity for each in plan.invocations} == {0.5 * factor}
    assert guarantee(plan, 1e-5).epsilon < math.inf


@pytest.mark.parametrize(
    ("batching", "relation"),
    [
        (Batching.DISJOINT, AddRemove()),
        (Batching.ARBITRARY, AddRemove()),
        (Batching.POISSON, MetricBall()),
    ],
)
def test_what_is_not_proved_is_refused(batching, relation):
    with pytest.raises(UnsupportedError, match="their cost is proved under"):
        Plan.dp_sgd(
            noise_multiplier=1.0,
            batch_size=10,
            dataset_size=100,
            epochs=2,
            batching=batching,
            relation=relation,
        )


@given(
    epochs=st.integers(1, 20),
    batches=st.integers(1, 50),
    noise=st.floats(0.5, 5),
    relation=st.sampled_from([ZeroOut(), ReplaceOne()]),
)
def test_disjoint_epochs_cost_one_gaussian_each(epochs, batches, noise, relation):
    plan = Plan.dp_sgd(
        noise_multiplier=noise,
        max_grad_norm=3.0,
        steps=epochs * batches,
        epochs=epochs,
        batching="disjoint",
        relation=relation,
    )
    assert len(plan.invocations) == epochs
    assert sum(each.releases for each in plan.invocations) == epochs * batches
    mu = relation.contribution_factor * math.sqrt(epochs) / noise
    composed = GaussianAccountant().compose(plan.by_unit()[0])
    assert composed.delta(1.0).upper == pytest.approx(gaussian_delta(1.0, mu), rel=1e-9)


def test_a_batch_at_a_random_place_costs_at_most_one_gaussian():
    """δ of one epoch of two disjoint batches, a unit in either, by integration over the plane."""
    axis = np.linspace(-9, 10, 1901)
    first, second = norm.pdf(axis), norm.pdf(axis - 1)
    without = np.outer(first, first)
    fixed = np.outer(second, first)
    shuffled = (np.outer(second, first) + np.outer(first, second)) / 2
    cell = (axis[1] - axis[0]) ** 2
    for epsilon in (0.1, 1.0, 2.0):
        one = gaussian_delta(epsilon)
        for p, q in ((fixed, without), (without, fixed)):
            delta = np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell
            assert delta == pytest.approx(one, rel=1e-3)
        for p, q in ((shuffled, without), (without, shuffled)):
            assert np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell < one


def test_schedules_have_one_invocation_a_phase():
    plan = Plan.dp_sgd(
        noise_multiplier=[1.0, 0.9], max_grad_norm=[1.0, 2.0], sample_rate=0.1, steps=[5, 7]
    )
    assert [each.at for each in plan.invocations] == ["gradient, phase 1", "gradient, phase 2"]
    assert [each.mechanism.sigma for each in plan.invocations] == [1.0, 1.8]
    assert [each.count for each in plan.invocations] == [5, 7]
    by_epoch = Plan.dp_sgd(noise_multiplier=[2.0, 1.0, 0.5], sample_rate=0.1, epochs=3)
    assert [each.count for each in by_epoch.invocations] == [10, 10, 10]
    disjoint = Plan.dp_sgd(
        noise_multiplier=[2.0, 1.0], steps=8, epochs=2, batching=Batching.DISJOINT, at="step"
    )
    assert [each.at for each in disjoint.invocations] == ["step, epoch 1", "step, epoch 2"]
    assert [(each.count, each.total) for each in disjoint.invocations] == [(1, 4), (1, 4)]


def test_everybody_in_every_batch_has_a_cost_under_replace_one_too():
    plan = Plan.dp_sgd(noise_multiplier=4.0, sample_rate=1.0, steps=4, relation=ReplaceOne())
    composed = GaussianAccountant().compose(plan.invocations)
    assert composed.delta(1.0).upper == pytest.approx(gaussian_delta(1.0), rel=1e-9)


def test_subsets_are_amplified():
    (only,) = Plan.dp_sgd(
        noise_multiplier=1.0, batch_size=10, dataset_size=95, epochs=2, batching="subsets"
    ).invocations
    assert only.sampling == FixedSizeSampling(10, 95)
    assert only.count == 20


WRONG = [
    ({}, "sample_rate is missing"),
    ({"sample_rate": 0.1}, "steps is missing"),
    ({"sample_rate": 1.5, "steps": 1}, "sample_rate is 1.5"),
    ({"sample_rate": 0.1, "steps": 0}, "steps is 0"),
    ({"sample_rate": 0.1, "steps": [3, 0]}, "steps is 0"),
    ({"sample_rate": 0.1, "epochs": 0}, "epochs is 0"),
    ({"sample_rate": 0.1, "steps": [3], "epochs": 1}, "steps is a sequence"),
    ({"sample_rate": 0.1, "steps": 7, "epochs": 2}, "must be a multiple"),
    ({"batch_size": 3, "steps": 1}, "give both or none"),
    ({"batch_size": 3, "dataset_size": 2, "steps": 1}, "at most dataset_size"),
    ({"batch_size": 1, "dataset_size": 2, "sample_rate": 0.1, "steps": 1}, "both given"),
    ({"sample_rate": 0.1, "steps": 1, "noise_multiplier": 0}, "noise_multiplier is 0"),
    ({"sample_rate": 0.1, "steps": 1, "noise_multiplier": []}, "empty sequence"),
    ({"sample_rate": 0.1, "steps": 1, "max_grad_norm": math.nan}, "max_grad_norm is nan"),
    ({"sample_rate": 0.1, "steps": 1, "noise_multiplier": [1, 2]}, "schedule of 2 phases"),
    ({"sample_rate": 0.1, "steps": [1] * 3, "noise_multiplier": [1, 2]}, "steps has 3 phases"),
    ({"sample_rate": 0.1, "epochs": 3, "noise_multiplier": [1, 2]}, "give as many of each"),
    (
        {"sample_rate": 0.1, "steps": 1, "noise_multiplier": [1, 2], "max_grad_norm": [1, 2, 3]},
        "as many of each",
    ),
    ({"sample_rate": 0.1, "steps": 1, "batching": "shuffled"}, "batching is 'shuffled'"),
    ({"sample_rate": 0.1, "steps": 1, "relation": "zero-out"}, "must be a Relation"),
    ({"steps": 4, "batching": "disjoint"}, "epochs is missing"),
    ({"epochs": 4, "batching": "disjoint"}, "steps is missing"),
    ({"steps": 4, "epochs": 1, "sample_rate": 0.5, "batching": "disjoint"}, "leave it out"),
    ({"steps": 4, "sample_rate": 0.5, "batching": "arbitrary"}, "leave it out"),
    ({"steps": 4, "batching": "subsets"}, "batch_size is missing"),
    ({"sample_rate": 0.1, "steps": 1, "unit": ""}, "unit is ''"),
]


@pytest.mark.parametrize(("settings", "sentence"), WRONG)
def test_wrong_settings_are_one_sentence(settings, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        Plan.dp_sgd(**{"noise_multiplier": 1.0, **settings})
    assert str(caught.value).count("\n") == 0
