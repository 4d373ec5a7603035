"""Noise that comes more than once is found; sound noise and coarse outputs are left alone."""

import numpy as np
import pytest

from dpaudit.auditing.noise.floats import repeats


def test_few_seeds_and_shared_noise_are_found():
    fixed = 1.0 + np.full(50, np.random.default_rng(3).laplace())
    assert [f.rule for f in repeats(fixed)] == ["seed-reuse"]
    assert "the seed is fixed" in repeats(fixed)[0].message
    table = np.random.default_rng(0).laplace(size=4096)
    few = table[np.random.default_rng(1).integers(4096, size=2000)]
    (finding,) = repeats(few)
    assert finding.rule == "seed-reuse"
    shared = np.arange(8) + np.random.default_rng(2).normal(size=(10, 1))
    (finding,) = repeats(shared)
    assert finding.rule == "noise-reuse"
    one_pair = np.random.default_rng(2).normal(size=(10, 8))
    one_pair[:, 5] = one_pair[:, 2] + 1
    assert "Entries 2 and 5" in repeats(one_pair)[0].message


BOUND = np.sqrt(2) / 3


@pytest.mark.parametrize(
    "release",
    [
        lambda noise: np.clip(noise, -BOUND, BOUND),
        lambda noise: np.clip(noise, 0, 1),
        lambda noise: np.maximum(noise, 0),
        lambda noise: np.where(np.arange(len(noise)) % 10, 0.0, noise),
        lambda noise: np.round(noise, 2),
        lambda noise: np.clip(noise.reshape(-1, 5), -BOUND, BOUND),
        lambda noise: np.full(noise.shape, 0.5),
    ],
)
def test_atoms_and_bounds_are_no_reused_noise(release):
    assert repeats(release(np.random.default_rng(6).laplace(size=2000))) == []


@pytest.mark.parametrize("seeds", [2, 3, 16, 500])
def test_few_seeds_are_found_however_few(seeds):
    rng = np.random.default_rng(7)
    (finding,) = repeats(rng.laplace(size=seeds)[rng.integers(seeds, size=2000)])
    assert finding.rule == "seed-reuse"


def test_what_does_not_depend_on_the_data_is_no_reused_noise():
    noise = np.random.default_rng(8).laplace(size=(50, 1))
    entries, elsewhere = noise + np.array([0, 1]), noise + np.array([0.25, 1.25])
    assert repeats(entries, elsewhere) == []
    assert [each.rule for each in repeats(entries, noise + np.array([0, 2]))] == ["noise-reuse"]
    bound = np.full(50, BOUND)
    assert repeats(bound, bound) == []
    assert [each.rule for each in repeats(bound, bound + 1)] == ["seed-reuse"]


def test_sound_noise_is_not_called_reused():
    rng = np.random.default_rng(4)
    for outputs in (
        rng.laplace(size=20_000),
        rng.normal(size=(500, 40)),
        1e9 + rng.laplace(size=20_000),
        rng.integers(5, size=1000).astype(float),
        rng.integers(5, size=1000) / 2,
    ):
        assert repeats(outputs) == []
    assert repeats(np.ones(1)) == []
