from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import AdditiveNoise, IntegerNoise, Norm, PureBlackBox


@dataclass(frozen=True)
class Uniform(AdditiveNoise):
    """Noise in [−1, 1), which says how it is drawn and no more."""

    kind: ClassVar[str] = "test-additive-uniform"
    norm: ClassVar[Norm] = Norm.L1

    def pair(self, sensitivity):
        return PureBlackBox(1.0).pair(sensitivity)

    def noise(self, shape, rng):
        return rng.uniform(-1, 1, shape)

    def log_noise_density(self, noise):
        return np.where(np.abs(noise) <= 1, np.log(0.5), -np.inf)


@dataclass(frozen=True)
class Coin(IntegerNoise):
    """−1, 0 or 1."""

    kind: ClassVar[str] = "test-additive-coin"
    norm: ClassVar[Norm] = Norm.L1

    def pair(self, sensitivity):
        return PureBlackBox(1.0).pair(sensitivity)

    def noise(self, shape, rng):
        return rng.integers(-1, 2, shape)

    def log_mass(self, noise):
        return np.where(np.abs(noise) <= 1, np.log(1 / 3), -np.inf)

    def mean_size(self):
        return 2 / 3


def test_noise_is_added_to_every_entry():
    released = Uniform().release_many([[10.0, 20.0]], 500, np.random.default_rng(0))
    assert released.shape == (500, 1, 2)
    assert np.abs(released - [[10.0, 20.0]]).max() < 1
    assert len(np.unique(released)) == 1000


def test_densities_add_up_over_entries():
    found = Uniform().log_density([[0.5, 0.5], [0.5, 2.5]], [0.0, 1.0])
    assert found.tolist() == [pytest.approx(2 * np.log(0.5)), -np.inf]


def test_a_law_that_is_not_declared_cannot_be_tested():
    with pytest.raises(UnsupportedError, match="test-additive-uniform declares no law of noise"):
        Uniform().tails(0.5, np.zeros(()), np.random.default_rng(0))


def test_integer_noise_takes_and_gives_integers():
    coin, rng = Coin(), np.random.default_rng(0)
    assert coin.release_many(5, 100, rng).dtype == np.int64
    with pytest.raises(InputError, match="not a whole number"):
        coin.release(0.5, rng)
    masses = np.exp(coin.log_density([4, 5.5, 9], 5))
    assert masses == pytest.approx([1 / 3, 0.0, 0.0])
    tails = coin.tails([4, 5, 6], np.array([5, 5, 5]), rng)
    assert tails.sizes.tolist() == [1.5, 0.0, 1.5]
    assert ((tails.tails >= [0, 2 / 3, 0]) & (tails.tails <= [2 / 3, 1, 2 / 3])).all()
