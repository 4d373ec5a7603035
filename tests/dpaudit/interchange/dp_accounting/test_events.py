from __future__ import annotations

from typing import Any

import pytest
from accounting_builders import plan, poisson, use
from dp_accounting import dp_event as dp
from dp_accounting import rdp
from dp_accounting.privacy_accountant import NeighboringRelation

from dpaudit.accounting import guarantee
from dpaudit.base.errors import UnsupportedError
from dpaudit.interchange.dp_accounting import to_dp_event
from dpaudit.mechanisms import (
    BinaryTree,
    ConcentratedBlackBox,
    ContinualGaussian,
    ContinualLaplace,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    MetricBall,
    PoissonSampling,
    RandomAllocation,
    ReplaceOne,
    TruncatedPoissonSampling,
    ZeroOut,
)

EVENTS = [
    ([use(Gaussian(10.0))], dp.GaussianDpEvent(10.0)),
    ([use(Gaussian(10.0), 4.0, ReplaceOne())], dp.GaussianDpEvent(5.0)),
    ([use(Laplace(3.0), 2.0)], dp.LaplaceDpEvent(1.5)),
    ([use(DiscreteLaplace(2.0), 2.0)], dp.DiscreteLaplaceDpEvent(0.5, 2)),
    ([use(ConcentratedBlackBox(0.1))], dp.ZCDpEvent(0.1)),
    (
        [use(RandomizedResponse(0.5, 3), relation=ReplaceOne())],
        dp.RandomizedResponseDpEvent(0.5, 3),
    ),
    ([use(Gaussian(2.0), count=7)], dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 7)),
    (
        [use(Laplace(1.5), sampling=poisson(0.1), count=3)],
        dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.5)), 3),
    ),
    (
        [use(Gaussian(1.0), 2.0, ReplaceOne(), sampling=FixedSizeSampling(10, 100))],
        dp.SampledWithoutReplacementDpEvent(100, 10, dp.GaussianDpEvent(1.0)),
    ),
    (
        [use(Gaussian(3.0), sampling=TruncatedPoissonSampling(0.1, 20, 100))],
        dp.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 3.0),
    ),
    (
        [use(Gaussian(1.0)), use(Laplace(2.0))],
        dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), dp.LaplaceDpEvent(2.0)]),
    ),
]


@pytest.mark.parametrize(("invocations", "event"), EVENTS, ids=lambda each: str(each)[:60])
def test_a_plan_becomes_its_event(invocations: Any, event: Any) -> None:
    assert to_dp_event(plan(*invocations)) == event


@pytest.mark.parametrize("steps", [1, 7, 100, 128])
def test_a_tree_costs_what_dp_accounting_says(steps: int) -> None:
    once = ContinualGaussian(
        sigma=3.0,
        factorization=BinaryTree(steps, release_root=True),
        participations=1,
        fixed_steps=True,
    )
    declared = plan(use(once, 1.0, ZeroOut()))
    event = to_dp_event(declared)
    assert event == dp.SingleEpochTreeAggregationDpEvent(3.0, steps)
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    theirs = accountant.compose(event).get_epsilon(1e-6)
    assert guarantee(declared, 1e-6, "gaussian").epsilon <= theirs
    assert guarantee(declared, 1e-6, "rdp").epsilon == pytest.approx(theirs, rel=1e-3)


def test_continual_releases_become_the_release_of_their_nodes() -> None:
    for mechanism in (
        ContinualGaussian(sigma=3.0, factorization=BinaryTree(20), participations=2),
        ContinualGaussian(
            sigma=3.0, factorization=BinaryTree(20), participations=1, symmetric=True
        ),
        ContinualLaplace(scale=9.0, factorization=BinaryTree(20), participations=1),
    ):
        for relation in (AddRemove(), ReplaceOne()):
            declared = plan(use(mechanism, 2.0, relation))
            event = to_dp_event(declared)
            kind = Laplace if isinstance(event, dp.LaplaceDpEvent) else Gaussian
            back = plan(use(kind(event.noise_multiplier), relation.contribution_factor, relation))
            first = guarantee(declared, 1e-6).epsilon
            found = guarantee(back, 1e-6).epsilon
            assert first * (1 - 1e-12) <= found <= first * (1 + 1e-9)


@pytest.mark.parametrize(
    "invocation",
    [use(PureBlackBox(1.0), at="x"), use(Laplace(1.0), relation=MetricBall(1.0), at="x")],
)
def test_invocations_without_an_event_are_named(invocation: Any) -> None:
    with pytest.raises(UnsupportedError, match="at 'x'"):
        to_dp_event(plan(invocation))


def test_sampled_rows_are_a_mixture() -> None:
    event = to_dp_event(plan(use(Gaussian(2.0), sampling=PoissonSampling(0.3, rows=2))))
    assert isinstance(event, dp.MixtureOfGaussiansDpEvent)
    assert (event.standard_deviation, list(event.sensitivities)) == (2.0, [0, 1, 2])
    assert event.sampling_probs == pytest.approx([0.49, 0.42, 0.09], rel=1e-9)
    for one in (
        use(Laplace(1.0), sampling=PoissonSampling(0.3, rows=2)),
        use(Gaussian(1.0), sampling=PoissonSampling(1.0, rows=2)),
        use(Laplace(1.0), sampling=TruncatedPoissonSampling(0.3, 2, 9)),
        use(Gaussian(1.0), sampling=RandomAllocation(1)),
    ):
        with pytest.raises(UnsupportedError, match="DpEvent"):
            to_dp_event(plan(one))


def test_parallel_groups_have_no_event() -> None:
    with pytest.raises(UnsupportedError, match="in parallel over groups"):
        to_dp_event(plan(use(Laplace(1.0), group="a"), use(Laplace(2.0), group="b")))
