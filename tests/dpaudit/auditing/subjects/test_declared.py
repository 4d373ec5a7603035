"""Auditing declared algorithms."""

from dataclasses import dataclass

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    AuditPair,
    Claim,
    Gaussian,
    InputError,
    Invocation,
    Laplace,
    Opaque,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    Subject,
    TrustModel,
)
from dpaudit.auditing import audit_subject


@dataclass(frozen=True)
class Curator(Subject):
    """Declares one Laplace release; runs another if told so."""

    runs_with: Laplace | None = None

    def plan(self):
        laplace = Laplace(4.0, clip=(-2, 2))
        unit, relation = PrivacyUnit("response"), ReplaceOne()
        return Plan.of(Invocation(laplace, 4.0, unit, relation, TrustModel.LOCAL))

    def claim(self):
        return Claim(1.0)

    def audit_release(self, data, size, rng):
        runs = self.runs_with or self.plan().invocations[0].mechanism
        return runs.release_many(data, size, rng)


@dataclass(frozen=True)
class NoisyMean(Subject):
    """Claims its Gaussian plan at some ε; runs with a fraction of the noise."""

    claimed: float = 1.0
    share: float = 1.0

    def plan(self):
        unit, relation = PrivacyUnit("row"), AddRemove()
        return Plan.of(Invocation(Gaussian(3.7306), 1.0, unit, relation, TrustModel.CENTRAL))

    def claim(self):
        return Claim(self.claimed, 1e-5)

    def audit_pairs(self):
        return (AuditPair(1.0, 0.0, "a row more"),)

    def audit_release(self, data, size, rng):
        return Gaussian(self.share * 3.7306).release_many(data, size, rng)


@dataclass(frozen=True)
class Unclaimed(Subject):
    def plan(self):
        unit, relation = PrivacyUnit("row"), AddRemove()
        opaque = Opaque("secret", 1.0, sampler=lambda value, rng: value + rng.laplace())
        return Plan.of(Invocation(opaque, 1.0, unit, relation, TrustModel.CENTRAL))


class TestCurators:
    @pytest.mark.unabridged
    def test_as_declared(self):
        record = audit_subject(Curator(), seed=2)
        assert not record.refuted
        assert record.method == "white-box likelihood ratio"
        assert record.details["null"] == "the plan's whole curve δ(ε)"
        assert record.details["pairs_searched"] == 2
        assert "would have been detected" in record.power

    @pytest.mark.parametrize(
        "runs_with",
        [Laplace(4.0), Laplace(2.0, clip=(-2, 2)), Laplace(4.0, clip=(-3, 3))],
        ids=["no clip", "half the scale", "range too wide"],
    )
    def test_not_as_declared(self, runs_with):
        record = audit_subject(Curator(runs_with), seed=2)
        assert record.refuted
        assert record.epsilon_lower > 1

    def test_the_search_is_part_of_the_replay(self):
        first = audit_subject(Curator(), runs=500)
        assert audit_subject(Curator(), runs=500, seed=first.seed) == first


class TestNull:
    def test_curve_of_a_tight_claim(self):
        record = audit_subject(NoisyMean(share=0.5), runs=2000, seed=1)
        assert record.refuted
        assert "curve" in record.details["rejected_by"]

    def test_a_claim_looser_than_the_plan_is_tested_alone(self):
        # Half the noise breaks the plan (ε = 1), but not the claim (ε = 3; the truth is 2.16).
        record = audit_subject(NoisyMean(share=0.5, claimed=3.0), seed=1)
        assert not record.refuted
        assert record.details["claim_looser_than_plan"]

    def test_without_an_accountant(self):
        record = audit_subject(
            Unclaimed(), AuditPair(0.0, 1.0), claim=Claim(0.3), runs=4000, seed=1
        )
        assert record.refuted
        assert record.method.startswith("black-box")


class TestBadInput:
    def test_no_claim(self):
        with pytest.raises(InputError, match="claim is missing"):
            audit_subject(Unclaimed())

    def test_no_neighbours(self):
        @dataclass(frozen=True)
        class Central(Subject):
            def plan(self):
                return NoisyMean().plan()

        with pytest.raises(InputError, match="L2 distance 5"):
            audit_subject(Central(), AuditPair(5.0, 0.0), claim=Claim(1.0, 1e-5))

    def test_data_that_are_refused(self):
        with pytest.raises(InputError, match="InputError at test_declared"):
            audit_subject(Curator(), AuditPair(np.nan, 0.0), seed=1)
