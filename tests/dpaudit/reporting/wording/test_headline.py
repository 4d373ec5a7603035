"""The sentences of the first screen."""

from dataclasses import replace

import pytest

from dpaudit import (
    Claim,
    Verdict,
)
from dpaudit.certificate import AuditRecord, Rehearsal, SubjectRecord, certify
from dpaudit.project.audit_request import AuditRequest
from dpaudit.reporting.wording.headline import headline, strongest_refutation
from dpaudit.workflow.functions import hypothesis


def test_certified(certificates):
    said = headline(certificates["certified"])
    assert said.label == "Certified: the plan"
    assert said.sentence == (
        "If the code does what the plan declares, someone who sees everything that leaves your "
        "device can improve a 50:50 guess about "
        "which of two answers you gave to at most 69.7 %."
    )
    assert "The claim (ε = 1, δ = 0) is proved." in said.details
    assert said.open_points == "2 warnings need a decision."
    assert any("It speaks of the plan alone" in detail for detail in said.details)


@pytest.mark.parametrize(
    ("ledger", "words"),
    [
        ({"seeded": True, "samplers": {"numpy 2": 1}}, "an experiment, no deployment"),
        ({"seeded": False, "samplers": {"numpy 2": 1}}, "in floating point, by explicit choice"),
        ({"seeded": False, "samplers": {"opendp 0.12, exact": 1}}, None),
        (
            {"seeded": False, "samplers": {"numpy 2": 1}, "external": {"numpy 2": 1}},
            "Other libraries drew noise of its run: 'numpy 2'.",
        ),
    ],
)
def test_how_the_noise_of_a_run_was_drawn(certificates, ledger, words):
    run = {"summary": {}, "series": {}, "ledger": {"entries": 1, **ledger}}
    said = " ".join(headline(replace(certificates["certified"], run=run)).details)
    assert ("noise of its run" in said) == (words is not None)
    assert words is None or words in said


def test_certified_with_the_code(certificates):
    rehearsal = Rehearsal("numbers", 0, 3, ("row 1 removed",))
    said = headline(certificates["certified"].with_rehearsal(rehearsal))
    assert said.label == "Certified: the plan and the code"
    assert said.sentence.startswith("Someone who sees everything that leaves your device can")
    assert any("the plan and of the code that was rehearsed" in line for line in said.details)


def test_the_whole_curve_bounds_the_guess(certificates):
    """Total variation of Laplace noise at distance 1 scale: 1 − e^−1/2."""
    proved = headline(certificates["certified"]).odds.proved
    assert proved == pytest.approx((1 + 0.393469340287) / 2)
    assert proved >= (1 + 0.393469340287) / 2


def test_each_kind_of_claim_is_told_in_its_own_numbers(certificates):
    for claim, limit in (
        (Claim.of(advantage=0.5), 0.75),
        (Claim.of(success=0.8), 0.8),
        (Claim.of(curve=[[0.0, 0.4], [1.0, 0.0]]), 0.7),
    ):
        plan = certificates["certified"].plan
        said = headline(certify(plan, subject=SubjectRecord("tests:X"), claim=claim))
        assert f"The claim ({claim}) is proved." in said.details
        assert said.odds.claimed == pytest.approx(limit)
    beyond = certify(plan, subject=SubjectRecord("tests:X"), claim=Claim.of(advantage=0.2))
    assert "promises that" in headline(beyond).sentence
    assert "at most 60 %, but the proof allows 69.7 %" in headline(beyond).sentence
    assert "curve" not in " ".join(headline(certificates["bare"]).details)


def attacked(claim, **changes):
    """A function that was attacked, and of which nothing else is known."""
    given = {"epsilon_lower": 0.5, "refuted": False, "power": "Noise 20 % smaller would be found."}
    facts = {"claim_epsilon": claim.epsilon, "delta": claim.delta, **given, **changes}
    about = {"confidence": 0.95, "runs": 500, "event": None, "seed": 1, "pair": [0, 1]}
    record = AuditRecord(method="threshold", **facts, **about)
    return certify(
        hypothesis(AuditRequest("code.py:f", claim=claim)).target.plan,
        subject=SubjectRecord("code.py:f"),
        claim=claim,
    ).with_audits([record])


def test_an_audit_alone_is_headed_by_what_was_attacked():
    said = headline(attacked(Claim(1.0)))
    assert said.label == "Not refuted"
    assert said.sentence == (
        "An attack of 500 runs on each of two neighbouring data sets does not refute the claim "
        "that code.py:f keeps to ε = 1, δ = 0."
    )
    assert said.details[0] == "Noise 20 % smaller would be found."
    assert "certainty" not in " ".join([said.sentence, *said.details])
    said = headline(attacked(Claim(1.0), epsilon_lower=1.5, refuted=True))
    assert said.label == "Refuted"
    assert "two neighbouring data sets refutes the claim that code.py:f" in said.sentence
    assert said.details[0].startswith("It shows that ε is at least 1.5 at δ = 0")


def test_what_a_whole_curve_refutes_is_not_told_by_a_bound_below_it():
    said = headline(attacked(Claim.of(mu=1.0), refuted=True))
    assert said.details[0] == (
        "It shows that μ = 1 and what follows from it is exceeded (confidence 95 %)."
    )


def test_without_a_claim(certificates):
    said = headline(certificates["bare"])
    assert "no claim to compare" in " ".join(said.details)
    assert said.odds.claimed is None
    assert said.open_points == ""


def test_exceeded_says_what_is_proved_beside_what_is_claimed(certificates):
    said = headline(certificates["exceeded"])
    assert said.sentence.startswith("The claim is not proved: it promises that someone who sees")
    assert "to at most 52.5 %" in said.sentence
    assert said.odds.proved > said.odds.claimed


@pytest.mark.parametrize("kind", ["opaque", "unbounded"])
def test_nothing_proved(certificates, kind):
    said = headline(certificates[kind])
    assert said.sentence.startswith("Nothing is proved")
    assert "certainty" in said.sentence
    assert said.odds.proved is None


def test_refuted_shows_the_strongest_attack(certificates):
    certificate = certificates["refuted"]
    said = headline(certificate)
    assert said.label == "Refuted"
    assert said.sentence.startswith("The claim does not hold")
    details = " ".join(said.details)
    assert "123457 runs shows that ε is at least 1.93456 at δ = 0" in details
    assert "where at most 1 is claimed (confidence 99.9999 %)" in details
    assert strongest_refutation(certificate) is certificate.audits[0]


def test_an_attack_beyond_the_proof_takes_the_proof_off_the_first_screen(certificates):
    said = headline(certificates["refuted"])
    assert said.odds.contradicted
    assert said.odds.proved is None
    assert "what was attacked is not what the plan declares" in " ".join(said.details)


def test_an_attack_within_the_proof_leaves_it(certificates):
    certificate = certificates["refuted"]
    audits = tuple(replace(a, epsilon_lower=0.8, claim_epsilon=0.5) for a in certificate.audits)
    held = replace(certificate, audits=audits, claim=Claim(0.5), findings=())
    said = headline(held)
    assert not said.odds.contradicted
    assert said.odds.proved is not None
    assert "is not contradicted by this attack" in " ".join(said.details)


def test_exact_and_unbounded_refutations(certificates):
    exact = replace(certificates["hostile"].audits[0], confidence=None)
    said = headline(replace(certificates["hostile"], audits=(exact,)))
    assert "An exact computation shows that no finite ε holds at δ = 0" in " ".join(said.details)


def test_refuted_without_a_bound_or_an_audit(certificates):
    bare = replace(certificates["refuted"].audits[0], epsilon_lower=None)
    said = headline(replace(certificates["refuted"], audits=(bare,)))
    assert "ε = 1 at δ = 0 is exceeded" in " ".join(said.details)
    said = headline(replace(certificates["refuted"], audits=()))
    assert "no audit that shows it" in said.sentence


def test_verdicts_differ_on_the_first_screen(certificates):
    kinds = ("certified", "opaque", "refuted")
    said = [headline(certificates[kind]) for kind in kinds]
    assert [one.verdict for one in said] == [Verdict.CERTIFIED, Verdict.UNPROVEN, Verdict.REFUTED]
    assert len({one.label for one in said}) == len({one.sentence for one in said}) == 3
