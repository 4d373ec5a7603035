"""Whether ``audit_release``, a model of a subject, draws what its run releases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.replaying.replay import record
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.project import Subject

MODEL_SECONDS = 2.0
"""For the real runs on one side beyond the first ones, and for the draws of the model."""
FEWEST = 8
MOST_COMPARED = 400
FOR_EACH = 5
"""Draws of the model for each real run; as many again tell how entries vary."""


def model_findings(subject: Subject, seed: int, error_rate: float) -> list[Finding]:
    """Compare the model with real runs on all that the subject says are alike.

    The test is that of Kolmogorov and Smirnov on every entry, and on the mean and the mean square
    of all entries together, which few runs suffice for; corrected for the number of tests.

    Args:
        subject: what may have ``modelled`` and ``statistic``.
        seed: of runs and draws.
        error_rate: probability of a finding where the model is right, at most.

    Returns:
        One if they differ.
    """
    alike = list(subject.modelled())
    runs = 0
    for part, (modelled, data) in enumerate(alike):
        real = np.stack(list(_runs(subject, data, seed)))
        rng = np.random.default_rng([seed, part])
        model = np.concatenate(list(_draws(subject, modelled, len(real), rng)))
        runs += len(real)
        if _differ(real, model, error_rate / len(alike)):
            return [FindingTable(__name__)("model-differs", runs=runs)]
    return []


def _runs(subject: Subject, data: Any, seed: int) -> Iterator[NDArray[Any]]:
    """Return what the model draws, of runs with different seeds."""
    start = time.monotonic()
    for number in range(MOST_COMPARED):
        if number >= FEWEST and time.monotonic() - start > MODEL_SECONDS:
            return
        steps = record(subject, data, seed + number).run.steps
        yield np.asarray(subject.statistic([step.handed for step in steps]))


def _draws(
    subject: Subject, data: Any, runs: int, rng: np.random.Generator
) -> Iterator[NDArray[Any]]:
    """Draws of the model, as many as are wanted or time allows."""
    start = time.monotonic()
    for done in range(0, runs, FEWEST):
        if done == 0 or time.monotonic() - start < MODEL_SECONDS:
            yield np.asarray(subject.audit_release(data, 2 * FOR_EACH * FEWEST, rng))


def _differ(real: NDArray[Any], model: NDArray[Any], error_rate: float) -> bool:
    from scipy.stats import ks_2samp

    if real.shape[1:] != model.shape[1:]:
        return True
    one = real.reshape(len(real), -1).astype(np.float64)
    scale, two = np.split(model.reshape(len(model), -1).astype(np.float64), 2)
    middle, spread = scale.mean(axis=0), scale.std(axis=0)
    spread[spread <= 1e-12 * np.abs(middle)] = np.inf  # constants: for tests of entries alone
    whole = [
        np.column_stack([z.mean(1), np.square(z).mean(1)])
        for z in ((one - middle) / spread, (two - middle) / spread)
    ]
    tests = [(whole, error_rate / 2), ((one, two), error_rate / 2)]
    return any(
        ks_2samp(x, y).pvalue <= share / left.shape[1]
        for (left, right), share in tests
        for x, y in zip(left.T, right.T, strict=True)
    )
