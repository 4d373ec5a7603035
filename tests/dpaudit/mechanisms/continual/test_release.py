from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from dpaudit.base.errors import InputError
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
