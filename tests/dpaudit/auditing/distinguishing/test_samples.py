"""Noise that can be made smaller, around what the outputs are without it."""

import numpy as np
import pytest

from dpaudit import DiscreteLaplace, Laplace
from dpaudit.auditing.distinguishing.outcome import Sample
from dpaudit.auditing.distinguishing.scores import Identity, WhiteBox


def test_of_outputs_shrinks_towards_their_median():
    rng = np.random.default_rng(0)
    x, x_prime = 3.0 + rng.laplace(size=5000), rng.laplace(size=5000)
    sample = Sample.of(Identity(), (x, x_prime))
    assert sample.centres == pytest.approx((3.0, 0.0), abs=0.1)
    np.testing.assert_allclose(sample.scores(Identity(), 1.0), (x, x_prime))
    half = sample.scores(Identity(), 0.5)
    assert np.std(half[0]) == pytest.approx(np.std(x) / 2)


def test_of_a_declared_mechanism_needs_no_outputs():
    score = WhiteBox(Laplace(2.0, clip=(-1.0, 1.0)), 5.0, -5.0)
    sample = Sample.of(score, (np.empty(0), np.empty(0)))
    assert sample.centres == (1.0, -1.0)
    assert len(sample.outputs[0]) == 20_000
    assert set(sample.scores(score, 0.0)[0]) == {1.0}


def test_discrete_noise_has_no_size():
    score = WhiteBox(DiscreteLaplace(1.0), 1, 0)
    assert Sample.of(score, (np.empty(0), np.empty(0))) is None
    assert Sample.of(Identity(), (np.zeros(1), np.ones(1))) is None
