"""A few runs show what cannot be audited, before an experiment begins."""

import numpy as np
import pytest

from dpaudit import AuditPair, InputError
from dpaudit.auditing.distinguishing.experiment import Experiment
from dpaudit.auditing.distinguishing.preflight import Preflight, preflight


def shown(release):
    return preflight(Experiment(release, AuditPair(0.0, 1.0), seed=3))


def test_noise_of_its_own_for_every_run_and_seed():
    assert shown(lambda data, size, rng: data + rng.laplace(size=(size, 2))) == Preflight(
        shape=(2,), deterministic=False, repeats=False
    )


def test_code_without_noise_is_deterministic():
    assert shown(lambda data, size, rng: np.full(size, data)) == Preflight((), True, False)


def test_a_batch_that_is_the_same_for_every_seed_repeats():
    def batch(data, size, rng):
        return data + np.random.default_rng(0).laplace(size=size)

    assert shown(batch) == Preflight((), True, True)


def test_rows_of_equal_discrete_outputs_are_fine():
    assert not shown(lambda data, size, rng: np.full(size, rng.integers(2))).repeats


def test_own_randomness_is_accepted_where_it_is_declared():
    def fresh(data, size, rng):
        return data + FRESH.laplace(size=size)

    with pytest.raises(InputError, match="--own-randomness"):
        shown(fresh)
    experiment = Experiment(fresh, AuditPair(0.0, 1.0), seed=3, own_randomness=True)
    assert preflight(experiment) == Preflight((), deterministic=False, repeats=False)


FRESH = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (lambda data, size, rng: data + FRESH.laplace(size=size), "ignores its rng"),
        (lambda data, size, rng: np.full(size, rng.laplace()), "repeated one draw"),
        (lambda data, size, rng: np.zeros((size, 1 + int(data))), r"shapes \(1,\) and \(2,\)"),
    ],
)
def test_what_cannot_be_audited(release, message):
    with pytest.raises(InputError, match=message):
        shown(release)
