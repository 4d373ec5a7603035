from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import compose, guarantee
from dpaudit.accounting.guarantees import ParallelComposition
from dpaudit.accounting.parallel import undominated
from dpaudit.mechanisms import (
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.plan import Invocation


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
