"""The terms that the tables name."""

from judged import attack, made, simple

from dpaudit import Claim, Gaussian, Laplace, MetricBall
from dpaudit.mechanisms import Opaque
from dpaudit.reporting.checklists.facts import Facts
from dpaudit.reporting.checklists.terms import terms


def of(certificate):
    return terms(Facts(certificate))


def test_bounds_are_rounded_to_their_safe_side():
    found = of(made(Laplace(3.0)).with_audits([attack(epsilon_lower=0.12345678)]))
    assert (found["epsilon"], found["lower_bound"]) == ("0.333334", "0.123456")


def test_what_does_not_apply_is_false():
    found = of(made(Opaque("vendor", 1.0), claim=Claim(1.0)))
    for name in (
        "epsilon",
        "accountant",
        "recomputable",
        "attacks",
        "lower_bound",
        "radius",
        "run",
    ):
        assert not found[name], name
    assert found["unproved"]
    assert found["unexplained"] == "opaque"


def test_thresholds():
    assert of(simple())["strong_epsilon"]
    assert of(made(Laplace(0.1)))["doubtful_epsilon"]
    assert of(made(Gaussian(5.0), delta=1e-4))["uncommon_delta"]
    assert not of(made(Gaussian(5.0), delta=1e-5))["uncommon_delta"]


def test_a_ball_has_a_radius():
    assert of(made(Laplace(1.0), relation=MetricBall(0.25)))["radius"] == "0.25"


def test_a_lower_bound_of_zero_is_one():
    found = of(simple().with_audits([attack(epsilon_lower=0.0)]))
    assert found["lower_bound"] == "0"
