"""Whether ``audit_release``, a model of a subject, draws what its run releases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from dpaudit.auditing.replaying.replay import record
from dpaudit.certificate import Finding
from dpaudit.finding_table import FindingTable
from dpaudit.project import Subject

__all__ = ["model_findings"]

SECONDS = 3.0
"""For the real runs on one side, beyond the first ones."""
FEWEST = 8
MOST = 200
FOR_EACH = 10
"""Draws of the model for each real run."""


def model_findings(subject: Subject, seed: int, error_rate: float) -> list[Finding]:
    """Compare the model with real runs on both sides of the first pair, entry by entry.

    The test is that of Kolmogorov and Smirnov, corrected for the number of entries and sides.

    Args:
        subject: what may have ``as_data`` and ``statistic``.
        seed: of runs and draws.
        error_rate: probability of a finding where the model is right, at most.

    Returns:
        One if they differ.
    """
    pairs = subject.audit_pairs()
    runs = 0
    for side in (pairs[0].x, pairs[0].x_prime) if pairs else ():
        data = subject.as_data(side)
        if data is None:
            break
        real = list(_runs(subject, data, seed))
        model = subject.audit_release(side, FOR_EACH * len(real), np.random.default_rng(seed))
        runs += len(real)
        if _differ(np.stack(real), np.asarray(model), error_rate / 2):
            return [FindingTable(__name__)("model-differs", runs=runs)]
    return []


def _runs(subject: Subject, data: Any, seed: int) -> Iterator[NDArray[Any]]:
    """What the model draws, of runs with different seeds."""
    start = time.monotonic()
    for number in range(MOST):
        if number >= FEWEST and time.monotonic() - start > SECONDS:
            return
        steps = record(subject, data, seed + number).run.steps
        yield np.asarray(subject.statistic([step.released for step in steps]))


def _differ(real: NDArray[Any], model: NDArray[Any], error_rate: float) -> bool:
    if real.shape[1:] != model.shape[1:]:
        return True
    entries = zip(real.reshape(len(real), -1).T, model.reshape(len(model), -1).T, strict=True)
    share = error_rate / max(1, real[0].size)
    return any(ks_2samp(one, two).pvalue <= share for one, two in entries)
