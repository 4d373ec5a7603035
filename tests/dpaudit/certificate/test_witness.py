"""Witnesses that the package writes, as the checker reads them."""

from __future__ import annotations

import json
import math

import pytest

from dpaudit import (
    AddRemove,
    Gaussian,
    Invocation,
    Laplace,
    Mechanism,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    TrustModel,
    checker,
)
from dpaudit.accounting import guarantee
from dpaudit.certificate.witness import witness_of
from dpaudit.mechanisms import ConcentratedBlackBox, DiscreteGaussian, ExponentialMechanism, Opaque


def plan_of(mechanism: Mechanism, count: int = 1, rate: float | None = None) -> Plan:
    sampling = None if rate is None else PoissonSampling(rate)
    relation = ReplaceOne() if rate is None else AddRemove()
    return Plan.of(
        Invocation(
            mechanism, 1.0, PrivacyUnit("row"), relation, TrustModel.CENTRAL, count,
            sampling=sampling,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "grids"),
    [
        (plan_of(Gaussian(2.0), 10), False),
        (plan_of(Laplace(2.0)), False),
        (plan_of(ConcentratedBlackBox(0.1), 3), False),
        (plan_of(Gaussian(1.0), 1000, 0.01), True),
        (plan_of(Gaussian(0.6), 10**4, 1e-3), True),
        (plan_of(Laplace(3.0), 50), True),
        (plan_of(DiscreteGaussian(3.0), 20, 0.1), True),
        (plan_of(RandomizedResponse(0.9, 3), 200), True),
        (plan_of(ExponentialMechanism(0.2)), False),
    ],
)
def test_the_checker_proves_nearly_the_guarantee(plan, grids):
    found = guarantee(plan, 1e-6)
    witness = json.loads(json.dumps(witness_of(plan, found)))
    assert (witness["sets"] != [None]) == grids
    assert len(json.dumps(witness)) < 2000
    record = {"plan": plan.to_dict(), "guarantee": {"delta": 1e-6}, "witness": witness}
    proof = checker.prove(json.loads(json.dumps(record)))
    assert proof.epsilon is not None, proof.reason
    assert proof.epsilon >= found.epsilon - (found.error_bound or 0) - 1e-9
    assert proof.epsilon <= found.epsilon * 1.01
    assert witness["epsilon"] >= proof.epsilon


def test_what_the_checker_has_no_rule_for_has_no_witness():
    plan = plan_of(Opaque("ours", 1.0))

    class Stated:
        epsilon, delta = math.inf, 1e-6

    assert witness_of(plan, Stated()) is None  # type: ignore[arg-type]


def test_no_pure_guarantee_no_witness():
    class Stated:
        epsilon, delta = math.inf, 0.0

    assert witness_of(plan_of(Gaussian(1.0)), Stated()) is None  # type: ignore[arg-type]


def test_a_proof_is_refined_until_it_is_not_above_a_claim_near_the_guarantee():
    plan = plan_of(Gaussian(1.0), 1000, 0.01)
    found = guarantee(plan, 1e-6)
    record = {"plan": plan.to_dict(), "guarantee": {"delta": 1e-6}}
    claimed = found.epsilon * 1.0003
    loose, sharp = (
        checker.prove(record | {"witness": witness_of(plan, found, each)}).epsilon
        for each in (None, claimed)
    )
    assert loose is not None
    assert sharp is not None
    assert sharp <= claimed < loose
