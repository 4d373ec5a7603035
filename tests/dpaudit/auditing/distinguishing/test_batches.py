"""A batch is as many runs as single calls would be, or it is refused."""

import numpy as np
import pytest

from dpaudit import AuditPair, InconclusiveError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing.experiment import Experiment
from dpaudit.auditing.distinguishing.preflight import batches_are_runs


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
