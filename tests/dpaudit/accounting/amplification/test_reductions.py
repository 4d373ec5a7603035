"""Schemes that others cover: allocations, streams, draws, and groups that take turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import compose, for_group, guarantee
from dpaudit.accounting.amplification import cover, fallback
from dpaudit.accounting.terms import directed
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    BandedToeplitz,
    ConcentratedBlackBox,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    Opaque,
    PureBlackBox,
    RandomizedResponse,
    SquareRootToeplitz,
)
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian, ContinualLaplace
from dpaudit.plan import (
    AddRemove,
    CyclicPoissonSampling,
    FixedSizeSampling,
    Invocation,
    MetricBall,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    ReplaceOne,
    Sampling,
    TrustModel,
    ZeroOut,
)

# What stands for invocations without a theorem, against enumeration of data sets and samples

Data = tuple[tuple[int, int], ...]
"""Numbered units with their values."""
VALUES = (-1, 0, 2)
UNITS = 3
RELATIONS = (AddRemove(), ReplaceOne(), ZeroOut(), MetricBall(1.0))
SAMPLINGS = (None, poisson(0.3), FixedSizeSampling(1, 3), FixedSizeSampling(2, 3))
EPSILONS = np.linspace(-2.5, 2.5, 26)


def neighbours(relation: Relation, units: int) -> Iterator[tuple[Data, Data]]:
    for values in product(VALUES, repeat=units):
        data = tuple(enumerate(values))
        for unit, value in data:
            before, after = data[:unit], data[unit + 1 :]
            if isinstance(relation, AddRemove):
                yield data, before + after
                continue
            for other in VALUES:
                far = isinstance(relation, MetricBall) and abs(other - value) > relation.radius
                if not (far or other == value or (isinstance(relation, ZeroOut) and other)):
                    yield data, (*before, (unit, other), *after)


def samples(data: Data, sampling: Sampling | None) -> Iterator[tuple[Data, float]]:
    if isinstance(sampling, PoissonSampling):
        for drawn in product((0, 1), repeat=len(data)):
            chance = math.prod(sampling.rate if one else 1 - sampling.rate for one in drawn)
            yield tuple(each for each, one in zip(data, drawn, strict=True) if one), chance
    elif isinstance(sampling, FixedSizeSampling):
        subsets = list(combinations(data, sampling.size))
        yield from ((subset, 1 / len(subsets)) for subset in subsets)
    else:
        yield data, 1.0


def farthest(query: Callable[[Data], np.ndarray], relation: Relation, norm: float) -> float:
    """The sensitivity, on data of any size."""
    pairs = (pair for units in range(1, UNITS + 1) for pair in neighbours(relation, units))
    return max(float(np.linalg.norm(query(a) - query(b), norm)) for a, b in pairs)


def noisy_sum(relation: Relation) -> tuple[Invocation, Callable[[Data], np.ndarray]]:
    def total(data: Data) -> np.ndarray:
        return np.array([sum(value for _, value in data)])

    noise, reach, decay = DiscreteLaplace(1.5), np.arange(-70, 71), math.exp(-1 / 1.5)

    def law(data: Data) -> np.ndarray:
        return (1 - decay) / (1 + decay) * decay ** np.abs(reach - total(data))

    return use(noise, farthest(total, relation, 1), relation), law


def odd_answer(relation: Relation) -> tuple[Invocation, Callable[[Data], np.ndarray]]:
    """A randomised answer to a question that no distance orders."""
    table = np.random.default_rng(3).integers(0, 3, (4, 8))
    answer = RandomizedResponse(0.4, 3)

    def law(data: Data) -> np.ndarray:
        asked = table[len(data), sum((place + 2) * value for place, value in data) % 8]
        return np.array([float(each) for each in answer.probabilities(asked)])

    return use(answer, 1.0, relation), law


def best_candidate(relation: Relation) -> tuple[Invocation, Callable[[Data], np.ndarray]]:
    def votes(data: Data) -> np.ndarray:
        return np.array([sum(value == each for _, value in data) for each in VALUES], dtype=float)

    choice = ExponentialMechanism(1.2, farthest(votes, relation, np.inf))
    return use(choice, 1.0, relation), lambda data: np.array(choice.probabilities(votes(data)))


@pytest.mark.parametrize("released", [noisy_sum, odd_answer, best_candidate])
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_pair_of_neighbours_costs_more(
    relation: Relation, sampling: Sampling | None, released: Callable[..., object]
) -> None:
    """Both directed pairs dominate at every ε, negative ones too, so that they compose."""
    declared, law = released(relation)  # type: ignore[misc]
    declared = replace(declared, sampling=sampling)
    laws: dict[Data, np.ndarray] = {}

    def release(data: Data) -> np.ndarray:
        if data not in laws:
            laws[data] = sum(chance * law(drawn) for drawn, chance in samples(data, sampling))
        return laws[data]

    pairs = list(neighbours(relation, UNITS))
    p, q = (np.array([release(pair[side]) for pair in pairs])[:, None] for side in (0, 1))
    odds = np.exp(EPSILONS)[:, None]
    remove, add = directed(declared)
    leaving = np.maximum(p - odds * q, 0).sum(axis=2).max(axis=0)
    joining = np.maximum(q - odds * p, 0).sum(axis=2).max(axis=0)
    assert (leaving <= remove.delta(EPSILONS) + 1e-9).all()
    assert (joining <= add.delta(EPSILONS) + 1e-9).all()
    at = EPSILONS >= 0
    for accountant in ("pure", "zcdp", "rdp", "moments"):
        with suppress(UnsupportedError):  # moments know no subsets
            composed = compose(plan(declared), accountant)
        proved = composed.deltas(EPSILONS[at])
        assert (np.maximum(leaving, joining)[at] <= proved + 1e-9).all()


def test_without_a_need_an_invocation_stands_for_itself() -> None:
    for declared in (
        use(Gaussian(1.0), relation=ReplaceOne()),
        use(Gaussian(1.0), relation=ZeroOut(), sampling=poisson(0.1)),
        use(Gaussian(1.0), relation=ReplaceOne(), sampling=FixedSizeSampling(1, 3)),
        use(Gaussian(1.0), 0.0, sampling=FixedSizeSampling(1, 3)),
        use(PureBlackBox(1.0), 0.0, relation=ReplaceOne(), sampling=poisson(0.1)),
    ):
        assert cover(declared) is declared
        assert fallback(declared) is None


@pytest.mark.parametrize(
    ("mechanism", "two"),
    [
        (Laplace(1.0), Laplace(1.0)),
        (PureBlackBox(0.5), PureBlackBox(1.0)),
        (ConcentratedBlackBox(0.5), ConcentratedBlackBox(2.0)),
        (ExponentialMechanism(0.5), PureBlackBox(1.0)),
    ],
)
def test_another_unit_in_the_place_of_one_is_two_steps(mechanism: Mechanism, two: object) -> None:
    declared = use(mechanism, sampling=FixedSizeSampling(1, 4), at="here")
    instead = cover(declared)
    assert (instead.mechanism, instead.sampling) == (two, poisson(0.25))
    assert instead.sensitivity == (2 if mechanism == two else 1)
    said = fallback(declared)
    assert said is not None
    assert "two changes of the data" in said[0]


def test_two_steps_of_a_failure_are_more_than_two_failures() -> None:
    box = cover(use(ApproximateBlackBox(0.5, 1e-6), sampling=FixedSizeSampling(1, 4))).mechanism
    assert isinstance(box, ApproximateBlackBox)
    assert box.delta == pytest.approx(1e-6 * (1 + math.exp(0.5)))
    lost = use(Opaque("x", 1.0), sampling=FixedSizeSampling(1, 4), at="here")
    with pytest.raises(UnsupportedError, match="opaque at 'here' has fixed-size"):
        cover(lost)


TREE = ContinualGaussian(sigma=1.0, factorization=BinaryTree(64), participations=1)


def test_a_replaced_unit_may_take_part_at_another_step() -> None:
    """Values in [0, 1]: the one of the first half of the steps goes, one of the second comes."""
    tree = BinaryTree(64)
    moved = float(np.linalg.norm(tree.encoder()[:, 0] - tree.encoder()[:, 32]))
    assert moved == pytest.approx(math.sqrt(12))
    composed = compose(plan(use(TREE, relation=ReplaceOne())), "gaussian")
    assert moved <= composed.native["mu"] <= moved * (1 + 1e-12)
    shared = replace(TREE, fixed_steps=True)
    for declared in (use(TREE), use(TREE, relation=ZeroOut()), use(shared, relation=ReplaceOne())):
        mu = compose(plan(declared), "gaussian").native["mu"]
        assert mu == pytest.approx(math.sqrt(6))
        assert fallback(declared) is None
    said = fallback(use(TREE, relation=MetricBall(1.0)))
    assert said is not None
    assert "1.414 times" in said[0]
    assert "fixed_steps" in said[1]
    laplace = ContinualLaplace(scale=1.0, factorization=tree, participations=1)
    assert compose(plan(use(laplace, relation=ReplaceOne()))).epsilon(0).upper == 12


def test_in_a_subset_another_unit_brings_its_own_steps() -> None:
    """Whoever is drawn in the place of a unit contributes at steps of its own, fixed or not."""
    shared = replace(TREE, fixed_steps=True)
    drawn = use(shared, relation=ReplaceOne(), sampling=FixedSizeSampling(1, 4))
    assert cover(drawn).sensitivity == pytest.approx(math.sqrt(2))


def test_whose_sample_is_known_says_what_would_help() -> None:
    said = fallback(use(Gaussian(1.0), relation=ReplaceOne(), sampling=poisson(0.1)))
    assert said is not None
    assert "poisson samples under replace-one" in said[0]
    assert "with probability 0.1" in said[0]
    assert "add-remove" in said[1]


# Groups that take turns in a stream, against composed sampled releases and the noise itself


def stream(factorization=None, turns=8, groups=4, sigma=2.0, **facts) -> ContinualGaussian:
    own = factorization or BandedToeplitz(turns * groups, groups)
    return ContinualGaussian(
        sigma=sigma, factorization=own, participations=turns, min_separation=groups, **facts
    )


def epsilon(one: Invocation, delta: float = 1e-6) -> float:
    return compose(plan(one)).epsilon(delta).upper


@pytest.mark.parametrize("rate", [0.01, 0.3])
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_it_is_so_many_sampled_releases_of_a_column(rate, accountant):
    drawn = use(stream(), sampling=CyclicPoissonSampling(rate, 4))
    column = math.sqrt(1 + 0.5**2 + 0.375**2 + 0.3125**2)
    apart = use(Gaussian(2.0 / column), count=8, sampling=poisson(rate))
    found, other = (compose(plan(one), accountant).epsilon(1e-6).upper for one in (drawn, apart))
    assert found == pytest.approx(other, rel=1e-6)
    whole = compose(plan(use(stream())), accountant).epsilon(1e-6).upper
    assert found < 0.7 * whole
    assert compose(plan(drawn), accountant).epsilon(1e-6).lower is None


def test_dp_accounting_agrees():
    from dp_accounting.pld import privacy_loss_distribution as pld

    column = math.sqrt(1 + 0.5**2 + 0.375**2 + 0.3125**2)
    one = pld.from_gaussian_mechanism(2.0 / column, sampling_prob=0.1)
    theirs = one.self_compose(8).get_epsilon_for_delta(1e-6)
    drawn = use(stream(), sampling=CyclicPoissonSampling(0.1, 4))
    assert epsilon(drawn) == pytest.approx(theirs, rel=1e-3)


def test_two_turns_are_a_likelihood_ratio_of_the_real_noise():
    """δ(ε) of both coins, from the density of C x + z: of 4e5 draws, false alarm 1e-8."""
    banded, rate, sigma = BandedToeplitz(4, 2), 0.4, 1.0
    columns = banded.encoder()[:, [0, 2]].T / sigma
    rng, size = np.random.default_rng(3), 400_000
    noise, coins = rng.standard_normal((size, 4)), rng.random((size, 2)) < rate

    def ratio(nodes):
        parts = np.zeros(len(nodes))
        for coin in ((0, 0), (0, 1), (1, 0), (1, 1)):
            mean = np.array(coin) @ columns
            weight = np.prod([rate if one else 1 - rate for one in coin])
            parts += weight * np.exp(nodes @ mean - mean @ mean / 2)
        return parts

    present = ratio(noise + coins @ columns)
    mechanism = stream(banded, 2, 2, sigma)
    proved = compose(plan(use(mechanism, sampling=CyclicPoissonSampling(rate, 2))), "pld")
    for e in (0.2, 0.5, 1.0):
        lost = np.maximum(1 - math.exp(e) / present, 0)
        assert proved.delta(e).upper == pytest.approx(
            lost.mean(), abs=6 * lost.std() / math.sqrt(size) + 1e-5
        )


@pytest.mark.parametrize(
    ("mechanism", "relation"),
    [
        (stream(SquareRootToeplitz(32)), ZeroOut()),
        (stream(BinaryTree(32)), ZeroOut()),
        (stream(BandedToeplitz(32, 5)), ZeroOut()),
        (stream(), ReplaceOne()),
        (stream(), MetricBall(1.0)),
    ],
)
def test_what_no_theorem_amplifies_counts_as_drawn_and_says_so(mechanism, relation):
    drawn = use(mechanism, 1.0, relation, sampling=CyclicPoissonSampling(0.1, 4))
    assert epsilon(drawn) == epsilon(use(mechanism, 1.0, relation))
    found = fallback(drawn)
    assert found is not None
    assert "as drawn" in found[0]


def test_replaced_units_of_one_group_are_drawn_as_is_known():
    fixed = stream(fixed_steps=True)
    drawn = use(fixed, 1.0, ReplaceOne(), sampling=CyclicPoissonSampling(0.1, 4))
    whole = epsilon(use(fixed, 1.0, ReplaceOne()))
    assert epsilon(use(stream(), sampling=CyclicPoissonSampling(0.1, 4))) < epsilon(drawn) < whole


def test_the_ends_are_streams_without_coins():
    sure = use(stream(), sampling=CyclicPoissonSampling(1.0, 4))
    assert epsilon(sure) == epsilon(use(stream()))
    assert fallback(sure) is None
    drawn = ContinualLaplace(
        scale=9.0, factorization=BandedToeplitz(8, 2), participations=4, min_separation=2
    )
    turn = 1.5 / 9.0
    pure = epsilon(use(drawn, sampling=CyclicPoissonSampling(0.1, 2)), 0.0)
    assert pure == pytest.approx(4 * math.log1p(0.1 * math.expm1(turn)), rel=1e-12)


def test_of_two_units_each_turn_counts():
    banded = BandedToeplitz(8, 2)
    noise = ContinualLaplace(scale=9.0, factorization=banded, participations=4, min_separation=2)
    drawn = plan(use(noise, sampling=CyclicPoissonSampling(0.1, 2)))
    assert for_group(drawn, 2).invocations[0].count == 4
    one, two = (compose(each).epsilon(0.0).upper for each in (drawn, for_group(drawn, 2)))
    assert two == pytest.approx(2 * one, rel=1e-9)


def test_patterns_that_the_stream_cannot_have_are_refused():
    coins = CyclicPoissonSampling(0.1, 4)
    with pytest.raises(InputError, match="gaussian has no steps that groups take in turn"):
        use(Gaussian(1.0), sampling=coins)
    with pytest.raises(InputError, match="they must be 8 and 4"):
        use(stream(BandedToeplitz(32, 4), 7), sampling=coins)


@pytest.mark.parametrize("relation", [ReplaceOne(), MetricBall(1.0)])
def test_a_stream_of_replaced_units_in_samples_of_known_contribution_has_a_guarantee(
    relation: Relation,
) -> None:
    """What is counted in its place has a longer distance than its sample's parts may have."""
    stream = ContinualGaussian(factorization=SquareRootToeplitz(16), sigma=2.0, participations=3)
    sampling = PoissonSampling(0.1, contribution=0.5)
    facts = PrivacyUnit("row"), relation, TrustModel.CENTRAL
    found = guarantee(Plan.of(Invocation(stream, 1.0, *facts, sampling=sampling)), 1e-5)
    assert found.epsilon < math.inf
