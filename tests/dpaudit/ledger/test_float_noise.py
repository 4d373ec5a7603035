import numpy as np
import pytest
from examples import LAPLACE, gaussian_invocation, response_plan

from dpaudit import FixedSizeSampling, FloatNoise, InputError, Ledger, PoissonSampling, ReplaceOne
from dpaudit.plan import TruncatedPoissonSampling


def test_without_a_generator_nobody_knows_the_seed():
    answers = set()
    for _ in range(2):
        ledger = Ledger(response_plan(), noise=FloatNoise())
        assert not ledger.seeded
        answers.add(ledger.release(LAPLACE, 0.0, unit="ann"))
    assert len(answers) == 2
    assert Ledger(response_plan(), rng=np.random.default_rng(0)).seeded


def test_the_sampler_says_what_drew():
    assert FloatNoise().sampler == f"numpy {np.__version__}"
    assert FloatNoise(np.random.default_rng(0)).sampler == f"numpy {np.__version__}, seeded"


def test_generators_are_generators():
    with pytest.raises(InputError, match="rng is a int; it must be a Generator"):
        FloatNoise(5)


def test_continued_noise_depends_on_seed_and_words():
    def first(seed, words):
        noise = FloatNoise(np.random.default_rng(seed)).continued(words)
        assert noise.seeded
        ledger = Ledger(response_plan(), noise=noise)
        return ledger.release(LAPLACE, 0.0, unit="ann")

    plain = Ledger(response_plan(), rng=np.random.default_rng(0))
    drawn = [plain.release(LAPLACE, 0.0, unit="ann"), first(0, [1]), first(0, [2]), first(1, [1])]
    assert len(set(drawn)) == 4
    assert first(0, [1]) == drawn[1]


@pytest.mark.parametrize("sampling", [PoissonSampling(0.25), FixedSizeSampling(25, 100)])
def test_samples_have_the_declared_law(sampling):
    """10^5 events of 1/4, in all and of each unit, within 6.5 standard deviations; fixed seed."""
    noise = FloatNoise(np.random.default_rng(3))
    use = gaussian_invocation(relation=ReplaceOne(), sampling=sampling)
    samples = [noise.sample(use, [f"unit {n}" for n in range(100)]) for _ in range(1000)]
    assert all(sample == sorted(set(sample)) for sample in samples)
    sizes = np.array([len(sample) for sample in samples])
    assert abs(sizes.sum() - 25_000) < 5.1 * np.sqrt(100_000 * 0.25 * 0.75)
    spread = 0.0 if isinstance(sampling, FixedSizeSampling) else 100 * 0.25 * 0.75
    assert 0.8 * spread <= sizes.var() <= 1.25 * spread
    counts = np.bincount(np.concatenate(samples), minlength=100)
    assert abs(counts - 250).max() < 6.5 * np.sqrt(1000 * 0.25 * 0.75)


def test_truncated_samples_are_poisson_samples_cut_at_random():
    """2000 samples of rate 1/2 cut at 3 of 4 units, within 6 standard deviations (below 1e-7)."""
    use = gaussian_invocation(sampling=TruncatedPoissonSampling(0.5, 3, 4))
    noise = FloatNoise(np.random.default_rng(3))
    samples = [noise.sample(use, list("abcd")) for _ in range(2_000)]
    assert all(sample == sorted(set(sample)) for sample in samples)
    sizes = np.bincount([len(sample) for sample in samples], minlength=5)
    for size, expected in ((0, 1 / 16), (1, 1 / 4), (2, 3 / 8), (3, 5 / 16)):
        assert abs(sizes[size] - 2_000 * expected) < 6 * np.sqrt(2_000 * expected)
    assert sizes[4] == 0
    full = np.concatenate([sample for sample in samples if len(sample) == 3])
    assert abs(np.bincount(full) - full.size / 4).max() < 6 * np.sqrt(full.size / 4)
