"""Plans in the terms of dp-accounting, and its second opinion."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from dp_accounting import dp_event as dp
from dp_accounting import rdp
from dp_accounting.privacy_accountant import NeighboringRelation
from scipy import stats
from scipy.optimize import brentq

from dpaudit.accounting import guarantee
from dpaudit.base.errors import UnsupportedError
from dpaudit.certificate import Certificate, SecondOpinion, SubjectRecord, certify
from dpaudit.interchange.dp_accounting import second_opinion, to_dp_event
from dpaudit.interchange.dp_accounting.laws import (
    Grid,
    Use,
    grid_epsilon,
    has_renyi_curve,
    loss,
    renyi_epsilon,
    uses,
)
from dpaudit.mechanisms import (
    BinaryTree,
    ConcentratedBlackBox,
    ContinualGaussian,
    ContinualLaplace,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Opaque,
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

# --  ----------------------------------------------------------------------------------------------


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


# -- compositions by dp-accounting's laws and curves, against closed forms and enumeration ---------


FINE = Grid(1e-4)
BELOW = Grid(1e-4, pessimistic=False)
DELTA = 1e-5


def gaussian_epsilon(sensitivity: float, sigma: float, delta: float) -> float:
    """Balle and Wang 2018, Theorem 8, inverted."""
    ratio = sensitivity / sigma

    def excess(epsilon: float) -> float:
        lower, upper = -epsilon / ratio - ratio / 2, -epsilon / ratio + ratio / 2
        return float(stats.norm.cdf(upper) - math.exp(epsilon) * stats.norm.cdf(lower) - delta)

    return float(brentq(excess, 0.0, 100.0, xtol=1e-12))


def response_epsilon(share: float, count: int, delta: float) -> float:
    """ε of that many binary randomised responses, summed over the number that flips."""
    flip = share / 2
    flips = np.arange(count + 1)
    losses = (count - 2 * flips) * math.log((1 - flip) / flip)
    masses = stats.binom.pmf(flips, count, flip)

    def excess(epsilon: float) -> float:
        return float(np.sum(masses * np.maximum(-np.expm1(epsilon - losses), 0)) - delta)

    return float(brentq(excess, 0.0, 200.0, xtol=1e-12))


@pytest.mark.parametrize("relation", [None, ReplaceOne(), ZeroOut(), MetricBall(1.0)], ids=str)
def test_a_gaussian_has_its_declared_sensitivity_under_every_relation(relation: Any) -> None:
    composed = uses([use(Gaussian(10.0), 2.0, relation, count=3)])
    truth = gaussian_epsilon(2.0 * math.sqrt(3), 10.0, DELTA)
    assert grid_epsilon(composed, DELTA, FINE) == pytest.approx(truth, rel=1e-5)
    assert truth * 0.99 <= grid_epsilon(composed, DELTA, BELOW) + 1e-3
    assert grid_epsilon(composed, DELTA, BELOW) <= truth
    assert truth <= renyi_epsilon(composed, DELTA) <= truth * 1.2


def test_replace_one_by_renyi_is_not_half_of_the_truth() -> None:
    composed = uses([use(Gaussian(10.0), 2.0, ReplaceOne())])
    assert 0.7255 <= renyi_epsilon(composed, DELTA) < 0.8


def test_the_count_of_randomised_response_counts() -> None:
    truth = response_epsilon(0.5, 100, DELTA)
    composed = uses([use(RandomizedResponse(0.5), relation=ReplaceOne(), count=100)])
    assert truth == pytest.approx(90.78, abs=0.01)
    assert truth <= grid_epsilon(composed, DELTA, FINE) <= truth + 100 * FINE.interval
    assert truth - 100 * FINE.interval <= grid_epsilon(composed, DELTA, BELOW) <= truth
    assert truth <= renyi_epsilon(composed, DELTA)


def test_a_pure_bound_is_met_from_both_sides() -> None:
    composed = uses([use(Laplace(2.0), 3.0, ReplaceOne()), use(DiscreteLaplace(2.0), 1.0)])
    assert grid_epsilon(composed, 1e-12, FINE) == pytest.approx(2.0, abs=1e-3)
    assert 1.99 < grid_epsilon(composed, 1e-12, BELOW) <= 2.0 + 1e-9


def sampled_laplace_delta(rate: float, scale: float, epsilon: float) -> float:
    """δ(ε) of one Poisson-sampled Laplace release, by integrating its two densities."""
    at = np.linspace(-30.0, 31.0, 2_000_001)
    without = stats.laplace.pdf(at, 0, scale)
    mixed = (1 - rate) * without + rate * stats.laplace.pdf(at, 1, scale)
    step = at[1] - at[0]
    removed = np.sum(np.maximum(mixed - math.exp(epsilon) * without, 0)) * step
    added = np.sum(np.maximum(without - math.exp(epsilon) * mixed, 0)) * step
    return float(max(removed, added))


def test_a_sampled_laplace_release() -> None:
    composed = uses([use(Laplace(1.0), sampling=poisson(0.3))])
    upper, lower = grid_epsilon(composed, 0.05, FINE), grid_epsilon(composed, 0.05, BELOW)
    assert sampled_laplace_delta(0.3, 1.0, upper) == pytest.approx(0.05, abs=1e-4)
    assert upper - 1e-3 <= lower <= upper


def test_a_sampled_gaussian_under_replace_one_moves_by_its_declared_sensitivity() -> None:
    """At ε = 0 δ is the total variation of N(±Δ/2, σ²), sampled: q·(2Φ(Δ/2σ) − 1)."""
    composed = uses([use(Gaussian(1.0), 2.0, ReplaceOne(), sampling=poisson(0.25))])
    total = 0.25 * (2 * stats.norm.cdf(1.0) - 1)
    assert grid_epsilon(composed, total * 1.001, FINE) < 1e-2
    assert grid_epsilon(composed, total * 0.98, FINE) > 0


@pytest.mark.parametrize(
    ("invocation", "law", "curve"),
    [
        (use(Gaussian(1.0)), True, True),
        (use(RandomizedResponse(0.5)), True, True),
        (use(DiscreteLaplace(1.0)), True, False),
        (use(ConcentratedBlackBox(0.1)), False, True),
        (use(Gaussian(1.0), sampling=poisson(0.1)), True, True),
        (use(Gaussian(1.0), relation=ReplaceOne(), sampling=poisson(0.1)), True, False),
        (use(Laplace(1.0), sampling=poisson(0.1)), True, False),
        (use(Laplace(1.0), relation=ReplaceOne(), sampling=poisson(0.1)), False, False),
        (use(Gaussian(1.0), sampling=FixedSizeSampling(1, 10)), False, False),
        (use(Gaussian(1.0), 1.0, ReplaceOne(), sampling=FixedSizeSampling(1, 10)), False, True),
    ],
)
def test_what_there_is_for_an_event_is_known_before_any_work(
    invocation: Any, law: bool, curve: bool
) -> None:
    (found,) = uses([invocation])
    assert (loss(found.event, found) < math.inf, has_renyi_curve(found)) == (law, curve)
    if not law:
        with pytest.raises(UnsupportedError, match=r"cannot compose .* at 'invocation 1'"):
            grid_epsilon(uses(plan(invocation).invocations), DELTA, FINE)
    if not curve:
        with pytest.raises(UnsupportedError, match="cannot compose"):
            renyi_epsilon([found], DELTA)


def test_equal_invocations_are_one_event() -> None:
    (found,) = uses([use(Gaussian(2.0), count=2, at="a"), use(Gaussian(2.0), count=3, at="b")])
    assert found.event == dp.GaussianDpEvent(2.0)
    assert (found.count, found.neighbours) == (5, NeighboringRelation.ADD_OR_REMOVE_ONE)


def test_what_moves_nothing_is_no_event() -> None:
    assert uses([use(Gaussian(2.0), 0.0)]) == []


@pytest.mark.parametrize(
    ("invocation", "message"),
    [
        (use(PureBlackBox(1.0)), "no DpEvent"),
        (use(Gaussian(1.0), relation=MetricBall(1.0), sampling=poisson(0.1)), "metric-ball"),
    ],
)
def test_what_has_no_event_is_named(invocation: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        uses([invocation])


def test_an_unknown_event_has_no_law() -> None:
    (known,) = uses([use(Gaussian(1.0))])
    unknown = Use(known.invocation, dp.UnsupportedDpEvent(), 1, known.neighbours)
    assert loss(unknown.event, unknown) == math.inf
    assert not has_renyi_curve(unknown)


# -- what dp-accounting says of a certificate ------------------------------------------------------


REPLACE = ReplaceOne()


def certificate(*invocations: Any, delta: float = DELTA) -> Certificate:
    return certify(plan(*invocations), subject=SubjectRecord("x", {}, None, ""), delta=delta)


def opinion(*invocations: Any, delta: float = DELTA) -> SecondOpinion:
    return second_opinion(certificate(*invocations, delta=delta))


def stating(made: Certificate, epsilon: float, bound: float | None = None) -> Certificate:
    """A certificate with another number, as a fault of an accountant would make it."""
    assert made.guarantee is not None
    return replace(made, guarantee=replace(made.guarantee, epsilon=epsilon, error_bound=bound))


@pytest.mark.parametrize(
    ("invocations", "epsilon"),
    [
        ([use(Gaussian(1.0))], 4.377178),
        ([use(Gaussian(10.0), 2.0, REPLACE)], 0.725522),
        ([use(RandomizedResponse(0.5), relation=REPLACE, count=100)], 90.7815),
        ([use(Laplace(20.0), count=100)], 1.9477),
        ([use(Gaussian(1.0), count=1000, sampling=poisson(0.01))], 1.8282),
        ([use(Gaussian(1.0), count=1000, sampling=poisson(0.01), relation=ZeroOut())], 1.8282),
        ([use(Laplace(1.0), count=100, sampling=poisson(0.1))], 4.1523),
        ([use(DiscreteLaplace(3.0), 3.0, REPLACE, count=10)], 9.9978),
        ([use(Gaussian(4.0), count=1000, sampling=PoissonSampling(0.01, rows=5))], 1.5872),
        (
            [use(Gaussian(4.0), 2.0, REPLACE, count=1000, sampling=PoissonSampling(0.01, None, 1))],
            0.5614,
        ),
        ([use(ConcentratedBlackBox(0.1), count=10)], 7.077),
        ([use(Laplace(3.0), 3.0, MetricBall(2.0), count=10)], 10.0),
        ([use(Gaussian(3.0), count=10, group="a"), use(Laplace(2.0), group="b")], 4.653),
    ],
    ids=str,
)
def test_the_two_agree(invocations: Any, epsilon: float) -> None:
    found = opinion(*invocations)
    assert found.agrees is True
    assert not found.contradicts
    assert found.epsilon == pytest.approx(epsilon, rel=0.01)
    assert "they agree within 1%" in found.reason
    assert found.reason.count(". ") == 0


def test_an_upper_bound_of_theirs_that_is_larger_contradicts_nothing() -> None:
    found = opinion(use(Gaussian(5.0), 2.0, REPLACE, count=9, sampling=FixedSizeSampling(10, 100)))
    assert (found.agrees, found.accountant) == (True, "Rényi DP")
    assert "dpaudit's is" in found.reason
    assert "% tighter" in found.reason
    assert "dpaudit (pld) proves" in found.reason


def test_many_distinct_events_go_to_renyi_divergences() -> None:
    found = opinion(*(use(Gaussian(300.0 + step)) for step in range(300)))
    assert (found.agrees, found.accountant) == (True, "Rényi DP")


def test_an_epsilon_that_is_too_small_is_contradicted() -> None:
    found = second_opinion(stating(certificate(use(Gaussian(1.0))), 4.0))
    assert (found.agrees, found.contradicts) == (False, True)
    assert found.lower is not None
    assert 4.3 < found.lower <= 4.3772
    assert "they contradict each other" in found.reason


def test_an_epsilon_that_is_too_large_is_loose_and_no_contradiction() -> None:
    found = second_opinion(stating(certificate(use(Gaussian(1.0))), 5.0))
    assert (found.agrees, found.contradicts) == (True, False)
    assert "promises less than could be proved" in found.reason


def test_a_lower_end_that_is_too_large_is_a_disagreement() -> None:
    found = second_opinion(stating(certificate(use(Gaussian(1.0))), 5.0, 0.1))
    assert (found.agrees, found.contradicts) == (False, False)
    assert "no ε below 4.9 holds" in found.reason


def test_rounding_on_a_grid_is_no_contradiction() -> None:
    found = opinion(use(RandomizedResponse(0.9), relation=REPLACE, count=10_000))
    assert found.agrees is True
    assert found.lower is not None
    assert found.epsilon is not None
    assert found.lower <= found.ours[1] <= found.epsilon  # type: ignore[operator]
    assert "lower end" in found.reason


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (certificate(use(Laplace(1.0)), delta=0.0), "no finite ε at δ = 0"),
        (certificate(use(PureBlackBox(1.0), at="box")), "pure-black-box at 'box' has no DpEvent"),
        (certificate(use(Opaque("secret sauce", 1.0))), "proves no finite ε"),
        (certificate(use(Gaussian(1.0), 0.0)), "nothing that depends on the data"),
        (
            certificate(use(Laplace(1.0), count=10, sampling=FixedSizeSampling(1, 9))),
            "fixed-size sampled under add-remove",
        ),
        (
            certificate(*(use(DiscreteLaplace(300.0 + step)) for step in range(65))),
            "65 distinct events",
        ),
        (
            certificate(use(DiscreteLaplace(9e6), count=2 * 10**6, at="often")),
            "'often' occurs 2000000 times",
        ),
        (certificate(use(DiscreteLaplace(1.0), count=99), delta=1e-14), "δ = 1e-14 is below"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_why_there_is_none_is_one_sentence(made: Certificate, reason: str) -> None:
    found = second_opinion(made)
    assert (found.agrees, found.epsilon, found.accountant, found.contradicts) == (
        None,
        None,
        None,
        False,
    )
    assert reason in found.reason
    assert found.reason.startswith("dp-accounting ")
    assert found.reason.endswith(".")
    assert ".." not in found.reason


def test_work_of_minutes_is_refused_at_once() -> None:
    made = certificate(*(use(Gaussian(9.0 + step), sampling=poisson(0.1)) for step in range(80)))
    start = time.perf_counter()
    assert "80 distinct events" in second_opinion(made).reason
    assert time.perf_counter() - start < 5


def test_interleaved_events_are_counted_and_not_composed_one_by_one() -> None:
    mechanisms = (Gaussian(300.0), Laplace(500.0))
    found = opinion(*(use(mechanisms[step % 2], at=str(step)) for step in range(5500)))
    assert (found.agrees, found.accountant) == (True, "privacy loss distributions")


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    opinion(*(use(Gaussian(300.0 + step)) for step in range(300)))
    opinion(use(RandomizedResponse(0.9), relation=REPLACE, count=10_000))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_it_is_written_as_json_values() -> None:
    found = opinion(use(Gaussian(1.0)))
    record = found.to_dict()
    assert record["agrees"] is True
    assert record["delta"] == DELTA
    assert len(record["ours"]) == 2
