"""Random allocation against integration, simulation and the bounds on either side of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from scipy.stats import binom, norm

from dpaudit.accounting import compose
from dpaudit.accounting.amplification import DirectedPair
from dpaudit.accounting.pld.allocation import allocated
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    DominatingPair,
    Gaussian,
    GaussianPair,
    Laplace,
    LaplacePair,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
)
from dpaudit.mechanisms.pairs import approximate_pair
from dpaudit.plan import Invocation, RandomAllocation, ReplaceOne, ZeroOut

EPSILONS = np.array([0.0, 0.1, 0.4, 0.9])


def both(base: DominatingPair, steps: int) -> tuple[DirectedPair, DirectedPair]:
    found = allocated(base, steps)
    assert found is not None
    return found


def epsilon(one: Invocation, delta: float = 1e-6) -> float:
    return compose(plan(one)).epsilon(delta).upper


def response(epsilon: float) -> Mechanism:
    return RandomizedResponse.calibrated(epsilon=epsilon, k=2)


@pytest.mark.parametrize("base", [GaussianPair(0.5), LaplacePair(Fraction(1))], ids=repr)
def test_of_one_step_it_is_the_release(base: DominatingPair) -> None:
    for pair in both(base, 1):
        excess = pair.delta(EPSILONS) - base.delta(EPSILONS)
        assert (excess >= 0).all()
        assert (excess <= 1e-3 * base.delta(0.0)).all()
        for above, below in zip(pair.above(EPSILONS), pair.below(EPSILONS), strict=True):
            np.testing.assert_allclose(above + below, 1, atol=1e-4)


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_of_two_steps_it_is_an_integral(mu: float) -> None:
    x = np.linspace(-9, 10, 1901)
    density = norm.pdf(x) * (x[1] - x[0])
    one = np.exp(mu * x - mu * mu / 2)
    ratio, mass = (one[:, None] + one) / 2, density[:, None] * density
    remove, add = both(GaussianPair(mu), 2)
    for e in EPSILONS:
        gains = float((np.maximum(ratio - math.exp(e), 0) * mass).sum())
        falls = float((np.maximum(1 - math.exp(e) * ratio, 0) * mass).sum())
        assert gains * (1 - 1e-6) <= float(remove.delta(e)) <= gains * 1.001 + 1e-6
        assert falls * (1 - 1e-6) <= float(add.delta(e)) <= falls * 1.001 + 1e-4


def test_of_many_steps_it_is_what_is_simulated() -> None:
    # Of 2e5 draws, six standard deviations: a false alarm of 2e-9 for each comparison.
    rng, steps, mu = np.random.default_rng(7), 12, 0.8
    ratio = np.exp(mu * rng.standard_normal((200_000, steps)) - mu * mu / 2).mean(axis=1)
    remove, add = both(GaussianPair(mu), steps)
    for e in EPSILONS:
        cases = [
            (remove, np.maximum(ratio - math.exp(e), 0)),
            (add, np.maximum(1 - math.exp(e) * ratio, 0)),
        ]
        for pair, drawn in cases:
            error = 6 * drawn.std() / math.sqrt(drawn.size) + 1e-5
            assert float(pair.delta(e)) == pytest.approx(drawn.mean(), abs=error)


@pytest.mark.parametrize(
    ("sigma", "steps", "epochs"), [(1.0, 100, 10), (4.0, 1000, 1), (2.0, 10, 4)]
)
def test_an_epoch_costs_no_more_than_one_release(sigma: float, steps: int, epochs: int) -> None:
    count = steps * epochs
    drawn = use(Gaussian(sigma), count=count, sampling=RandomAllocation(steps))
    sampled = use(Gaussian(sigma), count=count, sampling=poisson(1 / steps))
    # Of these the allocation costs less than the Poisson samples of the same rate.
    assert epsilon(drawn) < epsilon(sampled)
    assert epsilon(drawn) < epsilon(use(Gaussian(sigma), count=epochs)) / 2
    assert compose(plan(drawn)).epsilon(1e-6).lower is None


@pytest.mark.parametrize("sigma", [1e-3, 0.3, 1e9])
def test_at_the_ends_it_is_one_release(sigma: float) -> None:
    drawn = use(Gaussian(sigma), count=200, sampling=RandomAllocation(100))
    assert 0 <= epsilon(drawn) <= epsilon(use(Gaussian(sigma), count=2)) * (1 + 1e-3)


def test_replaced_units_cost_one_release_each_epoch() -> None:
    for mechanism, relation in (
        (Gaussian(2.0), ReplaceOne()),
        (RandomizedResponse(0.5), ZeroOut()),
    ):
        drawn = use(mechanism, 1.0, relation, count=30, sampling=RandomAllocation(10))
        whole = use(mechanism, 1.0, relation, count=3)
        assert epsilon(drawn) == pytest.approx(epsilon(whole), rel=1e-3)


def test_pure_losses_are_those_of_one_release() -> None:
    drawn = use(Laplace(2.0), count=30, sampling=RandomAllocation(10))
    assert epsilon(drawn, 0.0) == 1.5
    assert epsilon(use(Laplace(2.0), count=5, sampling=RandomAllocation(1))) == epsilon(
        use(Laplace(2.0), count=5)
    )


def test_epochs_are_whole() -> None:
    with pytest.raises(InputError, match="count is 5; with random allocation it must be a mult"):
        use(Gaussian(1.0), count=5, sampling=RandomAllocation(2))


@pytest.mark.parametrize(("steps", "times"), [(12, 3), (13, 4), (10, 10), (10, 6)])
def test_of_several_times_each_has_a_part_of_its_own(steps: int, times: int) -> None:
    drawn = use(Gaussian(2.0), count=2 * steps, sampling=RandomAllocation(steps, times))
    part = steps // times
    once = use(Gaussian(2.0), count=2 * times * part, sampling=RandomAllocation(part))
    assert epsilon(drawn) == epsilon(once)
    assert epsilon(drawn) <= epsilon(use(Gaussian(2.0), count=2 * times))
    assert compose(plan(drawn)).epsilon(1e-6).lower is None


def test_of_several_times_it_is_above_what_is_simulated() -> None:
    """All sets of 2 of 6 releases, of 4e5 draws; six standard deviations, a false alarm of 1e-9."""
    rng, mu = np.random.default_rng(11), 1.0
    gains = np.exp(mu * rng.standard_normal((400_000, 6)) - mu * mu / 2)
    sums, squares = gains.sum(axis=1), (gains**2).sum(axis=1)
    ratio = (sums**2 - squares) / 2 / math.comb(6, 2)
    proved = compose(plan(use(Gaussian(1.0), count=6, sampling=RandomAllocation(6, 2))), "pld")
    for e in EPSILONS:
        for drawn in (np.maximum(ratio - math.exp(e), 0), np.maximum(1 - math.exp(e) * ratio, 0)):
            error = 6 * drawn.std() / math.sqrt(drawn.size)
            assert float(proved.delta(float(e)).upper) >= drawn.mean() - error
    assert proved.delta(0.1).upper < 1.35 * np.maximum(ratio - math.exp(0.1), 0).mean()


def chosen(epsilon: float, delta: float) -> float:
    """The least ε of one of two responses, by all pairs of answers."""
    high = math.exp(epsilon)
    ratio = np.array([high, 1 / high])
    mass = np.array([1, high]) / (1 + high)
    means, masses = np.add.outer(ratio, ratio).ravel() / 2, np.multiply.outer(mass, mass).ravel()

    def exceeds(asked: float) -> bool:
        gains = masses @ np.maximum(means - math.exp(asked), 0)
        return bool(max(gains, masses @ np.maximum(1 - math.exp(asked) * means, 0)) > delta)

    grid = np.linspace(0, epsilon, 20_001)
    return float(max([one for one in grid if exceeds(one)], default=0.0))


@pytest.mark.parametrize("kind", [PureBlackBox, response])
def test_a_law_of_many_outcomes_is_no_other(kind: Callable[[float], Mechanism]) -> None:
    """Both directions count, and a cheap mechanism beside a dear one does not stand for it."""
    assert chosen(3.0, 1e-3) == pytest.approx(2.9989, abs=1e-3)
    assert chosen(3.0, 0.3) == pytest.approx(2.598, abs=1e-3)
    pair = RandomAllocation(2)
    cheap, dear = (use(kind(one), count=2, sampling=pair) for one in (0.01, 3.0))
    for both_ways in ((cheap, dear), (dear, cheap), (dear,)):
        for delta in (1e-3, 0.3):
            for name in ("best", "pld"):
                found = compose(plan(*both_ways), name).epsilon(delta).upper
                assert found >= chosen(3.0, delta) * (1 - 1e-3)
            assert compose(plan(*both_ways)).epsilon(delta).upper <= 3.011


@pytest.mark.parametrize(
    ("mechanism", "steps", "epochs", "most"),
    [
        (Gaussian(30.0), 1000, 10**5, 1.001),
        (Gaussian(10.0), 100, 10**6, 1.001),
        (Gaussian(4.0), 1000, 1, 1.0),
        (Gaussian(1.0), 100, 10, 1.0),
        (Laplace(10.0), 100, 1000, 1.001),
        (ApproximateBlackBox(1.0, 1e-12), 50, 20, 1.05),
    ],
    ids=str,
)
def test_it_costs_about_what_poisson_samples_of_its_rate_do(
    mechanism: Mechanism, steps: int, epochs: int, most: float
) -> None:
    count = steps * epochs
    drawn = use(mechanism, count=count, sampling=RandomAllocation(steps))
    assert epsilon(drawn) <= most * epsilon(
        use(mechanism, count=count, sampling=poisson(1 / steps))
    )


@pytest.mark.parametrize("steps", [2, 3, 20, 400])
@pytest.mark.parametrize("loss", [0.05, 1.0, 6.0])
def test_of_one_of_two_answers_it_is_a_binomial_sum(loss: float, steps: int) -> None:
    number = np.arange(steps + 1)
    low = 1 / (1 + math.exp(-loss))  # of Q
    mass = binom.pmf(number, steps, 1 - low)
    ratio = (number * math.exp(loss) + (steps - number) * math.exp(-loss)) / steps
    remove, add = both(approximate_pair(loss), steps)
    for e in np.linspace(0, loss, 9)[:-1]:
        gains = float(mass @ np.maximum(ratio - math.exp(e), 0))
        falls = float(mass @ np.maximum(1 - math.exp(e) * ratio, 0))
        for pair, true in ((remove, gains), (add, falls)):
            assert true * (1 - 1e-9) <= float(pair.delta(e)) <= true * (1 + 1e-6) + 1e-9


def test_times_are_at_most_the_steps() -> None:
    with pytest.raises(InputError, match="times is 4; it must be at most the steps, 3"):
        RandomAllocation(3, 4)
    assert RandomAllocation(3, 1) == RandomAllocation(3)
    assert RandomAllocation(3, 2).inclusion == 2 / 3
