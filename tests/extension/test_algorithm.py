"""An algorithm from outside the package: one class, by public names alone.

It is a mean: a noisy sum over a noisy count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from subject_conformance import SubjectConformance

from dpaudit import (
    AddRemove,
    AuditPair,
    Claim,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.auditing import audit_subject
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.fields import Checked, Positive
from dpaudit.base.validate import real_array


@dataclass(frozen=True)
class NoisyMean(Checked, Subject):
    """The mean of numbers in [−bound, bound], of whose number nothing is known.

    Half of ε goes to the count and half to the sum.

    Attributes:
        epsilon: for a row that is added or removed.
        bound: of a row; others are clipped.
    """

    epsilon: Positive = 1.0
    bound: Positive = 1.0

    def counting(self) -> Laplace:
        """What a number of rows passes."""
        return Laplace.calibrated(epsilon=self.epsilon / 2, sensitivity=1.0)

    def summing(self) -> Laplace:
        """What a sum of rows passes."""
        return Laplace.calibrated(epsilon=self.epsilon / 2, sensitivity=self.bound)

    def plan(self) -> Plan:
        """A count and a sum."""
        facts = {"unit": PrivacyUnit("row"), "relation": AddRemove(), "trust": TrustModel.CENTRAL}
        return Plan.of(
            Invocation(self.counting(), 1.0, at="count", **facts),
            Invocation(self.summing(), self.bound, at="sum", **facts),
        )

    def claim(self) -> Claim:
        """Basic composition."""
        return Claim(self.epsilon, 0.0, "composition")

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """A row at the end of the range, or none."""
        return (AuditPair([self.bound], [], "one row against none"),)

    def audit_release(self, data, size, rng):
        """Counts and sums, (size, 2)."""
        rows = self._clipped(data)
        return np.column_stack(
            [
                self.counting().release_many(float(len(rows)), size, rng),
                self.summing().release_many(float(rows.sum()), size, rng),
            ]
        )

    def run(self, data: Sequence[float], ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Release both, and divide."""
        rows = self._clipped(data)
        count = ledger.release(self.counting(), float(len(rows)), at="count")
        total = ledger.release(self.summing(), float(rows.sum()), at="sum")
        return RunResult({"mean": float(total) / max(float(count), 1.0)})

    def _clipped(self, data: Sequence[float]) -> np.ndarray:
        rows = real_array(rows=data)
        return np.clip(rows, -self.bound, self.bound)


class TestNoisyMean(SubjectConformance):
    subject = NoisyMean(epsilon=0.5, bound=2.0)

    def data(self):
        return [0.5, -1.0, 7.0]

    def neighbour(self):
        return [0.5, -1.0]

    def bad_data(self):
        return ([0.5, float("nan")], ["a"], None)


class Unclipped(NoisyMean):
    """Its plan holds for rows that are clipped."""

    def _clipped(self, data):
        return np.asarray(data, float)


def test_the_replay_of_the_suite_finds_a_forgotten_clip():
    found = replay(Unclipped(bound=2.0), TestNoisyMean().data(), TestNoisyMean().neighbour())
    assert [finding.rule for finding in found.findings] == ["sensitivity-understated"]


@pytest.mark.parametrize(("share", "refuted"), [(1.0, False), (0.3, True)])
def test_it_is_attacked_like_any_other(share, refuted):
    subject = NoisyMean(epsilon=2.0)
    claim = Claim(share * subject.epsilon)
    found = audit_subject(subject, claim=claim, runs=4_000, seed=1, confidence=1 - 1e-6)
    assert found.refuted is refuted
