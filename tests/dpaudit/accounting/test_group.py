"""Groups of units, and units in disjoint groups."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import at_radius, compose, for_group, guarantee, swapped
from dpaudit.accounting.guarantees import ParallelComposition, undominated
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ConcentratedBlackBox,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.mechanisms.continual import BinaryTree, ContinualLaplace
from dpaudit.plan import (
    FixedSizeSampling,
    Invocation,
    MetricBall,
    Plan,
    PoissonSampling,
    ReplaceOne,
)


def epsilon(found: Plan, delta: float = 0.0, accountant: str = "best") -> float:
    return compose(found, accountant).epsilon(delta).upper


def test_shifts_scale_with_the_group() -> None:
    rows = plan(use(Laplace(10.0)), use(DiscreteLaplace(10.0)))
    assert epsilon(for_group(rows, 3)) == pytest.approx(0.6, abs=1e-15)
    trained = plan(use(Gaussian(10.0), count=4))
    direct = plan(use(Gaussian(10.0), 3.0, count=4))
    assert epsilon(for_group(trained, 3), 1e-6) == epsilon(direct, 1e-6)


def test_a_group_of_one_is_the_plan() -> None:
    rows = plan(use(RandomizedResponse(0.5)), use(Laplace(3.0), sampling=poisson(0.5)))
    assert epsilon(for_group(rows, 1)) == epsilon(rows)


def test_others_get_what_is_proved_of_any_mechanism() -> None:
    answer = plan(use(RandomizedResponse(0.5)))
    assert epsilon(for_group(answer, 2)) == pytest.approx(2 * math.log(3), rel=1e-12)
    sampled = plan(use(Laplace(1.0), sampling=poisson(0.1)))
    assert epsilon(for_group(sampled, 2)) == pytest.approx(
        2 * math.log1p(0.1 * math.expm1(1)), rel=1e-12
    )
    box = for_group(plan(use(ApproximateBlackBox(0.5, 1e-6))), 2).invocations[0].mechanism
    assert isinstance(box, ApproximateBlackBox)
    assert box.epsilon == 1.0
    assert box.delta == pytest.approx(1e-6 * math.expm1(1.0) / math.expm1(0.5))
    concentrated = for_group(plan(use(ConcentratedBlackBox(0.1))), 3).invocations[0].mechanism
    assert isinstance(concentrated, ConcentratedBlackBox)
    assert concentrated.rho == pytest.approx(0.9)


def test_a_group_of_sampled_rows_is_a_unit_of_so_many() -> None:
    sampled = plan(use(Gaussian(4.0), sampling=poisson(0.01), count=100, at="sgd"))
    direct = plan(use(Gaussian(4.0), sampling=PoissonSampling(0.01, rows=6), count=100))
    assert epsilon(for_group(for_group(sampled, 2), 3), 1e-5) == epsilon(direct, 1e-5)
    loose = plan(use(Gaussian(4.0), 2.0, ReplaceOne(), sampling=FixedSizeSampling(1, 100)))
    most = plan(use(Gaussian(4.0), 6.0, ReplaceOne(), sampling=FixedSizeSampling(3, 100)))
    assert epsilon(for_group(loose, 3), 1e-5) == epsilon(most, 1e-5)


def test_sampled_units_that_take_part_at_different_times_have_no_theorem_for_groups() -> None:
    sampled = plan(use(Gaussian(1.0), sampling=poisson(0.1), at="sgd", total=2))
    with pytest.raises(UnsupportedError, match="gaussian at 'sgd': no theorem for groups"):
        for_group(sampled, 2)


def test_a_swapped_unit_is_no_group_of_two_where_it_is_sampled() -> None:
    sampled = plan(use(Gaussian(4.0), sampling=poisson(0.01), count=1000))
    assert epsilon(swapped(sampled), 1e-5) == pytest.approx(0.5614, abs=1e-4)
    assert epsilon(for_group(sampled, 2), 1e-5) == pytest.approx(0.5797, abs=1e-4)
    mixed = plan(use(Laplace(4.0)), use(RandomizedResponse(0.5)), use(Gaussian(9.0)))
    assert epsilon(swapped(mixed), 1e-5) == epsilon(for_group(mixed, 2), 1e-5)


def test_a_group_may_be_spread_over_disjoint_sets() -> None:
    same = plan(use(Laplace(2.0), group="a"), use(Laplace(2.0), group="b"))
    assert epsilon(for_group(same, 4)) == 2.0
    differ = plan(use(Laplace(2.0), group="a"), use(Gaussian(2.0), group="b"))
    with pytest.raises(UnsupportedError, match="treats disjoint sets of units differently"):
        for_group(differ, 2)


def test_a_ball_may_grow_and_shrink() -> None:
    near = plan(use(Laplace(2.0), 1.0, MetricBall(1.0)))
    assert epsilon(at_radius(near, 3.0)) == epsilon(at_radius(near, 2.1)) == 1.5
    assert epsilon(at_radius(near, 0.5)) == 0.5
    assert at_radius(near, 3.0).relation == MetricBall(3.0)
    answer = plan(use(RandomizedResponse(0.5), relation=MetricBall(1.0), group="a"))
    assert epsilon(at_radius(answer, 2.0)) == pytest.approx(2 * math.log(3), rel=1e-12)
    assert at_radius(answer, 2.0).invocations[0].group == answer.invocations[0].group


def test_a_clip_that_is_reached_says_nothing_of_smaller_distances() -> None:
    """The value itself, within [−1, 1]: at distance 1 it moves by 1, and 10 times that by 2."""
    far = plan(use(Laplace(1.0, clip=(-1.0, 1.0)), 2.0, MetricBall(10.0)))
    assert 1 <= epsilon(at_radius(far, 1.0)) == 2


def test_a_ball_needs_its_relation() -> None:
    with pytest.raises(InputError, match="needs a metric-ball"):
        at_radius(plan(use(Laplace(2.0))), 2.0)
    whole = plan(use(DiscreteLaplace(2.0), relation=MetricBall(1.0)))
    assert epsilon(at_radius(whole, 2.0)) == 1


def test_a_group_moves_a_stream_as_far_as_its_members_together() -> None:
    noise = ContinualLaplace(scale=6.0, factorization=BinaryTree(4), participations=1)
    assert epsilon(for_group(plan(use(noise)), 3)) == pytest.approx(1)
    replaced = plan(use(noise, relation=ReplaceOne()))
    assert epsilon(for_group(replaced, 3)) == pytest.approx(2)


def grouped(mechanism: Mechanism, group: str, **how: object) -> Invocation:
    return replace(use(mechanism, **how), group=group)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("weak", "strong"),
    [
        (Gaussian(3.0), Gaussian(2.0)),
        (Laplace(3.0), Laplace(2.0)),
        (PureBlackBox(0.4), PureBlackBox(0.5)),
        (ExponentialMechanism(0.4), ExponentialMechanism(0.5)),
        (RandomizedResponse(0.5, 3), RandomizedResponse(0.4, 3)),
    ],
)
@pytest.mark.parametrize("sampled", [False, True])
def test_a_weaker_member_of_a_family_is_left_out(
    weak: Mechanism, strong: Mechanism, sampled: bool
) -> None:
    sampling = poisson(0.1) if sampled else None
    groups = [
        [grouped(weak, "a", count=3, sampling=sampling)],
        [grouped(strong, "b", count=3, sampling=sampling)],
    ]
    assert undominated(groups) == [groups[1]]
    assert undominated(groups[::-1]) == [groups[1]]
    every = np.array([0.01, 0.3])
    curves = [np.asarray(compose(plan(*each), "pld").deltas(every)) for each in groups]
    assert (curves[0] <= curves[1] * (1 + 1e-2) + 1e-12).all()


def test_what_differs_otherwise_is_kept() -> None:
    groups = [
        [grouped(Gaussian(2.0), "a")],
        [grouped(Gaussian(3.0), "b", count=2)],
        [grouped(Gaussian(3.0), "c", sampling=poisson(0.5))],
        [grouped(Laplace(9.0), "d")],
        [grouped(RandomizedResponse(0.5, 2), "e")],
        [grouped(RandomizedResponse(0.6, 3), "f")],
        [grouped(Gaussian(4.0), "g"), grouped(Laplace(2.0), "g")],
        [grouped(Gaussian(3.0), "h"), grouped(Laplace(3.0), "h")],
    ]
    assert undominated(groups) == groups


def test_equal_groups_count_once_and_shared_uses_are_compared() -> None:
    shared = use(Gaussian(5.0))
    groups = [[shared, grouped(RandomizedResponse(p), f"g{p}")] for p in (0.3, 0.2, 0.3, 0.6, 0.2)]
    assert undominated(groups) == [groups[1]]


def test_many_groups_cost_what_the_worst_one_does() -> None:
    rates = np.random.default_rng(3).uniform(0.1, 0.9, 300)
    groups = [grouped(RandomizedResponse(float(p)), f"g{i}") for i, p in enumerate(rates)]
    whole = guarantee(plan(*groups), 0.0, "pure")
    alone = guarantee(plan(use(RandomizedResponse(float(rates.min())))), 0.0, "pure")
    assert whole.epsilon == alone.epsilon
    assert whole.curve == alone.curve


def test_groups_of_different_kinds_stay_in_parallel() -> None:
    whole = compose(plan(grouped(Gaussian(2.0), "a"), grouped(Laplace(2.0), "b")), "rdp")
    assert isinstance(whole, ParallelComposition)
    assert len(whole.groups) == 2
