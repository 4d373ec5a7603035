"""Noise that comes more than once is found; sound noise and coarse outputs are left alone."""

import numpy as np

from dpaudit.auditing.noise.repeats import repeats


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
