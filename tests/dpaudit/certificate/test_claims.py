"""Claims of every kind, against mechanisms whose whole curve is known."""

import math

import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from audit_records import attack
from gaussian_truth import gaussian_delta
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import laplace, norm

from dpaudit.accounting import CurvePoint, compose
from dpaudit.accounting.accountant import Interval
from dpaudit.accounting.closed_forms.additive import GaussianComposition
from dpaudit.auditing.evidence.eprocess import curve_points
from dpaudit.base.errors import InputError
from dpaudit.certificate import (
    Certificate,
    Claim,
    SubjectRecord,
    Verdict,
    certify,
    verify,
)
from dpaudit.certificate.risk import (
    RISKS,
    PointsCurve,
    advantage,
    bayes_success,
    excess_over_normal,
    true_positive_rate,
)
from dpaudit.certificate.verdicts import contradicts
from dpaudit.mechanisms import ApproximateBlackBox, Gaussian, Laplace, RandomizedResponse

# What follows from points of a curve


def test_between_points_the_least_holds():
    curve = PointsCurve((CurvePoint(0.5, 1e-2), CurvePoint(1.0, 1e-4)))
    assert curve(np.array([0.5, 0.7, 1.0, 2.0])).tolist() == [1e-2, 1e-2, 1e-4, 1e-4]
    # Kairouz, Oh and Viswanath 2015, Theorem 2.1: total variation of (0.5, 0.01)-privacy.
    left = 0.01 + 0.99 * (math.exp(0.5) - 1) / (math.exp(0.5) + 1)
    assert curve(0.0) == pytest.approx(left)
    assert curve.epsilon(1e-3).upper == 1.0
    assert curve.epsilon(0.0).upper == math.inf


def test_bets_are_made_at_every_point():
    claim = Claim.of(curve=[[0.37, 0.2], [0.9, 0.02], [3.0, 0.0]])
    assert {0.37, 0.9, 3.0} <= {point.epsilon for point in curve_points(claim.curve)}
    many = Claim.of(curve=[[0.01 * k, 0.5 / k] for k in range(1, 200)])
    assert len(curve_points(many.curve)) < 20


def test_rates_tell_themselves():
    assert Claim.of(tpr=0.3, fpr=0.1).curve.rates == (0.3, 0.1)
    assert Claim.of(advantage=0.3).curve is None
    smooth = Claim.of(mu=1.0).curve(np.array([1.0]))
    assert smooth == pytest.approx([0.126936738], rel=1e-8)
    assert Claim.of(mu=1.0).implied.deltas(1.01) > Claim.of(mu=1.0).curve(np.array([1.01]))[0]


# Curves against a Gaussian one: exact where the truth is known, on a dense grid elsewhere

PLANS = {
    "laplace": plan(use(Laplace(2.0))),
    "response": plan(use(RandomizedResponse(0.5))),
    "mixed": plan(use(Laplace(4.0)), use(Gaussian(3.0))),
    "sampled": plan(use(Gaussian(1.5), sampling=poisson(0.1), count=20)),
}


def exceeds_on_a_grid(whole, mu, slack):
    end = min(whole.epsilon(max(slack, 1e-12)).upper, 30.0)
    claimed = GaussianComposition(mu)
    return any(
        whole.delta(epsilon).upper > slack + (1 - slack) * claimed.delta(epsilon).lower + 1e-12
        for epsilon in np.linspace(0, end, 60)
    )


@pytest.mark.parametrize("name", PLANS)
def test_the_least_mu_is_that_of_a_dense_grid(name):
    whole, slack = compose(PLANS[name]), 1e-7
    low, high = 0.01, 20.0
    for _ in range(12):
        mu = (low * high) ** 0.5
        low, high = (low, mu) if excess_over_normal(whole, mu, slack) is None else (mu, high)
    assert not exceeds_on_a_grid(whole, high, slack)
    assert exceeds_on_a_grid(whole, low * 0.99, slack)


def test_a_pure_plan_needs_no_delta_and_an_unbounded_tail_does():
    assert excess_over_normal(compose(PLANS["response"]), 5.0, 0.0) is None
    found = excess_over_normal(compose(PLANS["sampled"]), 5.0, 0.0)
    assert "leaves out more of the tail" in found


def test_a_spike_between_the_first_points_is_found():
    """Randomised response touches the curve only near its ε."""
    whole = compose(plan(use(RandomizedResponse(0.3))))
    kept = [mu for mu in np.linspace(0.5, 4, 60) if excess_over_normal(whole, mu, 0.0) is None]
    assert not exceeds_on_a_grid(whole, min(kept), 0.0)


class Chords:
    """A curve that is linear in e^ε between sixteen points of a Gaussian one, times a factor."""

    END, SLACK = 3.0, 1e-5

    def __init__(self, factor: float) -> None:
        points = [self.END * number / 16 for number in range(17)]
        claimed = [self.SLACK + (1 - self.SLACK) * gaussian_delta(each) for each in points]
        self.points, self.deltas = np.exp(points), factor * np.array(claimed)

    def epsilon(self, delta: float) -> Interval:
        return Interval(None, self.END)

    def delta(self, epsilon: float) -> Interval:
        return Interval(None, float(np.interp(math.exp(epsilon), self.points, self.deltas)))


def test_what_is_more_between_the_points_alone_is_found():
    above, below = Chords(1 - 1e-6), Chords(0.9)
    assert excess_over_normal(above, 1.0, Chords.SLACK) is not None
    assert excess_over_normal(below, 1.0, Chords.SLACK) is None


# Bounds on attacks, against mechanisms whose whole trade-off curve is known


def normal_tpr(mu, fpr):
    """Dong, Roth and Su 2022, Equation (6)."""
    return norm.cdf(mu - norm.isf(fpr))


def laplace_tpr(epsilon, fpr):
    return laplace.sf(laplace.isf(fpr) - epsilon)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("fpr", [1e-9, 1e-3, 0.1, 0.5, 0.95])
def test_a_gaussian_leaves_what_its_closed_form_says(mu, fpr):
    whole = GaussianComposition(mu)
    assert advantage(whole) == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-9)
    found = true_positive_rate(whole, fpr)
    assert normal_tpr(mu, fpr) * (1 - 1e-12) <= found <= normal_tpr(mu, fpr) + 1e-6 * found


@pytest.mark.parametrize("fpr", [0.001, 0.2, 0.6])
def test_laplace_noise_leaves_what_its_law_says(fpr):
    found = true_positive_rate(compose(plan(use(Laplace(2.0)))), fpr)
    assert laplace_tpr(0.5, fpr) * (1 - 1e-12) <= found <= laplace_tpr(0.5, fpr) * (1 + 1e-3)


@pytest.mark.parametrize("prior", [0.5, 0.3, 0.7, 0.99, 1e-6])
def test_the_best_guess_of_randomised_response(prior):
    """Bayes' rule on two answers."""
    truth = 0.8  # p = 0.4 over two answers
    whole = compose(plan(use(RandomizedResponse(0.4))))
    best = max(prior * truth, (1 - prior) * (1 - truth)) + max(
        prior * (1 - truth), (1 - prior) * truth
    )
    assert best * (1 - 1e-12) <= bayes_success(whole, prior) <= best * (1 + 1e-9)


# Claims of a risk, against mechanisms whose whole trade-off curve is known

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
    given = {"claim_epsilon": tested, "epsilon_lower": lower, "delta": delta}
    return attack(refuted=refuted, confidence=0.95, **given)


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
        ({"tpr": 0.01, "fpr": 0.1}, "a coin toss reaches tpr = fpr"),
        ({"success": 0.6, "prior": 0.7}, "so success must be at least that"),
        ({"mu": 1.0, "prior": 0.5}, "both 'mu' and 'prior'"),
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
