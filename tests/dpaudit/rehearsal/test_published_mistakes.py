"""The six minimal mistakes of dp-recorder (PETS 2026, arXiv 2602.17454), as subjects."""

from dataclasses import dataclass

import numpy as np
import pytest
from effort import examples

from dpaudit import (
    AddRemove,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.rehearsal.rehearse import rehearse

NOISE = Laplace(1.0)
AGES = np.array([23.0, 31.0, 44.0, 52.0, 67.0, 38.0])


def use(at, sensitivity=1.0):
    facts = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
    return Invocation(NOISE, sensitivity, *facts, at=at)


@dataclass(frozen=True)
class Mistake(Subject):
    """Releases one number of the ages, in units of their largest."""

    def plan(self):
        return Plan.of(use("answer"))


class PrivateMean(Mistake):
    """The noisy sum is divided by the true number of people."""

    def run(self, ages, ledger, rng):
        total = np.clip(np.nan_to_num(ages), 0, 100).sum() / 100
        return RunResult({"mean": ledger.release(NOISE, total, at="answer") / max(1, len(ages))})


class DomainInference(Mistake):
    """A histogram over the values that occur."""

    def run(self, ages, ledger, rng):
        counts = np.unique(ages, return_counts=True)[1].astype(float)
        return RunResult({"histogram": ledger.release(NOISE, counts, at="answer").tolist()})


class DoubleSpending(Mistake):
    """One budget for two releases."""

    def run(self, ages, ledger, rng):
        old = float((ages > 40).sum())
        return RunResult({n: ledger.release(NOISE, old, at="answer") for n in ("one", "two")})


class NoSensitivity(Mistake):
    """Noise for a query that is said not to depend on anybody."""

    def plan(self):
        return Plan.of(use("answer", sensitivity=0.0))

    def run(self, ages, ledger, rng):
        return RunResult({"old": ledger.release(NOISE, float((ages > 40).sum()), at="answer")})


class SensitivityOfACount(Mistake):
    """The sensitivity of a count for a sum."""

    def run(self, ages, ledger, rng):
        total = np.clip(np.nan_to_num(ages), 0, 100).sum()
        return RunResult({"sum": ledger.release(NOISE, total, at="answer")})


class NaNPastClip(Mistake):
    """A clip that lets NaN through."""

    def run(self, ages, ledger, rng):
        total = (np.clip(ages, 0, 100) / 100).sum()
        return RunResult({"sum": ledger.release(NOISE, total, at="answer")})


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (PrivateMean, "result-not-from-releases"),
        (DomainInference, "sensitivity-understated"),
        (DoubleSpending, "plan-not-followed"),
        (NoSensitivity, "sensitivity-understated"),
        (SensitivityOfACount, "sensitivity-understated"),
        (NaNPastClip, "not-a-number"),
    ],
)
@pytest.mark.parametrize("seed", range(examples(2, 5)))
def test_each_is_found(kind, rule, seed):
    found = rehearse(kind(), AGES, seed=seed).findings
    assert rule in {finding.rule for finding in found}
