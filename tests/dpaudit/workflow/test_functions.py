"""What is tested of a function, and how far wrong ones are found."""

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit import InputError
from dpaudit.certificate import Claim, Verdict
from dpaudit.plan import AddRemove, MetricBall
from dpaudit.project import Execution
from dpaudit.reporting.wording.tables import commands, replay_command
from dpaudit.workflow.attacking import audit_target
from dpaudit.workflow.functions import hypothesis, parse_relation

CODE = """
def gauss(data, rng, size, sigma=1.0):
    return data + sigma * rng.normal(size=size)

def sampled(data, rng, size, rate=0.1):
    inside = rng.random((size, 10)) < rate
    return rng.normal(size=(size, 10)) + inside * data
"""
PLAN = """
[plan]
unit = "row"
relation = "add-remove"
trust = "central"

[[invocation]]
mechanism = "gaussian"
sigma = 1.0
sensitivity = 1.0
count = 10
sampling = { scheme = "poisson", rate = 0.1 }
"""
UP = 1 + 1e-9


def delta_of(epsilon, mu=1.0):
    """Balle and Wang 2018, Theorem 8."""
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


ADVANTAGE = 2 * norm.cdf(0.5) - 1
POINTS = [[epsilon, float(UP * delta_of(epsilon))] for epsilon in (0.2, 0.8, 1.6, 3.0)]
CLAIMS = {
    "mu = 1": 0.8,
    "rho = 0.5": 0.6,
    f"curve = {POINTS}": 0.8,
    f"tpr = {UP * norm.cdf(1 - norm.isf(0.01))}, fpr = 0.01": 0.7,
    f"advantage = {UP * ADVANTAGE}": 0.8,
    f"success = {UP * (1 + ADVANTAGE) / 2}": 0.8,
    f"epsilon = 1, delta = {UP * delta_of(1.0)}": 0.8,
}


@pytest.fixture
def code(tmp_path, monkeypatch):
    (tmp_path / "code_of_claims.py").write_text(CODE)
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return "code_of_claims.py"


def attacked(name, claim=None, *, arguments=(), runs=4000, seed=2, **about):
    execution = Execution(runs=runs, seed=seed, confidence=1 - 1e-4)
    return audit_target(
        name, (), ("1", "0"), execution=execution, claim=claim, arguments=arguments, **about
    )


@pytest.mark.parametrize(("claim", "sigma"), CLAIMS.items(), ids=lambda each: str(each)[:6])
def test_each_kind_of_claim_is_tested_as_what_it_says(code, claim, sigma):
    """N(1, 1) against N(0, 1) attains each of them; less noise does not keep it."""
    right = attacked(f"{code}:gauss", claim)
    assert not right.record.refuted
    assert right.exit_code == 0
    wrong = attacked(f"{code}:gauss", claim, arguments=[f"sigma={sigma}"], runs=12_000)
    assert wrong.exit_code == 1
    made = wrong.certificate()
    assert made.verdict is Verdict.REFUTED
    assert made.claim == wrong.claim


def test_a_plan_is_tested_by_its_whole_curve(code):
    plain = attacked(f"{code}:sampled", plan="plan.toml")
    assert plain.exit_code == 0
    made = plain.certificate()
    assert made.verdict is Verdict.CERTIFIED
    assert made.guarantee.epsilon == plain.record.claim_epsilon
    twice = attacked(f"{code}:sampled", plan="plan.toml", arguments=["rate=0.2"])
    assert twice.exit_code == 1
    assert twice.record.details["null"] == "the plan's whole curve δ(ε)"
    made = twice.certificate()
    assert "not-the-declared-mechanism" in {finding.rule for finding in made.findings}
    line = replay_command(made, twice.record)
    assert "--plan plan.toml --delta 1e-05" in line
    assert "--arg rate=0.2" in line
    assert commands(made)[0].startswith("dpaudit certify plan.toml")


def test_unit_and_relation_are_those_of_the_certificate(code):
    outcome = attacked(f"{code}:gauss", "mu = 2", unit="user", relation="zero-out", runs=500)
    made = outcome.certificate()
    assert (str(made.plan.unit), str(made.plan.relation)) == ("user", "zero-out")
    assert "--unit user --relation zero-out" in replay_command(made, outcome.record)
    assert commands(made) == ("dpaudit verify certificate.json",)


def test_relations_by_kind_or_as_json():
    assert parse_relation(None) is None
    assert parse_relation("add-remove") == AddRemove()
    assert parse_relation('{"kind": "metric-ball", "radius": 3}') == MetricBall(3.0)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({}, "--epsilon is missing"),
        ({"claim": "mu = 1", "plan": "plan.toml"}, "--plan is given with a claim"),
        ({"unit": "user", "plan": "plan.toml"}, "which the plan states; leave"),
        ({"plan": "none.toml"}, "does not exist"),
        ({"claim": "mu = 1", "relation": "add-romove"}, "add-remove"),
        ({"claim": "mu = 1", "unit": "x" * 99}, "unit is"),
        ({"plan": "opaque.toml"}, "bounds nothing"),
        ({"plan": "plan.toml", "delta": 0.0}, "no finite ε at δ = 0"),
    ],
)
def test_what_is_wrong_is_one_sentence(code, tmp_path, about, message):
    head, _, _ = PLAN.partition("[[invocation]]")
    opaque = '[[invocation]]\nmechanism = "opaque"\nlabel = "x"\nepsilon = 1.0\n'
    (tmp_path / "opaque.toml").write_text(head + opaque)
    with pytest.raises(InputError, match=message) as caught:
        attacked(f"{code}:gauss", **about)
    assert "\n" not in str(caught.value)


def test_a_subject_has_a_plan_of_its_own():
    with pytest.raises(InputError, match="a subject has its own"):
        audit_target("examples:Answers", unit="user")


def test_the_point_of_a_plan_is_that_of_its_claim(tmp_path):
    path = tmp_path / "plan.toml"
    for claim, delta in (("epsilon = 9.0\ndelta = 1e-6", 1e-6), ("mu = 3.0", 1e-5), (None, 1e-5)):
        path.write_text(PLAN + (f"[claim]\n{claim}\n" if claim else ""))
        assert hypothesis("f.py:f", None, None, plan=str(path)).claim.delta == delta
    assert hypothesis("f.py:f", None, 1e-3, plan=str(path)).claim.delta == 1e-3
    assert hypothesis("f.py:f", Claim(1.0), None).curve is None
