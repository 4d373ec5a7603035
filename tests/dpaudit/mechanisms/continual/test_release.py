"""Streams of Gaussian and Laplace noise."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    BinaryTree,
    BufferedToeplitz,
    ContinualGaussian,
    ContinualLaplace,
    HonakerTree,
    Mechanism,
    SquareRootToeplitz,
)
from dpaudit.plan import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel

SQUARE = (
    BinaryTree(8),
    BinaryTree(6),
    SquareRootToeplitz(7),
    BufferedToeplitz(7, (0.1, 1), (0.3,)),
)
ALL = (*SQUARE, HonakerTree(8), HonakerTree(8, release_root=True), HonakerTree(1))
each = pytest.mark.parametrize("factorization", ALL, ids=lambda f: f"{f.kind}-{f.steps}")


def gaussian(factorization, **fields):
    return ContinualGaussian(
        **{"sigma": 1.7, "factorization": factorization, "participations": 1} | fields
    )


@each
@pytest.mark.parametrize("symmetric", [False, True])
def test_batch_and_stream_are_the_same_release(factorization, symmetric):
    mechanism = gaussian(factorization, symmetric=symmetric)
    value = np.random.default_rng(0).normal(size=(factorization.steps, 3, 3))
    value += np.swapaxes(value, 1, 2)
    batch = mechanism.release(value, np.random.default_rng(1))
    stream = mechanism.start((3, 3), np.random.default_rng(1))
    np.testing.assert_allclose(batch, [stream.add(step) for step in value], rtol=1e-12)
    if symmetric:
        np.testing.assert_array_equal(batch, np.swapaxes(batch, 1, 2))


@each
def test_calibration_meets_its_target(factorization):
    pattern = {"participations": 3, "min_separation": 2}
    for symmetric in (False, True):
        mechanism = ContinualGaussian.calibrated(
            epsilon=1.0, delta=1e-5, sensitivity=0.7, factorization=factorization,
            symmetric=symmetric, **pattern,
        )  # fmt: skip
        assert 1e-5 * (1 - 1e-9) < mechanism.pair(0.7).delta(1.0) <= 1e-5
    laplace = ContinualLaplace.calibrated(
        epsilon=0.3, sensitivity=0.7, factorization=factorization, **pattern
    )
    assert 0.3 * (1 - 1e-12) < laplace.pair(0.7).pure_epsilon <= Fraction(0.3)


@each
def test_plan_round_trips_through_json(factorization):
    mechanisms = (
        gaussian(factorization, participations=2, min_separation=3, symmetric=True),
        ContinualLaplace(scale=0.5, factorization=factorization, participations=1),
    )
    declared = [
        Invocation(mechanism, 1.5, PrivacyUnit("user"), ReplaceOne(), TrustModel.JOINT)
        for mechanism in mechanisms
    ]
    plan = Plan.of(*declared)
    again = Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert again.hash == plan.hash
    for mechanism in mechanisms:
        assert Mechanism.parse(mechanism.to_dict()) == mechanism


def test_stream_refuses_before_it_draws():
    rng = np.random.default_rng(0)
    stream = gaussian(BinaryTree(2), symmetric=True).start((2, 2), rng)
    stream.add(np.eye(2))
    before = rng.bit_generator.state
    for wrong, message in (
        (np.ones(2), "shape"),
        (np.full((2, 2), np.nan), "NaN"),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), "not symmetric"),
    ):
        with pytest.raises(InputError, match=message):
            stream.add(wrong)
    assert rng.bit_generator.state == before
    stream.add(np.eye(2))
    before = rng.bit_generator.state
    with pytest.raises(InputError, match="steps is 2 and all"):
        stream.add(np.eye(2))
    assert rng.bit_generator.state == before


def test_batch_refuses_before_it_draws():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    for value in (np.zeros(3), 1.0, np.zeros((0, 2)), np.array([0.0, np.inf])):
        with pytest.raises(InputError, match="value has"):
            gaussian(BinaryTree(2)).release(value, rng)
    with pytest.raises(InputError, match="not symmetric"):
        gaussian(BinaryTree(2), symmetric=True).release([[[0, 1], [0, 0]]], rng)
    with pytest.raises(InputError, match="square matrices"):
        gaussian(BinaryTree(2), symmetric=True).release([[0, 1]], rng)
    assert rng.bit_generator.state == before


def test_a_shorter_stream_has_the_law_of_the_first_steps():
    mechanism = gaussian(SquareRootToeplitz(7))
    value = np.random.default_rng(0).normal(size=7)
    whole = mechanism.release(value, np.random.default_rng(1))
    np.testing.assert_allclose(mechanism.release(value[:4], np.random.default_rng(1)), whole[:4])
    assert mechanism.log_density(np.zeros((3, 4)), value[:4]).shape == (3,)
    assert mechanism.release_many(value, 0, np.random.default_rng(1)).shape == (0, 7)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sigma": 0}, "sigma is 0"),
        ({"participations": 0}, "participations is 0"),
        ({"min_separation": 1.0}, "min_separation is 1.0"),
        ({"symmetric": "yes"}, "symmetric is 'yes'"),
        ({"factorization": "binary-tree"}, "it must be a Factorization"),
    ],
)
def test_bad_fields_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        gaussian(**({"factorization": BinaryTree(4)} | fields))
    with pytest.raises(InputError, match="it must be that of the value"):
        gaussian(BinaryTree(2)).log_density(np.zeros(2), np.zeros(2))


# Gaussian node noise: declared cost against its own density

square = pytest.mark.parametrize("factorization", SQUARE, ids=lambda f: f"{f.kind}-{f.steps}")


def loss_at_the_mean(mechanism, value, neighbour):
    """ln of the density ratio at the noiseless release: μ²/2 for Gaussian noise."""
    outputs = np.cumsum(value, axis=0)[None]
    there, here = (mechanism.log_density(outputs, v)[0] for v in (value, neighbour))
    return there - here


@square
@pytest.mark.parametrize(("count", "gap"), [(1, 1), (2, 3), (3, 2)])
def test_declared_cost_is_that_of_the_worst_neighbour(factorization, count, gap):
    mechanism = gaussian(factorization, participations=count, min_separation=gap)
    rng = np.random.default_rng(2)
    value, direction = rng.normal(size=(factorization.steps, 4)), rng.normal(size=4)
    neighbour = value.copy()
    neighbour[: count * gap : gap] += 0.6 * direction / np.linalg.norm(direction)
    exact = math.sqrt(2 * loss_at_the_mean(mechanism, value, neighbour))
    declared = mechanism.pair(0.6).gaussian_mu
    assert exact <= declared * (1 + 1e-9)
    if count == 1 or not isinstance(factorization, BinaryTree):
        assert declared == pytest.approx(exact, rel=1e-9)


@each
@pytest.mark.parametrize("moved", ["diagonal", "off the diagonal", "both"])
def test_symmetric_noise_costs_half_the_squared_frobenius_distance(factorization, moved):
    mechanism = gaussian(factorization, symmetric=True)
    rng = np.random.default_rng(3)
    value, change = (
        m + np.swapaxes(m, -1, -2) for m in rng.normal(size=(2, factorization.steps, 4, 4))
    )
    change = change[0]
    if moved == "diagonal":
        change = np.diag(np.diag(change))
    elif moved == "off the diagonal":
        change = change - np.diag(np.diag(change))
    neighbour = value.copy()
    neighbour[0] += change
    distance = float(np.linalg.norm(change))
    exact = 2 * loss_at_the_mean(mechanism, value, neighbour)
    declared = mechanism.pair(distance).gaussian_mu
    if factorization.is_square:
        assert declared**2 == pytest.approx(exact, rel=1e-9)
        nodes = factorization.sensitivity() ** 2
        assert declared**2 == pytest.approx(nodes * distance**2 / (2 * 1.7**2), rel=1e-9)
    else:
        assert exact <= declared**2


@each
def test_density_is_the_joint_normal_one(factorization):
    mechanism = gaussian(factorization)
    decoder = factorization.decoder()
    covariance = 1.7**2 * decoder @ decoder.T
    value = np.random.default_rng(0).normal(size=(factorization.steps, 2))
    outputs = mechanism.release_many(value, 5, np.random.default_rng(1))
    expected = sum(
        stats.multivariate_normal(np.cumsum(value[:, c]), covariance).logpdf(outputs[:, :, c])
        for c in range(2)
    )
    np.testing.assert_allclose(mechanism.log_density(outputs, value), expected, rtol=1e-9)


def test_symmetric_density_is_normal_on_the_upper_triangle():
    tree = BinaryTree(3)
    mechanism = gaussian(tree, symmetric=True)
    value = np.zeros((3, 2, 2))
    outputs = mechanism.release_many(value, 4, np.random.default_rng(1))
    covariance = 1.7**2 * tree.decoder() @ tree.decoder().T
    expected = sum(
        stats.multivariate_normal(np.zeros(3), scale * covariance).logpdf(outputs[:, :, i, j])
        for i, j, scale in ((0, 0, 2), (0, 1, 1), (1, 1, 2))
    )
    np.testing.assert_allclose(mechanism.log_density(outputs, value), expected, rtol=1e-9)
    outputs[0, 1, 0, 1] += 1e-9
    assert mechanism.log_density(outputs, value)[0] == -math.inf


@each
@pytest.mark.parametrize("symmetric", [False, True])
def test_released_noise_has_the_declared_spread(factorization, symmetric):
    """Whitened energy is chi-squared; false alarm 1e-6 a case."""
    mechanism = gaussian(factorization, symmetric=symmetric)
    value = np.ones((factorization.steps, 2, 2))
    outputs = mechanism.release_many(value, 2000, np.random.default_rng(7))
    mode = mechanism.log_density(np.cumsum(value, axis=0)[None], value)
    energy = 2 * (mode - mechanism.log_density(outputs, value)).sum()
    freedom = 2000 * factorization.steps * (3 if symmetric else 4)
    assert stats.chi2(freedom).ppf(5e-7) < energy < stats.chi2(freedom).isf(5e-7)


# Laplace node noise: pure differential privacy


@pytest.mark.parametrize("count", [1, 2, 3])
def test_laplace_tree_is_pure_and_its_bound_is_reached(count):
    tree = BinaryTree(8)
    mechanism = ContinualLaplace(
        scale=2.5, factorization=tree, participations=count, min_separation=2
    )
    pattern, nodes = {1: ([0], 3), 2: ([0, 4], 6), 3: ([0, 2, 4], 8)}[count]
    assert mechanism.pair(0.5).pure_epsilon == Fraction(nodes, 5)
    value = np.zeros((8, 2))
    neighbour = value.copy()
    neighbour[pattern] = [0.3, -0.2]
    loss = loss_at_the_mean(mechanism, value, neighbour)
    assert loss == pytest.approx(nodes / 5, rel=1e-12)


def test_laplace_release_and_density():
    mechanism = ContinualLaplace(scale=2.0, factorization=BinaryTree(1024), participations=1)
    assert mechanism.pair(1.0).pure_epsilon == 5
    assert mechanism.error().max() == pytest.approx(math.sqrt(2) * 2.0 * math.sqrt(10))
    single = ContinualLaplace(scale=2.0, factorization=BinaryTree(1), participations=1)
    value, outputs = np.array([0.3]), np.array([[1.0], [-4.0]])
    expected = stats.laplace(0.3, 2.0).logpdf(outputs[:, 0])
    np.testing.assert_allclose(single.log_density(outputs, value), expected)
    sample = single.release_many(value, 20_000, np.random.default_rng(0))[:, 0]
    assert stats.kstest(sample, stats.laplace(0.3, 2.0).cdf).pvalue > 1e-6
    with pytest.raises(UnsupportedError, match="no closed density"):
        ContinualLaplace(scale=1.0, factorization=HonakerTree(4), participations=1).log_density(
            np.zeros((1, 4)), np.zeros(4)
        )
