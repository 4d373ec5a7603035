"""Mechanisms of others are drawn: one that costs more than it states is found, a right one not."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RunResult,
    Subject,
    TrustModel,
    certify,
)
from dpaudit.certificate import Claim, Premise, Standing, SubjectRecord, Verdict
from dpaudit.mechanisms import LaplacePair, Mechanism, Norm, PureBlackBox
from dpaudit.rehearsal.laws import law_findings
from dpaudit.rehearsal.rehearse import rehearse

ROWS = np.random.default_rng(5).uniform(0, 1, 30)


@dataclass(frozen=True)
class NoNoise(Mechanism):
    """It states the pair of Laplace noise of scale 1000, and adds none."""

    kind: ClassVar[str] = "test-no-noise"
    norm: ClassVar[Norm] = Norm.L1

    def pair(self, sensitivity):
        return LaplacePair(Fraction(sensitivity) / 1000)

    def sample(self, values, rng):
        return np.array(values)


@dataclass(frozen=True)
class HalfTheNoise(NoNoise):
    """It states the pair of Laplace noise of scale 1, and adds half as much."""

    kind: ClassVar[str] = "test-half-the-noise"

    def pair(self, sensitivity):
        return LaplacePair(Fraction(sensitivity))

    def sample(self, values, rng):
        return values + rng.laplace(scale=0.5, size=values.shape)


@dataclass(frozen=True)
class OneEntryBare(HalfTheNoise):
    """Right noise on all entries but the last one."""

    kind: ClassVar[str] = "test-one-entry-bare"

    def sample(self, values, rng):
        noise = rng.laplace(size=values.shape)
        noise[..., -1] = 0
        return values + noise


@dataclass(frozen=True)
class BareWhereExact(Laplace):
    """Right in floats, and without noise where it draws exactly, as a deployment does."""

    kind: ClassVar[str] = "test-bare-where-exact"

    def sample_exactly(self, values, sensitivity, source):
        return np.array(values)


@dataclass(frozen=True)
class LaplaceAgain(Laplace):
    """Laplace noise, of a class of another module."""

    kind: ClassVar[str] = "test-laplace-again"


@dataclass(frozen=True)
class Raising(NoNoise):
    """It cannot be drawn on the values of an attack."""

    kind: ClassVar[str] = "test-raising"

    def sample(self, values, rng):
        if (values == 0).all():
            raise ValueError(values)
        return values + rng.laplace(scale=1000, size=values.shape)


def plan_of(mechanism):
    facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    return Plan.of(Invocation(mechanism, 1.0, *facts, at="sum"))


@dataclass(frozen=True)
class Total(Subject):
    """Releases a sum by any mechanism."""

    mechanism: Mechanism

    def plan(self):
        return plan_of(self.mechanism)

    def run(self, rows, ledger, rng):
        total = np.clip(np.nan_to_num(rows), 0, 1).sum()
        return RunResult({"sum": ledger.release(self.mechanism, total, at="sum")})


def certified(subject):
    """Its certificate after a rehearsal."""
    record = SubjectRecord("code", code_hash="0" * 64)
    bare = certify(subject.plan(), claim=Claim(3.0), subject=record)
    outcome = rehearse(subject, ROWS)
    return bare.with_rehearsal(outcome.record, outcome.findings)


def standing(certificate):
    return next(each.standing for each in certificate.assumptions if each.premise is Premise.LAWS)


@pytest.mark.parametrize("mechanism", [NoNoise(), HalfTheNoise(), BareWhereExact(1.0)])
def test_a_law_that_states_too_little_is_found(mechanism):
    pytest.importorskip("opendp")
    certificate = certified(Total(mechanism))
    assert [each.rule for each in certificate.findings if each.at == "sum"] == ["law-understated"]
    assert certificate.verdict is Verdict.UNPROVEN
    assert standing(certificate) is Standing.VIOLATED


def test_one_bare_entry_is_found():
    shaped = {"sum": np.array([3.0, 1.0, 2.0])}
    findings, drawn = law_findings(plan_of(OneEntryBare()), shaped, 1e-6, 0)
    assert [each.rule for each in findings] == ["law-understated"]
    assert not drawn


@pytest.mark.parametrize(("scale", "shape"), [(0.2, ()), (1.0, (3,)), (1000.0, ())])
def test_a_right_law_is_tested_and_not_accused(scale, shape):
    # false alarms: 3 searches at 1e-6 each
    findings, drawn = law_findings(
        plan_of(LaplaceAgain(scale)), {"sum": np.full(shape, 7.5)}, 1e-6, 0
    )
    assert not findings
    assert drawn["sum"] >= 32_000


def test_a_right_law_reads_tested():
    certificate = certified(Total(LaplaceAgain(1.0)))
    assert standing(certificate) is Standing.TESTED
    assert certificate.verdict is Verdict.CERTIFIED


def test_what_cannot_be_drawn_is_assumed():
    assert law_findings(plan_of(Raising()), {}, 1e-6, 0) == ([], {})
    assert law_findings(plan_of(PureBlackBox(0.001)), {}, 1e-6, 0) == ([], {})
    assert standing(certified(Total(PureBlackBox(0.001)))) is Standing.ASSUMED


def test_laws_of_this_package_are_not_drawn():
    assert law_findings(plan_of(Laplace(1.0)), {}, 1e-6, 0) == ([], {})


@dataclass(frozen=True)
class Twice(Total):
    """The sum, and as often noise of the same mechanism at another label as is said."""

    entries: int

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        labels = ("sum", "more")
        return Plan.of(*(Invocation(self.mechanism, 1.0, *facts, at=label) for label in labels))

    def run(self, rows, ledger, rng):
        more = np.clip(np.nan_to_num(rows), 0, 1).sum() * np.eye(1, self.entries)
        ledger.release(self.mechanism, more, at="more")
        return super().run(rows, ledger, rng)


@pytest.mark.parametrize(
    ("mechanism", "stands"),
    [(Laplace(1.0), Standing.ENFORCED), (LaplaceAgain(1.0), Standing.NOT_EXERCISED)],
    ids=lambda each: type(each).__name__,
)
def test_noise_that_was_drawn_once_is_not_tested_by_what_was_drawn_elsewhere(mechanism, stands):
    """Fewer than 100 draws of a label say little, however many there are of another."""
    made = certified(Twice(mechanism, 8))
    assert made.rehearsal.draws > 100
    (found,) = (each for each in made.assumptions if each.premise is Premise.NOISE)
    assert found.standing is stands
    if stands is Standing.NOT_EXERCISED:
        assert made.rehearsal.exercised[Premise.NOISE]["more"] > 100
        assert "Fewer than 100 draws were tested at 'sum'" in found.evidence
