"""The guarantee in words, and what is left without each assumption."""

import math
from dataclasses import replace

import pytest
from guarantees import certificate_of, gaussian_epsilon

from dpaudit import (
    AddRemove,
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
from dpaudit.reporting.wording.statement import statement


def left(certificate, start):
    """What is said to be left where the assumption fails that starts so."""
    (found,) = [a for a in statement(certificate).assumptions if a.holds.startswith(start)]
    return found.left


def number(text):
    return float(text.removeprefix("ε = ").removesuffix(" is proved."))


def test_gaussian_in_closed_form():
    """Twice the distance is 2μ, twice the uses √2 μ, a replacement 2μ."""
    made = certificate_of(Gaussian(4.0), count=4)
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
    made = certificate_of(Gaussian(4.0), count=4, sampling=PoissonSampling(0.1))
    exact = gaussian_epsilon(math.sqrt(4) / 4.0)
    assert exact <= number(left(made, "Who was sampled")) <= exact * 1.01
    assert left(made, "The data of one user") == "ε = 0.347432 is proved."
    assert left(made, "One user is all") == "ε = 0.426784 is proved."


def test_pure_loss_adds_up():
    made = certificate_of(Laplace(2.0), Laplace(4.0), relation=ReplaceOne())
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
    made = certificate_of(Laplace(4.0), relation=MetricBall(0.5))
    assert left(made, "The data of one user move by at most 0.5") == "ε = 0.5 is proved."


def test_only_what_the_plan_rests_on_is_named():
    clipped = certificate_of(Laplace(4.0, clip=(-0.5, 0.5)), relation=ZeroOut())
    assert left(clipped, "Values are clipped") == "Nothing is proved."
    local = certificate_of(
        RandomizedResponse(1.0, 4), relation=ReplaceOne(), trust=TrustModel.LOCAL
    )
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
    assert "+ δ" not in statement(certificate_of(Laplace(2.0))).promise
    assert "+ δ with ε = " in statement(certificate_of(Gaussian(4.0))).promise


def test_unknown_accountant_result_is_left_out(certificates):
    """A certificate whose accountant has no theorem for its plan, as only a forger makes it."""
    forged = replace(certificates["opaque"], guarantee=certificates["bare"].guarantee)
    assert growth(forged) is None
    assert "Not computed" in left(forged, "No response is touched")
