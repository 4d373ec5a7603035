from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from accounting_builders import ROW, plan, poisson, use
from dp_accounting import dp_event as dp
from dp_accounting import pld, rdp
from dp_accounting.privacy_accountant import NeighboringRelation

from dpaudit.accounting import guarantee
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.integrations.dp_accounting import from_dp_event, to_dp_event
from dpaudit.integrations.opacus import from_opacus_history, to_opacus_history
from dpaudit.integrations.opendp import from_opendp_measurement
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    BinaryTree,
    ConcentratedBlackBox,
    ContinualGaussian,
    ContinualLaplace,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PureBlackBox,
)
from dpaudit.plan import AddRemove, FixedSizeSampling, MetricBall, ReplaceOne, ZeroOut

EVENTS = [
    dp.GaussianDpEvent(10.0),
    dp.LaplaceDpEvent(3.0),
    dp.DiscreteLaplaceDpEvent(0.5, 2),
    dp.ZCDpEvent(0.1),
    dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 7),
    dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.5)),
    dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.5)), 3),
    dp.SampledWithoutReplacementDpEvent(100, 10, dp.GaussianDpEvent(1.0)),
    dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), dp.LaplaceDpEvent(2.0)]),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
@pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne()], ids=str)
def test_an_event_comes_back(event: Any, relation: Any) -> None:
    assert to_dp_event(from_dp_event(event, relation=relation, unit=ROW)) == event


@pytest.mark.parametrize("relation", [ZeroOut(), ReplaceOne()], ids=str)
@pytest.mark.parametrize("steps", [1, 2, 100, 128])
def test_a_tree_comes_back(steps: int, relation: Any) -> None:
    event = dp.SelfComposedDpEvent(dp.SingleEpochTreeAggregationDpEvent(3.0, steps), 2)
    assert to_dp_event(from_dp_event(event, relation=relation, unit=ROW)) == event


@pytest.mark.parametrize("steps", [1, 7, [8, 100, 3], 128])
def test_a_tree_costs_what_dp_accounting_says(steps: Any) -> None:
    event = dp.SingleEpochTreeAggregationDpEvent(3.0, steps)
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    theirs = accountant.compose(event).get_epsilon(1e-6)
    ours = from_dp_event(event, relation=ZeroOut(), unit=ROW)
    assert guarantee(ours, 1e-6, "gaussian").epsilon <= theirs
    assert guarantee(ours, 1e-6, "rdp").epsilon == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize(
    ("shifts", "shares"), [([0.0, 2.0], [0.9, 0.1]), ([1.0], [1.0]), ([0, 0, 1], [0.2, 0.3, 0.5])]
)
def test_a_mixture_of_two_is_a_poisson_sample(shifts: Any, shares: Any) -> None:
    event = dp.SelfComposedDpEvent(dp.MixtureOfGaussiansDpEvent(1.5, shifts, shares), 3)
    theirs = pld.PLDAccountant(value_discretization_interval=1e-3).compose(event)
    ours = from_dp_event(event, relation=AddRemove(), unit=ROW)
    assert guarantee(ours, 1e-6).epsilon == pytest.approx(theirs.get_epsilon(1e-6), rel=1e-3)


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
            back = from_dp_event(to_dp_event(declared), relation=relation, unit=ROW)
            first = guarantee(declared, 1e-6).epsilon
            found = guarantee(back, 1e-6).epsilon
            assert first * (1 - 1e-12) <= found <= first * (1 + 1e-9)


def test_randomised_response_is_for_replace_one() -> None:
    event = dp.RandomizedResponseDpEvent(0.5, 3)
    assert to_dp_event(from_dp_event(event, relation=ReplaceOne(), unit=ROW)) == event
    with pytest.raises(UnsupportedError, match="is for replace-one"):
        from_dp_event(event, relation=AddRemove(), unit=ROW)


def test_plans_go_there_and_back_at_the_same_cost() -> None:
    mixed = plan(
        use(Gaussian(3.0), 2.0, count=5), use(Laplace(4.0), 0.5), use(DiscreteLaplace(3.0), 2.0)
    )
    back = from_dp_event(to_dp_event(mixed), relation=AddRemove(), unit=ROW)
    for delta in (1e-8, 1e-3):
        first = guarantee(mixed, delta, "rdp").epsilon
        assert first <= guarantee(back, delta, "rdp").epsilon <= first * (1 + 1e-9)


def test_several_gaussian_releases_of_one_sample_are_one() -> None:
    event = dp.PoissonSampledDpEvent(0.1, dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 4))
    (found,) = from_dp_event(event, relation=AddRemove(), unit=ROW).invocations
    assert isinstance(found.mechanism, Gaussian)
    assert found.mechanism.sigma == pytest.approx(1.0)
    assert found.mechanism.sigma <= 1.0
    assert found.count == 1


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (dp.NonPrivateDpEvent(), "NonPrivateDpEvent has no counterpart"),
        (dp.UnsupportedDpEvent(), "UnsupportedDpEvent has no counterpart"),
        (dp.GaussianDpEvent(0.0), "GaussianDpEvent has no counterpart"),
        (dp.ZCDpEvent(0.1, 0.2), "ZCDpEvent has no counterpart"),
        (dp.SingleEpochTreeAggregationDpEvent(1.0, 4), "SingleEpochTreeAggregationDpEvent is for"),
        (dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(1.0), 3, 1), "RepeatAndSelectDpEvent has"),
        (
            dp.SampledWithReplacementDpEvent(100, 10, dp.GaussianDpEvent(1.0)),
            "SampledWithReplacementDpEvent has",
        ),
        (
            dp.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0),
            "TruncatedSubsampledGaussianDpEvent has",
        ),
        (
            dp.MixtureOfGaussiansDpEvent(1.0, [0, 1, 2], [0.5, 0.3, 0.2]),
            "MixtureOfGaussiansDpEvent has a counterpart only where",
        ),
        (
            dp.PoissonSampledDpEvent(0.1, dp.SelfComposedDpEvent(dp.LaplaceDpEvent(1.0), 2)),
            "several releases from one sample",
        ),
        (
            dp.PoissonSampledDpEvent(0.1, dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0))),
            "another sampling inside",
        ),
    ],
    ids=str,
)
def test_events_without_a_counterpart_are_named(event: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        from_dp_event(dp.ComposedDpEvent([event]), relation=AddRemove(), unit=ROW)


def test_nothing_released_is_no_plan() -> None:
    with pytest.raises(InputError, match="NoOpDpEvent"):
        from_dp_event(dp.NoOpDpEvent(), relation=AddRemove(), unit=ROW)


@pytest.mark.parametrize(
    "invocation",
    [use(PureBlackBox(1.0), at="x"), use(Laplace(1.0), relation=MetricBall(1.0), at="x")],
)
def test_invocations_without_an_event_are_named(invocation: Any) -> None:
    with pytest.raises(UnsupportedError, match="at 'x'"):
        to_dp_event(plan(invocation))


def test_parallel_groups_have_no_event() -> None:
    with pytest.raises(UnsupportedError, match="in parallel over groups"):
        to_dp_event(plan(use(Laplace(1.0), group="a"), use(Laplace(2.0), group="b")))


def test_replace_one_doubles_the_sensitivity_of_an_event() -> None:
    found = from_dp_event(dp.GaussianDpEvent(10.0), relation=ReplaceOne(), unit=ROW)
    assert found.invocations[0].sensitivity == 2.0
    assert guarantee(found, 1e-5).epsilon == pytest.approx(0.7255, abs=1e-4)


def test_fixed_size_sampling_keeps_its_sizes() -> None:
    event = dp.SampledWithoutReplacementDpEvent(100, 10, dp.GaussianDpEvent(1.0))
    found = from_dp_event(event, relation=ReplaceOne(), unit=ROW).invocations[0]
    assert found.sampling == FixedSizeSampling(10, 100)


def test_an_opacus_history_comes_back() -> None:
    history = [(1.1, 0.01, 1000), (0.9, 0.02, 50), (5.0, 1.0, 2)]
    assert to_opacus_history(from_opacus_history(history, unit=ROW)) == history


@pytest.mark.parametrize("history", [[], [(1.0, 0.1)], [(0.0, 0.1, 1)], [(1.0, 2.0, 1)], [5]])
def test_a_wrong_history_is_one_sentence(history: Any) -> None:
    with pytest.raises(InputError, match=r"history|noise_multiplier|sample_rate"):
        from_opacus_history(history, unit=ROW)


def test_what_opacus_does_not_know_is_named() -> None:
    with pytest.raises(UnsupportedError, match="laplace at 'x' has no opacus history"):
        to_opacus_history(plan(use(Laplace(1.0), sampling=poisson(0.1), at="x")))


@dataclass
class Measurement:
    """What an OpenDP measurement shows of itself."""

    output_measure: str
    privacy: Any

    def map(self, d_in: Any) -> Any:
        if d_in != 1:
            raise RuntimeError("d_in is out of bounds")
        return self.privacy


@pytest.mark.parametrize(
    ("measure", "privacy", "mechanism"),
    [
        ("MaxDivergence", 0.5, PureBlackBox(0.5)),
        ("MaxDivergence(f64)", 0.5, PureBlackBox(0.5)),
        ("ZeroConcentratedDivergence", 0.1, ConcentratedBlackBox(0.1)),
        ("Approximate(MaxDivergence)", (0.5, 1e-6), ApproximateBlackBox(0.5, 1e-6)),
        ("Approximate(MaxDivergence)", (0.5, 0.0), PureBlackBox(0.5)),
    ],
)
def test_a_measurement_becomes_a_black_box(measure: str, privacy: Any, mechanism: Any) -> None:
    found = from_opendp_measurement(
        Measurement(measure, privacy), 1, relation=AddRemove(), unit=ROW, count=2, at="m"
    )
    assert found.mechanism == mechanism
    assert (found.count, found.at, found.sensitivity) == (2, "m", 1.0)


def test_measurements_that_do_not_fit_are_refused() -> None:
    good = Measurement("MaxDivergence", 0.5)
    with pytest.raises(InputError, match="refuses d_in=7: d_in is out of bounds"):
        from_opendp_measurement(good, 7, relation=AddRemove(), unit=ROW)
    with pytest.raises(UnsupportedError, match="output measure is RenyiDivergence"):
        from_opendp_measurement(
            Measurement("RenyiDivergence", 0.5), 1, relation=AddRemove(), unit=ROW
        )
    with pytest.raises(InputError, match="delta is missing"):
        from_opendp_measurement(
            Measurement("SmoothedMaxDivergence", 0.5), 1, relation=AddRemove(), unit=ROW
        )
