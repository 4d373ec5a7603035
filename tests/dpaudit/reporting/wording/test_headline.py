"""The sentences of the first screen."""

from dataclasses import replace

import pytest

from dpaudit import (
    AddRemove,
    Claim,
    MetricBall,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
    Verdict,
    ZeroOut,
)
from dpaudit.reporting.checklists import checklists
from dpaudit.reporting.checklists.model import Status
from dpaudit.reporting.wording import words
from dpaudit.reporting.wording.headline import headline, strongest_refutation
from dpaudit.reporting.wording.statement import statement


def test_certified(certificates):
    said = headline(certificates["certified"])
    assert said.sentence == (
        "Someone who sees everything that leaves your device can improve a 50:50 guess about "
        "which of two answers you gave to at most 73.2 %."
    )
    assert "The claim (ε = 1, δ = 0) is proved." in said.details
    assert said.open_points == "2 warnings need a decision."


def test_whole_curve_bounds_the_guess_further(certificates):
    """Total variation of Laplace noise at distance 1 scale: 1 − e^−1/2."""
    details = " ".join(headline(certificates["certified"]).details)
    assert "at most 69.7 %" in details  # (1 + 0.393470) / 2, rounded up
    assert "curve" not in " ".join(headline(certificates["bare"]).details)


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


@pytest.mark.parametrize(
    ("relation", "asked"),
    [
        (AddRemove(), "whether you took part"),
        (ReplaceOne(), "which of two answers you gave"),
        (ZeroOut(), "whether your data were used"),
        (MetricBall(0.25), "differ by at most 0.25"),
    ],
)
def test_relations_in_words(certificates, relation, asked):
    plan = certificates["bare"].plan
    changed = Plan(tuple(replace(i, relation=relation) for i in plan.invocations))
    assert asked in headline(replace(certificates["bare"], plan=changed)).sentence
    assert "one household" in words.neighbours(relation, PrivacyUnit("household"))


@pytest.mark.parametrize("trust", TrustModel)
def test_every_trust_model_has_words(certificates, trust):
    plan = certificates["bare"].plan
    changed = Plan(tuple(replace(i, trust=trust) for i in plan.invocations))
    assert words.adversary(trust) in headline(replace(certificates["bare"], plan=changed)).sentence
    assert words.TRUST[trust].lower().startswith(trust.value)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_mixed_trust_promises_the_weakest(certificates, order):
    """A server that holds raw data sees more than what leaves a device."""
    use = certificates["bare"].plan.invocations[0]
    both = [replace(use, trust=t, at=t) for t in (TrustModel.LOCAL, TrustModel.CENTRAL)]
    plan = Plan(tuple(both[n] for n in order))
    mixed = replace(certificates["bare"], plan=plan)
    said = headline(mixed).sentence
    assert words.adversary(TrustModel.CENTRAL) in said
    assert words.adversary(TrustModel.LOCAL) not in said
    told = words.trusted(plan)
    assert "no more than the weakest of these, central" in told[0]
    assert told[1:] == (words.TRUST[TrustModel.CENTRAL],)
    assert set(told) < set(statement(mixed).setting)
    assert not set(told) & set(statement(certificates["bare"]).setting)
    items = {item.rule: item for one in checklists(mixed) for item in one.items}
    assert "publishes" in items["dpfy-setting"].reason
    assert "device" not in items["dpfy-setting"].reason
    assert items["label-deployment"].reason.endswith("no more than central.")
    assert items["nist-trust-assumptions"].status is Status.UNKNOWN
