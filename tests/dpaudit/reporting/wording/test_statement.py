"""The guarantee in words, what is left without each assumption, and the loss over time."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from dpaudit import (
    AddRemove,
    Claim,
    Gaussian,
    Invocation,
    Laplace,
    MetricBall,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    TrustModel,
    ZeroOut,
    certify,
)
from dpaudit.certificate import SubjectRecord
from dpaudit.reporting.composition import growth
from dpaudit.reporting.text import up
from dpaudit.reporting.wording.statement import statement

DELTA = 1e-5


def gaussian_epsilon(mu):
    """ε at 1e-5 of N(μ, 1) against N(0, 1) (Balle and Wang 2018, Theorem 8)."""

    def excess(epsilon):
        tail = np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        return ndtr(mu / 2 - epsilon / mu) - tail - DELTA

    return brentq(excess, 0, 200, xtol=1e-13)


def certificate(*mechanisms, **fields):
    given = {
        "sensitivity": 1.0,
        "unit": PrivacyUnit("user"),
        "relation": AddRemove(),
        "trust": TrustModel.CENTRAL,
    }
    plan = Plan.of(*(Invocation(mechanism, **(given | fields)) for mechanism in mechanisms))
    pure = all(isinstance(mechanism, Laplace | RandomizedResponse) for mechanism in mechanisms)
    return certify(plan, subject=SubjectRecord("x"), claim=Claim(9.0, 0.0 if pure else DELTA))


def left(certificate, start):
    """What is said to be left where the assumption fails that starts so."""
    (found,) = [a for a in statement(certificate).assumptions if a.holds.startswith(start)]
    return found.left


def number(text):
    return float(text.removeprefix("ε = ").removesuffix(" is proved."))


def test_gaussian_in_closed_form():
    """Twice the distance is 2μ, twice the uses √2 μ, a replacement 2μ."""
    made = certificate(Gaussian(4.0), count=4)
    mu = math.sqrt(4) / 4.0
    for start, moved in (
        ("Neighbouring values", 2 * mu),
        ("No user is touched", math.sqrt(2) * mu),
        ("The data of one user", 2 * mu),
        ("One user is all", 2 * mu),
    ):
        exact = gaussian_epsilon(moved)
        assert exact <= number(left(made, start)) <= exact * (1 + 1e-5)


def test_without_secrecy_of_the_sample_the_plain_mechanism_is_left():
    made = certificate(Gaussian(4.0), count=4, sampling=PoissonSampling(0.1))
    exact = gaussian_epsilon(math.sqrt(4) / 4.0)
    assert exact <= number(left(made, "Who was sampled")) <= exact * 1.01
    assert left(made, "The data of one user") == "Not computed: no theorem here covers it."


def test_pure_loss_adds_up():
    made = certificate(Laplace(2.0), Laplace(4.0), relation=ReplaceOne())
    assert left(made, "No user is touched") == "ε = 1.5 is proved."
    assert left(made, "Neighbouring values") == "ε = 1.5 is proved."
    assert left(made, "How many there are") == "Nothing is proved of that."


def test_groups_that_overlap():
    parts = [
        Invocation(
            Laplace(scale),
            1.0,
            PrivacyUnit("user"),
            AddRemove(),
            TrustModel.CENTRAL,
            group=name,
        )
        for scale, name in ((2.0, "east"), (4.0, "west"))
    ]
    made = certify(Plan.of(*parts), subject=SubjectRecord("x"))
    assert made.guarantee.epsilon == pytest.approx(0.5)
    assert left(made, "No user belongs") == "ε = 0.75 is proved."


def test_metric_ball_of_twice_the_radius():
    made = certificate(Laplace(4.0), relation=MetricBall(0.5))
    assert left(made, "The data of one user move by at most 0.5") == "ε = 0.5 is proved."


def test_only_what_the_plan_rests_on_is_named():
    clipped = certificate(Laplace(4.0, clip=(-0.5, 0.5)), relation=ZeroOut())
    assert left(clipped, "Values are clipped") == "Nothing is proved."
    local = certificate(RandomizedResponse(1.0, 4), relation=ReplaceOne(), trust=TrustModel.LOCAL)
    holds = " ".join(a.holds for a in statement(local).assumptions)
    for word in ("clip", "sensitivity", "server", "sampled", "groups", "real numbers"):
        assert word not in holds


def test_nothing_proved_rests_on_nothing(certificates):
    for kind in ("opaque", "unbounded"):
        said = statement(certificates[kind])
        assert said.assumptions == ()
        assert said.promise.startswith("Nothing")
        assert growth(certificates[kind]) is None


def test_promise_names_delta_only_where_there_is_one():
    assert "+ δ" not in statement(certificate(Laplace(2.0))).promise
    assert "+ δ with ε = " in statement(certificate(Gaussian(4.0))).promise


def test_growth_in_closed_form():
    grown = growth(certificate(Gaussian(8.0), count=40))
    assert grown.within[0].uses == 1
    assert [step.runs for step in grown.within] == [0] * (len(grown.within) - 1) + [1]
    assert [step.uses for step in grown.beyond] == [80, 120, 200, 400]
    for step in (*grown.within, *grown.beyond):
        exact = gaussian_epsilon(math.sqrt(step.uses) / 8.0)
        assert exact <= step.epsilon <= exact * (1 + 1e-6)


def test_growth_follows_the_order_of_the_plan():
    grown = growth(certificate(Laplace(1.0), Laplace(2.0), Laplace(4.0)))
    assert [step.epsilon for step in grown.within] == pytest.approx([1, 1.5, 1.75])
    assert [step.part for step in grown.within] == ["a part", "a part", "all of it"]
    assert grown.beyond[0].epsilon == pytest.approx(3.5)


def test_growth_ends_at_the_guarantee(certificates):
    for kind in ("certified", "exceeded", "scripts", "thousand"):
        made = certificates[kind]
        grown = growth(made)
        assert grown.within[-1].epsilon == made.guarantee.epsilon
        assert up(grown.within[-1].epsilon) == up(made.guarantee.epsilon)
        epsilons = [step.epsilon for step in (*grown.within, *grown.beyond)]
        assert all(a <= b * (1 + 1e-9) for a, b in pairwise(epsilons))
        assert len(epsilons) <= 20


def test_unknown_accountant_result_is_left_out(certificates):
    """A certificate whose accountant has no theorem for its plan, as only a forger makes it."""
    forged = replace(certificates["opaque"], guarantee=certificates["bare"].guarantee)
    assert growth(forged) is None
    assert "Not computed" in left(forged, "No response is touched")
