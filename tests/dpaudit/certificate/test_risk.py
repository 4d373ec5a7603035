"""Claims of a risk, against mechanisms whose whole trade-off curve is known."""

import math

import pytest
from accounting_builders import plan, use
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpaudit.accounting import CurvePoint, compose
from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.base.errors import InputError
from dpaudit.certificate import (
    AuditRecord,
    Certificate,
    Claim,
    SubjectRecord,
    Verdict,
    certify,
    verify,
)
from dpaudit.certificate.claimed_points import PointsCurve
from dpaudit.certificate.risk import RISKS
from dpaudit.certificate.verdicts import contradicts
from dpaudit.mechanisms import ApproximateBlackBox, Gaussian

SUBJECT = SubjectRecord("tests:Risk")
KINDS = [
    {"epsilon": 1.0, "delta": 1e-3},
    {"advantage": 0.1},
    {"tpr": 0.1, "fpr": 0.01},
    {"tpr": 0.97, "fpr": 0.9},
    {"success": 0.8, "prior": 0.7},
    {"mu": 0.5},
    {"mu": 0.5, "delta": 1e-6},
    {"rho": 0.1},
    {"curve": [[0.2, 0.1], [1.0, 1e-4]]},
]


def audit(*, lower, delta, tested=9.0, refuted=False):
    return AuditRecord(refuted, "threshold", tested, delta, lower, 0.95, 100, None, 1, [0, 1])


def normal_tpr(mu, fpr):
    """Dong, Roth and Su 2022, Equation (6)."""
    return norm.cdf(mu - norm.isf(fpr))


@pytest.mark.parametrize("stated", KINDS, ids=str)
def test_a_claim_comes_back_from_its_record(stated):
    claim = Claim.of(**stated, source="page 3")
    assert Claim.from_dict(claim.to_dict()) == claim
    made = certify(plan(use(Gaussian(20.0))), subject=SUBJECT, claim=claim)
    assert made.verdict is Verdict.CERTIFIED
    read = Certificate.from_dict(made.to_dict())
    assert read == made
    verify(read)


@pytest.mark.parametrize("stated", KINDS, ids=str)
def test_what_follows_from_a_claim_is_kept_by_all_that_keep_it(stated):
    """Of Gaussian noise, the least that keeps the claim has a curve within what is tested."""
    claim = Claim.of(**stated)
    low, high = 1e-3, 10.0
    for _ in range(24):
        middle = math.sqrt(low * high)
        kept = claim.excess(compose(plan(use(Gaussian(1 / middle))))) is None
        low, high = (middle, high) if kept else (low, middle)
    whole = GaussianComposition(low)
    for epsilon in (0.0, 0.1, claim.epsilon, 1.0, 3.0):
        assert whole.delta(epsilon).lower <= claim.implied.delta(epsilon).upper + 1e-9
    assert whole.delta(claim.epsilon).lower <= claim.delta + 1e-9
    assert all(whole.delta(p.epsilon).lower <= p.delta + 1e-9 for p in claim.points)


@pytest.mark.parametrize(
    ("stated", "sigma"),
    [
        ({"advantage": 2 * norm.cdf(0.25) - 1}, 2.0),
        ({"tpr": normal_tpr(0.5, 0.01), "fpr": 0.01}, 2.0),
        ({"tpr": normal_tpr(0.5, 0.8), "fpr": 0.8}, 2.0),
        ({"success": norm.cdf(0.25)}, 2.0),
        ({"mu": 0.5}, 2.0),
        ({"mu": 0.5, "delta": 1e-9}, 2.0),
        ({"rho": 0.125}, 2.0),
    ],
    ids=str,
)
def test_the_verdict_turns_where_the_closed_form_says(stated, sigma):
    claim = Claim.of(**stated)
    within = certify(plan(use(Gaussian(sigma * 1.0001))), subject=SUBJECT, claim=claim)
    beyond = certify(plan(use(Gaussian(sigma * 0.9999))), subject=SUBJECT, claim=claim)
    assert within.verdict is Verdict.CERTIFIED
    assert beyond.verdict is Verdict.UNPROVEN
    assert beyond.claim_exceeded


def test_a_round_mu_and_rho_are_those_of_round_noise():
    for stated in ({"mu": 1.0}, {"rho": 0.5}):
        assert Claim.of(**stated).excess(compose(plan(use(Gaussian(1.0))))) is None


def test_a_slack_that_is_too_small_certifies_no_rho():
    whole = compose(plan(use(Gaussian(10.0)), use(ApproximateBlackBox(0.1, 1e-6))))
    assert Claim.of(rho=1.0, delta=1e-7).excess(whole) is not None
    assert Claim.of(rho=1.0, delta=1e-6).excess(whole) is None


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.floats(0.05, 6.0))
def test_one_point_follows_from_a_rate(one, other, mu):
    """Against N(0, 1) and N(μ, 1), of every μ that keeps the rate exactly."""
    fpr, tpr = sorted((one, other))
    if tpr >= normal_tpr(mu, fpr):
        claim = Claim.of(tpr=tpr, fpr=fpr)
        assert GaussianComposition(mu).delta(claim.epsilon).lower <= claim.delta + 1e-12


@given(st.floats(0.0, 5.0), st.floats(0.0, 0.9), st.floats(0.0, 6.0))
def test_what_follows_from_a_point(epsilon, delta, at):
    """Kairouz, Oh and Viswanath 2015: the pair of (ε, δ) has four outputs, enumerated here."""
    truth, lie = (math.exp(x) / (1 + math.exp(epsilon)) * (1 - delta) for x in (epsilon, 0.0))
    known = delta + max(0.0, truth - math.exp(at) * lie) + max(0.0, lie - math.exp(at) * truth)
    found = PointsCurve((CurvePoint(epsilon, delta),)).delta(at).upper
    assert known - 1e-12 <= found <= known + 1e-12


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({}, "states nothing"),
        ({"epsilon": 1.0, "advantage": 0.1}, "states epsilon and advantage"),
        ({"tpr": 0.1}, "without 'fpr'; it must be like tpr = 0.1, fpr = 0.01"),
        ({"tpr": 0.01, "fpr": 0.1}, "a coin toss reaches"),
        ({"success": 0.6, "prior": 0.7}, "so it must be at least that"),
        ({"mu": 1.0, "prior": 0.5}, "'prior' beside 'mu'"),
        ({"advantage": 1.0}, "a number in"),
        ({"mu": 0.0}, "above 0"),
        ({"curve": []}, "has no point"),
        ({"curve": [[1.0]]}, "must be a pair"),
        ({"curve": [[1.0, 2.0]]}, "delta is"),
        ({"advantag": 0.1}, "did you mean 'advantage'"),
    ],
    ids=str,
)
def test_a_wrong_claim_is_one_sentence(stated, message):
    with pytest.raises(InputError, match=message):
        Claim.from_dict(stated)


def test_every_kind_is_tried_here():
    assert {*RISKS, "epsilon"} <= {key for stated in KINDS for key in stated}


@pytest.mark.parametrize("stated", KINDS, ids=str)
def test_an_audit_contradicts_a_claim_beyond_what_follows_from_it(stated):
    claim = Claim.of(**stated)
    for delta in (claim.delta, min(0.9, 2 * claim.delta)):
        limit = claim.implied.epsilon(delta).upper
        assert contradicts(audit(lower=limit + 0.01, delta=delta), claim)
        assert not contradicts(audit(lower=limit * 0.99, delta=delta), claim)
    assert contradicts(audit(tested=claim.epsilon, lower=0, refuted=True, delta=claim.delta), claim)
    tighter = audit(tested=claim.epsilon, lower=0, refuted=True, delta=claim.delta / 2)
    assert not contradicts(tighter, claim)


def test_a_loose_claim_is_noted():
    made = certify(plan(use(Gaussian(2.0))), subject=SUBJECT, claim=Claim.of(advantage=0.3))
    assert "claim-allows-exposure" in [finding.rule for finding in made.findings]


def test_a_claim_that_bounds_nothing_is_refused_and_a_tiny_one_is_not() -> None:
    with pytest.raises(InputError, match="bounds no finite ε"):
        Claim.of(mu=1e200)
    assert Claim.of(rho=1e-300).points[0].delta < 1e-100
