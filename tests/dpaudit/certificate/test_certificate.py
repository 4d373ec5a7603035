import json
import math
from dataclasses import replace

import pytest
from audit_records import attack
from examples import Answers, gaussian_invocation, response_plan

from dpaudit import Claim, Finding, Opaque, Plan, Severity, Verdict
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.certificate import (
    Certificate,
    Rehearsal,
    SubjectRecord,
    certify,
    load_certificate,
    verify,
)
from dpaudit.certificate.assumptions import THIRD
from dpaudit.certificate.certificate import certificate_schema, written_as
from dpaudit.certificate.verdicts import beyond_proof
from dpaudit.mechanisms import ExponentialMechanism, StableHistogram

SUBJECT = SubjectRecord("tests:Answers")
AUDIT = attack(refuted=True, epsilon_lower=1.7, confidence=0.95, event="y ≥ 1", pair=[2, -2])


def test_certified_exactly():
    certificate = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0))
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon == 1.0
    assert certificate.guarantee.delta == 0.0


def test_a_certificate_is_printed_in_a_few_lines():
    certificate = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0))
    title, _, *facts = str(certificate).splitlines()
    assert title == "✓ Certified: the plan: tests:Answers"
    assert facts == [
        "  verdict   certified, of the plan",
        "  protects  one response (replace-one, local)",
        "  claimed   ε = 1, δ = 0",
        "  proved    ε = 1 at δ = 0",
        "  findings  float-noise. 1 warning needs a decision.",
    ]
    nothing = Plan.of(gaussian_invocation(mechanism=Opaque("sketch", 1.0)))
    told = str(certify(nothing, subject=SUBJECT, delta=1e-5)).splitlines()
    assert "  verdict   unproven, of the plan" in told
    assert "  proved    nothing" in told


def test_claim_exceeded_is_unproven_and_named():
    certificate = certify(response_plan(), subject=SUBJECT, claim=Claim(0.5))
    assert certificate.verdict is Verdict.UNPROVEN
    assert certificate.claim_exceeded
    assert certificate.findings[0].rule == "claim-exceeded"


def test_a_claim_holds_up_to_the_rounding_of_its_decimals():
    """Five times the float 0.2 is above 1; five times the decimal is 1."""
    choices = Plan.of(gaussian_invocation(mechanism=ExponentialMechanism(0.2), count=5))
    for claim in (Claim(1.0), Claim.of(curve=[[1.0, 0.0]])):
        made = certify(choices, subject=SUBJECT, claim=claim)
        assert made.guarantee.epsilon > 1.0
        assert made.verdict is Verdict.CERTIFIED
        verify(made)
    below = certify(choices, subject=SUBJECT, claim=Claim(1.0 - 1e-11))
    assert below.verdict is Verdict.UNPROVEN
    assert below.claim_exceeded
    at = replace(AUDIT, claim_epsilon=1.0, refuted=True, confidence=0.95, epsilon_lower=None)
    assert beyond_proof(made.guarantee, at) is not None  # it refutes what is proved


def test_a_claim_is_judged_at_its_own_delta():
    plan = Plan.of(gaussian_invocation(sigma=3.7307))
    held = certify(plan, subject=SUBJECT, claim=Claim(1.0, 1e-5), delta=1e-9)
    assert held.verdict is Verdict.CERTIFIED
    assert held.guarantee.epsilon > 1
    broken = certify(plan, subject=SUBJECT, claim=Claim(1.0, 1e-9), delta=0.1)
    assert broken.guarantee.epsilon < 1
    assert broken.claim_exceeded
    pure = certify(plan, subject=SUBJECT, claim=Claim(1.0), delta=0.1)
    assert pure.verdict is Verdict.UNPROVEN
    assert not pure.claim_exceeded
    wanted = certify(plan, subject=SUBJECT, claim=Claim(1.0, 1e-5), delta=0.0)
    assert wanted.verdict is Verdict.CERTIFIED
    verify(wanted)
    for certificate in (held, broken, pure):
        verify(certificate)


def test_rules_that_decide_are_reserved():
    mine = Finding("claim-exceeded", Severity.NOTE, "mine")
    with pytest.raises(InputError, match="reserved"):
        certify(response_plan(), subject=SUBJECT, findings=[mine])


def test_opaque_is_unproven_and_an_audit_refutes():
    plan = Plan.of(gaussian_invocation(mechanism=Opaque("sketch", 1.0, 1e-5)))
    certificate = certify(plan, subject=SUBJECT, claim=Claim(1.0, 1e-5))
    assert certificate.verdict is Verdict.UNPROVEN
    assert certificate.guarantee is None
    assert "sketch" in certificate.findings[0].message
    stronger = certificate.with_audits([AUDIT])  # δ = 0 is not what is claimed
    assert stronger.verdict is Verdict.UNPROVEN
    refuted = certificate.with_audits([replace(AUDIT, delta=1e-5)])
    assert refuted.verdict is Verdict.REFUTED
    verify(refuted)


def test_delta_comes_from_the_claim_or_must_be_given():
    plan = Plan.of(gaussian_invocation(sigma=4.0))
    assert certify(plan, subject=SUBJECT, claim=Claim(9, 1e-6)).guarantee.delta == 1e-6
    assert certify(plan, subject=SUBJECT, delta=1e-4).guarantee.delta == 1e-4
    with pytest.raises(InputError, match=r"delta is missing.* by --delta, or in \[claim\]"):
        certify(plan, subject=SUBJECT)
    with pytest.raises(InputError, match="delta is 1"):
        certify(plan, subject=SUBJECT, delta=1.0)
    unproven = certify(plan, subject=SUBJECT, delta=0.0)
    assert unproven.verdict is Verdict.UNPROVEN
    assert "pure" in unproven.findings[0].message


def test_json_round_trip_and_schema(tmp_path):
    certificate = certify(
        response_plan(), subject=SUBJECT, claim=Claim(1.0), not_covered=["timing"]
    ).with_audits([replace(AUDIT, epsilon_lower=float("inf"))])
    path = certificate.save(tmp_path / "c.json")
    again = load_certificate(path)
    assert again.to_dict() == certificate.to_dict()
    verify(again)
    assert certificate_schema()["title"].endswith("version 3")


@pytest.mark.parametrize("number", [1, 2])
def test_older_files_are_read_verified_and_written_as_what_they_are(number):
    made = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0))
    made = made.with_rehearsal(Rehearsal("numbers", 3, 5, ("row 1 removed",), draws=700))
    name = f"dpaudit-certificate/{number}"
    record = resealed(written_as(name, made.to_dict() | {"schema": name}))
    if number == 2:  # in which no premise rests on another
        old = [each for each in made.assumptions if each.premise not in THIRD]
        plain = [{"standing": str(each.alone), **told(each)} for each in old]
        record = resealed(record | {"assumptions": plain})
    again = Certificate.from_dict(record)
    assert again.to_dict() == record
    verify(again)
    assert len(again.assumptions) == (0, 9)[number - 1]
    assert again.with_audits([AUDIT]).schema == made.schema
    if number == 2:
        record["assumptions"][1]["standing"] = "enforced"
        with pytest.raises(TamperedError, match="is said to be enforced; it is not applicable"):
            verify(Certificate.from_dict(resealed(record)))


def told(assumption):
    return {"premise": str(assumption.premise), "evidence": assumption.evidence}


def tampered(**changes):
    record = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0)).to_dict()
    return record | changes


def resealed(record):
    from dpaudit.base.files import digest

    rest = {name: value for name, value in record.items() if name != "digest"}
    return rest | {"digest": digest(rest)}


def test_edits_are_detected():
    with pytest.raises(TamperedError, match="digest"):
        Certificate.from_dict(tampered(seed=7))
    record = tampered()
    record["plan"]["invocations"][0]["count"] = 2
    with pytest.raises(TamperedError, match="plan_hash"):
        Certificate.from_dict(resealed(record))


def test_a_guarantee_that_does_not_follow_is_detected():
    record = tampered()
    record["guarantee"]["epsilon"] = 0.5
    with pytest.raises(TamperedError, match=r"guarantee.epsilon is 0.5"):
        verify(Certificate.from_dict(resealed(record)))
    record = resealed(tampered(verdict="unproven"))
    with pytest.raises(TamperedError, match="verdict is unproven"):
        verify(Certificate.from_dict(record))


def forged_guarantee(**changes):
    record = tampered()
    return {"guarantee": record["guarantee"] | changes}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guarantee": None}, "guarantee is missing"),
        (forged_guarantee(epsilon=None), "guarantee.epsilon is inf"),
        (forged_guarantee(curve=[[0, 1e-30]]), "guarantee.curve"),
        (forged_guarantee(curve=[]), "guarantee.curve"),
        (forged_guarantee(native={}), "guarantee.native"),
        (forged_guarantee(error_bound=0.3), "guarantee.error_bound"),
        (forged_guarantee(compared={"pure": 0.1}), "guarantee.compared"),
        ({"claim": {"epsilon": 0.5, "delta": 0.0}}, "findings lacks 'claim-exceeded'"),
        ({"audits": [replace(AUDIT, refuted=False).to_dict()]}, "recorded as not refuting"),
        ({"audits": [AUDIT.to_dict()]}, "findings lacks 'not-the-declared-mechanism'"),
    ],
)
def test_forgeries_with_a_fitting_digest_are_detected(change, message):
    with pytest.raises(TamperedError, match=message):
        verify(Certificate.from_dict(resealed(tampered() | change)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "dpaudit-certificate/9"}, "schema is 'dpaudit-certificate/9'"),
        ({"verdict": "fine"}, "verdict does not follow"),
        ({"extra": 1}, "does not follow the schema"),
        ({"plan_hash": "x"}, "plan_hash does not follow"),
        ({"findings": [{}]}, "findings.0 does not follow"),
    ],
)
def test_bad_structure_is_named(change, message):
    with pytest.raises(InputError, match=message):
        Certificate.from_dict(resealed(tampered(**change)))


def test_a_file_that_was_edited_is_told_as_such_whatever_its_structure():
    """Else whoever misspelt a key would read what a validator says of a whole record."""
    record = tampered()
    record["gaurantee"] = record.pop("guarantee")
    with pytest.raises(TamperedError, match="its digest does not match"):
        Certificate.from_dict(record)


def test_bad_files(tmp_path):
    path = tmp_path / "c.json"
    with pytest.raises(InputError, match="does not exist"):
        load_certificate(path)
    for record in ([], {"version": 1}):
        path.write_text(json.dumps(record))
        with pytest.raises(InputError, match=r"c.json' is no certificate; give JSON with a schema"):
            load_certificate(path)
    path.write_text('{"schema": "dpaudit-certificate/99"}')
    with pytest.raises(InputError, match=r"its schema is 'dpaudit-certificate/99'; this version"):
        load_certificate(path)
    for other, said in [("payload", "a signed envelope"), ("releases", "an export of a book")]:
        path.write_text(json.dumps({other: []}))
        with pytest.raises(InputError, match=f"{said}, not a certificate; dpaudit verify"):
            load_certificate(path)
    with pytest.raises(InputError, match="is a report; give its certificate"):
        load_certificate(tmp_path / "c.pdf")
    whole = json.dumps(tampered())
    path.write_text(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not JSON"):
        load_certificate(path)


def test_a_threshold_that_is_too_low_is_named():
    use = replace(Answers().plan().invocations[0], mechanism=StableHistogram(1.0, 5.0))
    use = replace(use, sensitivity=1.0)
    certificate = certify(Plan.of(use), subject=SUBJECT, claim=Claim(1.0, 1e-6))
    (found,) = [each for each in certificate.findings if each.rule == "unproven"]
    told = math.exp(-4) / (1 + math.exp(-1))  # the theorem's q, by which a new key is told
    assert "Raise the threshold of stable-histogram" in found.remedy
    assert found.remedy.endswith(f"released with probability {told:.3g}.")
    verify(certificate)


def test_subjects_state_no_more_than_their_plan():
    subject = Answers(epsilon=0.3)
    certificate = certify(subject.plan(), subject=SUBJECT, claim=subject.claim())
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon <= 0.3
