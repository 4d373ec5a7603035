"""Forged certificates whose hashes fit, of these versions and of others."""

import copy
from dataclasses import replace

import pytest
from examples import gaussian_invocation, response_plan

from dpaudit import (
    AddRemove,
    Claim,
    DiscreteLaplace,
    Finding,
    Gaussian,
    Plan,
    PoissonSampling,
    Severity,
)
from dpaudit.base.errors import TamperedError
from dpaudit.base.files import digest
from dpaudit.certificate import (
    AuditRecord,
    Certificate,
    Rehearsal,
    SubjectRecord,
    Verdict,
    certify,
    verify,
)

SUBJECT = SubjectRecord("tests:Answers")
CODE = SubjectRecord("survey:Survey", {}, "0" * 64, "survey.py:3")
SAMPLED = gaussian_invocation(
    mechanism=Gaussian(1.0), relation=AddRemove(), sampling=PoissonSampling(0.1), count=20
)
DISCRETE = Plan.of(
    gaussian_invocation(mechanism=DiscreteLaplace(3.0), relation=AddRemove(), count=20)
)
MADE = {
    "pure": certify(response_plan(), subject=SUBJECT, claim=Claim(1.0)).to_dict(),
    "gaussian": certify(Plan.of(gaussian_invocation()), subject=SUBJECT, delta=1e-5).to_dict(),
    "pld": certify(Plan.of(SAMPLED), subject=SUBJECT, delta=1e-5).to_dict(),
    "discrete": certify(DISCRETE, subject=SUBJECT, delta=1e-6).to_dict(),
    "rdp": certify(Plan.of(SAMPLED), subject=SUBJECT, delta=1e-5, accountant="rdp").to_dict(),
}
OTHER = {"dpaudit": "0.0.9", "python": "3.12.0"}


def forged(kind, change, versions):
    record = copy.deepcopy(MADE[kind])
    change(record)
    record["versions"] = versions or record["versions"]
    rest = {name: value for name, value in record.items() if name != "digest"}
    return Certificate.from_dict(rest | {"digest": digest(rest)})


def scaled(field, by):
    """Multiply a number, or every number of it, in the guarantee."""

    def change(record):
        record["guarantee"][field] = times(record["guarantee"][field], by)

    return change


def times(value, by):
    if isinstance(value, dict):
        return {name: times(each, by) for name, each in value.items()}
    if isinstance(value, list):
        return [times(each, by) for each in value]
    return value * by if isinstance(value, float) else value


def curve(points):
    return lambda record: record["guarantee"].update(curve=points)


def point(number, change):
    """Another δ at one point of the curve."""

    def changed(record):
        one = record["guarantee"]["curve"][number]
        one[1] = change(one[1])

    return changed


def below(most, by):
    """Points of a small δ, each a little too small."""

    def changed(record):
        small = [one for one in record["guarantee"]["curve"] if 0 < one[1] < most]
        assert len(small) > 2
        for one in small:
            one[1] *= by

    return changed


def test_assumptions_stand_as_they_follow() -> None:
    with pytest.raises(TamperedError, match="is said to be enforced; it is not applicable"):
        verify(forged("pure", lambda r: r["assumptions"][0].update(standing="enforced"), None))
    with pytest.raises(TamperedError, match="assumptions lack 'control flow"):
        verify(forged("pure", lambda r: r["assumptions"].pop(5), None))
    change = {"rests_on": ["sampling as declared and secret"]}
    with pytest.raises(TamperedError, match="rests_on of the assumption 'values within"):
        verify(forged("pure", lambda r: r["assumptions"][0].update(change), None))


def test_what_follows_for_readers_is_checked_when_it_is_read() -> None:
    with pytest.raises(TamperedError, match="scope is 'sealed'; it must be 'plan"):
        forged("pure", lambda r: r.update(scope="sealed"), None)
    law = {"kind": "x", "defined_in": "y", "labels": ["z"]}
    with pytest.raises(TamperedError, match="foreign is"):
        forged("pure", lambda r: r["foreign"]["mechanisms"].append(law), None)


@pytest.mark.parametrize("versions", [None, OTHER], ids=["same", "other"])
@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("pure", curve([[0.0, 1e-30]]), "guarantee.curve"),
        ("gaussian", curve([[0.0, 0.01], [0.7, 1e-5]]), "guarantee.curve"),
        ("pld", curve([[0.1, 1e-9]]), "guarantee.curve"),
        ("gaussian", point(-1, lambda delta: 0.0), "guarantee.curve"),
        ("pld", point(-1, lambda delta: 0.0), "guarantee.curve"),
        ("gaussian", below(1e-10, 0.99), "guarantee.curve"),
        ("pld", below(1e-10, 0.99), "guarantee.curve"),
        ("gaussian", scaled("native", 0.5), "guarantee.native"),
        ("pure", scaled("native", 0.5), "guarantee.native"),
        ("rdp", scaled("native", 0.5), "guarantee.native"),
        ("pure", lambda r: r["guarantee"]["native"].update(rho=0.01), "guarantee.native"),
        ("pld", scaled("error_bound", 1e-3), "guarantee.error_bound"),
        ("pld", scaled("compared", 0.5), "guarantee.compared"),
        ("pure", lambda r: r["guarantee"]["compared"].update(gaussian=0.1), "guarantee.compared"),
        ("pld", scaled("epsilon", 0.5), "guarantee.epsilon"),
        ("gaussian", lambda r: r["guarantee"].update(accountant="pure"), "guarantee.accountant"),
    ],
)
def test_nothing_stronger_than_is_proved(kind, change, message, versions):
    with pytest.raises(TamperedError, match=message):
        verify(forged(kind, change, versions))


def test_small_points_of_these_versions_are_the_same_digits_though_less_would_be_true():
    """Near its largest loss a discrete law has a δ far below the one that rounded ε is told at."""
    shrink = below(1e-10, 0.99)
    verify(forged("discrete", shrink, OTHER))
    with pytest.raises(TamperedError, match=r"guarantee\.curve"):
        verify(forged("discrete", shrink, None))


@pytest.mark.parametrize("kind", MADE)
def test_other_versions_may_differ_in_the_last_digits_and_state_less(kind):
    verify(forged(kind, lambda record: None, OTHER))
    verify(forged(kind, scaled("native", 1 + 1e-9), OTHER))
    own = MADE[kind]["guarantee"]["curve"]
    weaker = [[epsilon * 1.1, min(1.0, delta * 1.1)] for epsilon, delta in own]
    verify(forged(kind, curve(weaker), OTHER))
    with pytest.raises(TamperedError):
        verify(forged(kind, curve(weaker), None))


def test_audits_are_compared_with_the_claim_and_the_proof():
    def with_audit(tested, lower):
        record = AuditRecord(False, "m", tested, 0.0, lower, 0.95, 100, None, 1, None)
        return lambda content: content["audits"].append(record.to_dict())

    verify(forged("pure", with_audit(9.0, 0.9), None))
    with pytest.raises(TamperedError, match="not-the-declared-mechanism"):
        verify(forged("pure", with_audit(9.0, 1.5), None))
    with pytest.raises(TamperedError, match="recorded as not refuting"):
        verify(forged("pure", with_audit(1.2, 1.5), None))


@pytest.mark.parametrize("versions", [None, OTHER], ids=["same", "other"])
def test_findings_bind_the_verdict(versions):
    error = Finding("no-noise", Severity.ERROR, "x").to_dict()
    with pytest.raises(TamperedError, match="verdict is certified"):
        verify(forged("pure", lambda r: r["findings"].append(error), versions))
    invented = Finding("claim-exceeded", Severity.NOTE, "x").to_dict()
    with pytest.raises(TamperedError, match="does not follow"):
        verify(forged("pure", lambda r: r["findings"].append(invented), versions))

    def milder(record):
        record["findings"][0]["severity"] = "note"

    with pytest.raises(TamperedError, match=r"findings lacks|does not follow"):
        verify(forged("pure", lambda r: (r["claim"].update(epsilon=0.5), milder(r)), versions))


def test_a_remedy_is_that_of_these_versions():
    def change(record):
        record["findings"][0]["remedy"] = "Nothing is to be done."

    assert MADE["gaussian"]["findings"][0]["rule"] == "float-noise"
    with pytest.raises(TamperedError, match="findings lacks 'float-noise'"):
        verify(forged("gaussian", change, None))
    verify(forged("gaussian", change, OTHER))


def test_what_was_not_rehearsed_though_it_should_be_is_not_certified():
    made = certify(Plan.of(SAMPLED), subject=CODE, delta=1e-5)
    undone = made.with_rehearsal(Rehearsal(reason="It ended in an error (ValueError)."))
    assert (made.verdict, undone.verdict) == (Verdict.CERTIFIED, Verdict.UNPROVEN)
    assert undone.with_audits(()).verdict is Verdict.UNPROVEN
    verify(undone)
    with pytest.raises(TamperedError, match="verdict is certified"):
        verify(replace(undone, verdict=Verdict.CERTIFIED))
