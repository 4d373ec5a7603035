"""What the independent checker says of a certificate, and the witnesses that it reads."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from dpaudit import (
    AddRemove,
    Claim,
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
from dpaudit.base.errors import TamperedError
from dpaudit.certificate import (
    CheckRecord,
    Severity,
    SubjectRecord,
    Verdict,
    certify,
    check_of,
    lacks_check,
    load_certificate,
    verify,
    with_witness,
)
from dpaudit.certificate.checking import witness_of
from dpaudit.certificate.verification import recomputed
from dpaudit.mechanisms import ConcentratedBlackBox, DiscreteGaussian, ExponentialMechanism, Opaque

# What the independent checker says stands in a certificate, and a reader proves it again

ABOUT = PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL
SAMPLED = Plan.of(
    Invocation(Gaussian(1.0), 1.0, *ABOUT, count=30, sampling=PoissonSampling(0.05), at="steps")
)


def made(plan=SAMPLED, claim=None, **stated):
    bare = certify(plan, subject=SubjectRecord("plan"), claim=claim, **stated)
    return with_witness(bare)


@pytest.fixture(scope="module")
def sampled():
    return made(claim=Claim(2.5, 1e-5))


def test_a_sampled_plan_has_a_witness_and_a_second_number(sampled, tmp_path):
    assert sampled.verdict is Verdict.CERTIFIED
    assert sampled.guarantee.epsilon <= sampled.checked.epsilon < 1.01 * sampled.guarantee.epsilon
    read = load_certificate(sampled.save(tmp_path / "made.json"))
    assert (read.checked, read.witness) == (sampled.checked, sampled.witness)
    verify(read)
    assert lacks_check(read) == ""


def test_a_closed_form_needs_no_witness_to_be_checked():
    bare = certify(
        Plan.of(Invocation(Laplace(2.0), 1.0, *ABOUT, count=3)), subject=SubjectRecord("plan")
    )
    assert bare.checked is None
    assert check_of(bare).epsilon == pytest.approx(1.5, rel=1e-12)
    assert lacks_check(bare) == ""


def test_what_has_no_proof_is_not_checked():
    opaque = made(Plan.of(Invocation(Opaque("model", 1.0, 1e-6), 1.0, *ABOUT)))
    assert (opaque.witness, opaque.checked) == (None, None)
    without = made(Plan.of(Invocation(Gaussian(1.0), 1.0, *ABOUT)), delta=0.0)
    assert without.checked is None
    assert "proves nothing" in lacks_check(without)


def test_the_witness_is_left_out_where_it_is_not_wanted():
    bare = certify(SAMPLED, subject=SubjectRecord("plan"), delta=1e-5)
    assert with_witness(bare, wanted=False) == bare


def test_a_claim_below_what_the_checker_proves_lacks_it(sampled):
    near = replace(sampled, claim=Claim(sampled.guarantee.epsilon, 1e-5))
    assert "the checker proves ε ≤ 2.24456" in lacks_check(near)
    assert "judges only claims of an ε and a δ" in lacks_check(
        replace(sampled, claim=Claim.of(mu=1.0, delta=1e-5))
    )


def test_a_witness_that_is_refused_leaves_nothing_certified(monkeypatch):
    refused = {"schema": checker.SCHEMA, "sets": [None], "epsilon": 0.1}  # less than it proves
    monkeypatch.setattr("dpaudit.certificate.checking.witness_of", lambda *_: refused)
    wrong = made(Plan.of(Invocation(Laplace(2.0), 1.0, *ABOUT)), claim=Claim(1.0))
    assert wrong.verdict is Verdict.UNPROVEN
    (finding,) = (each for each in wrong.findings if each.rule == "checker-refuses")
    assert finding.severity is Severity.ERROR
    assert "Report" in finding.remedy
    assert wrong.checked.refused
    verify(wrong)
    assert recomputed(wrong).verdict is Verdict.UNPROVEN


@pytest.mark.parametrize(
    "change",
    [
        {"checked": {"epsilon": 1.0}},
        {"checked": {"delta": 1e-6}},
        {"checked": {"rules": ("proved by hand",)}},
        {"checked": {"refused": True}},
        {"witness": None},
        {"witness": {"schema": checker.SCHEMA, "sets": [None], "epsilon": 0.1}},
    ],
)
def test_what_the_checker_does_not_prove_is_tampered_with(sampled, change):
    for name, value in change.items():
        if name == "checked":
            edited = replace(sampled, checked=replace(sampled.checked, **value))
        else:
            edited = replace(sampled, witness=value)
    with pytest.raises(TamperedError, match="checke"):
        verify(edited)


def test_an_accountant_that_is_wrong_is_told(monkeypatch):
    """The note does not depend on why: a class equality once made .0088 of 3."""
    plan = Plan.of(Invocation(Laplace(1.0), 1.0, *ABOUT, count=3))
    bare = certify(plan, subject=SubjectRecord("plan"), claim=Claim(0.01))
    proved = replace(bare.guarantee, epsilon=0.0088)
    told = with_witness(replace(bare, guarantee=proved, findings=(), verdict=Verdict.CERTIFIED))
    assert told.checked.epsilon == pytest.approx(3.0)
    assert [each.rule for each in told.findings] == ["checked-is-larger"]
    assert (
        lacks_check(told) == "the checker proves ε ≤ 3 at δ = 0, and the claim is ε = 0.01, δ = 0."
    )


def test_a_finding_on_floats_is_not_left_out_nor_said_otherwise(sampled):
    for findings in ((), tuple(replace(each, severity=Severity.NOTE) for each in sampled.findings)):
        with pytest.raises(TamperedError, match="findings lacks 'float-noise'"):
            verify(replace(sampled, findings=findings))


def test_the_words_of_a_premise_are_those_that_follow(sampled):
    edited = tuple(replace(each, evidence="Proved by hand.") for each in sampled.assumptions)
    with pytest.raises(TamperedError, match="evidence of the assumption"):
        verify(replace(sampled, assumptions=edited))


def test_an_epsilon_beyond_floats_is_none():
    plan = Plan.of(Invocation(Gaussian(1e-300), 1.0, *ABOUT))
    vast = made(plan, delta=1e-5)
    assert vast.checked is None
    assert check_of(vast).reason == "its ε is too large for a float."
    verify(vast)


def test_a_record_says_what_it_proves():
    assert str(CheckRecord(1.5, 1e-6)) == "proves ε ≤ 1.5 at δ = 1e-06"
    assert str(CheckRecord(None, 0.0, (), "no rule.")) == "proves nothing: no rule"


def test_the_file_is_read_by_the_checker_alone(sampled, tmp_path):
    path = sampled.save(tmp_path / "made.json")
    proof = checker.prove(json.loads(path.read_text("utf-8")))
    assert float(proof.epsilon) <= sampled.checked.epsilon


# Witnesses that the package writes, as the checker reads them


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
        (plan_of(Gaussian(0.6), 100, 0.01), True),
        pytest.param(
            plan_of(Gaussian(0.6), 10**4, 1e-3), True, marks=pytest.mark.pages
        ),  # half a minute
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
    plan = plan_of(Gaussian(1.0), 100, 0.02)
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
