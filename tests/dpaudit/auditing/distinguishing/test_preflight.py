"""A few runs show what cannot be audited, before an experiment begins.

A batch is as many runs as single calls would be, or it is refused.
"""

import numpy as np
import pytest

from dpaudit import AuditPair, InconclusiveError, InputError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing.experiment import Experiment
from dpaudit.auditing.distinguishing.preflight import Preflight, batches_are_runs, preflight


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


def trusted(function, runs=10_000, seed=1):
    return batches_are_runs(Experiment(BlackBox(function), AuditPair(0.0, 1.0), seed), runs)


def right(data, rng, size):
    return data + rng.laplace(size=(size, 2))


def test_right_batches_are_trusted_and_few_runs_are_drawn_singly():
    assert all(trusted(right, seed=seed) for seed in range(20))
    assert not trusted(right, runs=399)
    sizes = []

    def counted(data, rng, size):
        sizes.append(size)
        return data + rng.laplace(size=size)

    audit_release(BlackBox(counted), AuditPair(0.0, 1.0), epsilon=1.0, runs=100, seed=1)
    assert sizes.count(1) > 100 > 8 > len(sizes) - sizes.count(1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda data, rng, size: data + rng.laplace(size=size) / size, "differs from single calls"),
        (lambda data, rng, size: np.zeros((size, size)), r"of shape \(1000,\) on x"),
    ],
)
def test_a_size_that_is_no_number_of_runs_is_refused(wrong, message):
    with pytest.raises(InconclusiveError, match=message):
        trusted(wrong, runs=1000)
