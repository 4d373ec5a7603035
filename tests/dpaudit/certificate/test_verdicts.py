"""The one rule of verdicts, against every kind of evidence."""

from dataclasses import replace

import pytest
from audit_records import attack
from examples import gaussian_invocation, response_plan

from dpaudit import Claim, Finding, Opaque, Plan, Severity, TamperedError, Verdict
from dpaudit.certificate import SubjectRecord, certify, verify
from dpaudit.certificate.verdicts import NOT_DECLARED, OF_EQUALS

SUBJECT = SubjectRecord("tests:Answers")


def audit(*, tested, lower, refuted=None, delta=0.0, **fields):
    refuted = lower > tested if refuted is None else refuted
    stated = {"claim_epsilon": tested, "delta": delta, "epsilon_lower": lower, "confidence": 0.95}
    return attack(refuted=refuted, **(stated | fields))


def judged(claim, *audits, findings=()):
    """Of a plan that is 1-private, and no less."""
    made = certify(response_plan(), subject=SUBJECT, claim=claim, findings=findings)
    found = made.with_audits(audits)
    verify(found)
    assert made.with_audits(audits[:1]).with_audits(audits[1:]) == found
    return found.verdict, NOT_DECLARED in [each.rule for each in found.findings]


@pytest.mark.parametrize(
    ("claim", "found", "verdict", "beyond"),
    [
        (Claim(1.0), audit(tested=1.0, lower=0.9), Verdict.CERTIFIED, False),
        (Claim(1.0), audit(tested=1.0, lower=1.2), Verdict.REFUTED, True),
        # a stronger statement than the claim is refuted: nothing is said of the claim
        (Claim(1.0), audit(tested=0.1, lower=0.9), Verdict.CERTIFIED, False),
        (Claim(2.0), audit(tested=0.1, lower=0.9), Verdict.CERTIFIED, False),
        # it withstands a weaker statement, and yet is above the claim
        (Claim(1.0), audit(tested=9.0, lower=1.2), Verdict.REFUTED, True),
        # above the proof, below a loose claim
        (Claim(6.0), audit(tested=6.0, lower=4.8), Verdict.UNPROVEN, True),
        (Claim(6.0), audit(tested=1.0, lower=4.8), Verdict.UNPROVEN, True),
        # the claim has a larger δ than what was refuted, but the proof is pure
        (Claim(1.0, 1e-3), audit(tested=1.0, lower=1.2), Verdict.UNPROVEN, True),
        (Claim(1.0), audit(tested=1.0, lower=1.2, delta=1e-3), Verdict.REFUTED, True),
        # without a claim the guarantee is what is stated
        (None, audit(tested=1.0, lower=1.2), Verdict.REFUTED, True),
        (None, audit(tested=0.1, lower=0.9), Verdict.CERTIFIED, False),
        # no bound, or a whole curve: the verdict of the audit counts
        (Claim(1.0), audit(tested=1.0, lower=None, refuted=True), Verdict.REFUTED, True),
        (Claim(6.0), audit(tested=2.0, lower=None, refuted=True), Verdict.UNPROVEN, True),
        # exact audits are as good as floats
        (Claim(1.0), audit(tested=1.0, lower=1 + 1e-12, refuted=False), Verdict.CERTIFIED, False),
    ],
)
def test_one_audit(claim, found, verdict, beyond):
    assert judged(claim, found) == (verdict, beyond)


def test_a_rejected_curve_is_not_the_declared_mechanism():
    details = {"rejected_by": ["curve"], "null": "the plan's whole curve δ(ε)"}
    found = audit(tested=0.9, lower=0.8, refuted=True, details=details)
    assert judged(Claim(1.0), found) == (Verdict.UNPROVEN, True)
    own_curve = replace(found, details={"rejected_by": ["curve"], "null": "(ε, δ) alone"})
    assert judged(Claim(1.0), own_curve) == (Verdict.CERTIFIED, False)


@pytest.mark.parametrize(
    ("pair", "noted"),
    [
        ([2, 2], True),
        ({"x": [1, [2.5]], "x_prime": [1, [2.5]]}, True),
        ({"x": [1, [2.5]], "x_prime": [1, [2]]}, False),
        ([2, 2, 2], False),
        ("22", False),
        (None, False),
    ],
)
def test_an_attack_on_equals_is_told(pair, noted):
    found = audit(tested=1.0, lower=0.5, pair=pair)
    made = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0)).with_audits([found])
    assert [each.rule for each in made.findings if each.rule == OF_EQUALS] == [OF_EQUALS] * noted
    assert made.verdict is Verdict.CERTIFIED
    assert found.is_of_a_pair is (not noted and isinstance(pair, dict))
    told = replace(found, details={"equals": True})
    assert told.is_of_equals
    assert not told.is_of_a_pair
    assert not replace(told, refuted=True).is_of_equals
    verify(made)
    verify(made.with_audits([replace(found, pair=[0, 1])]))
    if noted:
        hidden = [each for each in made.findings if each.rule != OF_EQUALS]
        with pytest.raises(TamperedError, match="follows from the audits"):
            verify(replace(made, findings=tuple(hidden)))


def test_evidence_adds_up_in_any_order():
    worse, fine = audit(tested=6.0, lower=4.8), audit(tested=1.0, lower=0.5)
    beyond = audit(tested=6.0, lower=2.0)
    for audits in [(worse, fine, beyond), (beyond, worse), (fine, beyond, worse)]:
        assert judged(Claim(6.0), *audits) == (Verdict.UNPROVEN, True)
    assert judged(Claim(4.0), beyond, worse, fine) == (Verdict.REFUTED, True)


def test_where_nothing_is_stated_a_refutation_stays_one():
    plan = Plan.of(gaussian_invocation(mechanism=Opaque("sketch", 1.0)))
    made = certify(plan, subject=SUBJECT)
    assert made.with_audits([audit(tested=1.0, lower=2.0)]).verdict is Verdict.REFUTED


@pytest.mark.parametrize("severity", Severity)
def test_an_error_takes_the_ground_from_the_proof(severity):
    finding = Finding("no-noise", severity, "The code adds no noise.")
    verdict, _ = judged(Claim(1.0), audit(tested=1.0, lower=0.5), findings=[finding])
    assert (verdict is Verdict.CERTIFIED) is (severity is not Severity.ERROR)
    made = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0), findings=[finding])
    assert made.disputed == (("no-noise",) if severity is Severity.ERROR else ())


def test_an_exceeded_claim_does_not_dispute_the_proof():
    made = certify(response_plan(), subject=SUBJECT, claim=Claim(0.5))
    assert made.claim_exceeded
    assert made.disputed == ()


@pytest.mark.parametrize(("delta", "warned"), [(1e-6, False), (0.09, False), (0.1, True)])
def test_a_large_delta_is_named(delta, warned):
    for made in (
        certify(response_plan(), subject=SUBJECT, claim=Claim(0.5, delta)),
        certify(response_plan(), subject=SUBJECT, claim=Claim(1.0), delta=delta),
    ):
        assert ("large-delta" in [each.rule for each in made.findings]) is warned
        verify(made)
