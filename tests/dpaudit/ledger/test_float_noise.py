import numpy as np
import pytest
from examples import LAPLACE, gaussian_invocation, response_plan

from dpaudit import FixedSizeSampling, FloatNoise, InputError, Ledger, PoissonSampling, ReplaceOne


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
    with pytest.raises(InputError, match="rng is 5"):
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
