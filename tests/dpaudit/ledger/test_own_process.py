"""Whatever draws noise is in one process, once."""

import copy
import os
import pickle
from multiprocessing import get_context

import numpy as np
import pytest
from examples import LAPLACE, gaussian_invocation, response_plan

from dpaudit import (
    ClosedLedgerError,
    DpAuditError,
    FloatNoise,
    InputError,
    Ledger,
    Plan,
    PoissonSampling,
    SecureNoise,
)
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.ledger import Entry
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian

STREAM = ContinualGaussian(sigma=1.0, factorization=BinaryTree(8), participations=2)


def secure():
    pytest.importorskip("opendp", reason="the extra 'secure' is not installed")
    return SecureNoise()


BACKENDS = {
    "fresh": FloatNoise,
    "seeded": lambda: FloatNoise(np.random.default_rng(1)),
    "continued": lambda: FloatNoise(np.random.default_rng(1)).continued([1]),
    "secure": secure,
    "recording": lambda: RecordingNoise(np.random.default_rng(1)),
}


def in_a_fork(action):
    """The words of the error that it ends with in a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = repr(action())
        except DpAuditError as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    return os.read(reading, 4096).decode()


@pytest.mark.parametrize("made", BACKENDS.values(), ids=list(BACKENDS))
def test_noise_is_neither_copied_nor_sent(made):
    noise = made()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InputError, match="noise cannot be copied or sent"):
            copied(noise)
    with get_context("fork").Pool(1) as pool, pytest.raises(InputError, match="copied or sent"):
        pool.apply(noise.release, (None, 1.0))


@pytest.mark.parametrize("made", BACKENDS.values(), ids=list(BACKENDS))
def test_two_workers_do_not_draw_the_same_noise(made):
    """Made before the fork, it would be drawn in both: their difference is that of the values."""
    noise = made()
    sampled = gaussian_invocation(sampling=PoissonSampling(0.5), at="sampled")
    entry = Entry(response_plan().invocations[0], None, "here:1", "")
    actions = [
        lambda: Ledger(response_plan(), noise=noise).release(LAPLACE, 1.0, unit="ann"),
        lambda: Ledger(Plan.of(sampled), noise=noise).sample(["ann"], at="sampled"),
        lambda: noise.release(entry, np.float64(1.0)),
    ]
    if isinstance(noise, FloatNoise):
        plan = Plan.of(gaussian_invocation(mechanism=STREAM, at="sums"))
        actions += [
            lambda: noise.stream(Entry(plan.invocations[0], None, "", ""), ()),
            lambda: noise.continued([2]),
        ]
    for action in actions:
        assert in_a_fork(action).startswith(
            f"ClosedLedgerError: noise belongs to process {os.getpid()}"
        )
    ledger = Ledger(response_plan(), noise=noise)
    assert in_a_fork(lambda: len(ledger)) == "0"
    ledger.release(LAPLACE, 1.0, unit="ann")


def test_a_refusal_in_another_process_costs_nothing():
    noise = FloatNoise()

    def charged():
        ledger = Ledger(response_plan(), noise=noise)
        with pytest.raises(ClosedLedgerError):
            ledger.release(LAPLACE, 1.0, unit="ann")
        return len(ledger)

    assert in_a_fork(charged) == "0"
