import numpy as np
import pytest
from examples import LAPLACE, response_plan

from dpaudit import FloatNoise, InputError, Ledger


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
