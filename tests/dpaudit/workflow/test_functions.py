"""What is tested of a function, and how far wrong ones are found."""

import re
import shlex

import numpy as np
import pytest
from audited import audited
from scipy.stats import norm

from dpaudit import InputError
from dpaudit.certificate import Claim, Verdict
from dpaudit.project import Execution
from dpaudit.project.audit_request import AuditRequest
from dpaudit.reporting.wording.tables import commands, replay_command
from dpaudit.workflow.attacking import hypothesis

CODE = """
def gauss(data, rng, size, sigma=1.0):
    return data + sigma * rng.normal(size=size)

def sampled(data, rng, size, rate=0.1):
    inside = rng.random((size, 10)) < rate
    return rng.normal(size=(size, 10)) + inside * data

def masked(data, rng):
    key = int(rng.integers(2**40))
    return {"key": key, "text": f"c{key % 97 % 2 ^ int(data)}"}

def opened(output):
    return output["key"] % 97 % 2 ^ int(output["text"][1])
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
    return audited(
        name, pair=("1", "0"), execution=execution, claim=claim, arguments=arguments, **about
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
    assert commands(made)[0] == f"{line} -o certificate.json"


def test_a_score_and_fields_are_in_the_command_that_repeats_it(code):
    about = {"score": f"{code}:opened", "fields": ["output['key']=random"]}
    found = attacked(f"{code}:masked", "epsilon = 1", **about)
    assert found.exit_code == 1
    assert found.record.details["unique_fields"] == {"output['key']": "random"}
    line = replay_command(found.certificate(), found.record)
    assert f"--score {code}:opened --field" in line
    assert "output['key']=random" in shlex.split(line)


def test_unit_and_relation_are_those_of_the_certificate(code):
    outcome = attacked(f"{code}:gauss", "mu = 2", unit="user", relation="zero-out", runs=500)
    made = outcome.certificate()
    assert (str(made.plan.unit), str(made.plan.relation)) == ("user", "zero-out")
    assert "--unit user --relation zero-out" in replay_command(made, outcome.record)
    assert commands(made)[-1] == "dpaudit verify certificate.json"


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({}, "--epsilon is missing"),
        ({"claim": "mu = 1", "plan": "plan.toml"}, "--plan is given with a claim"),
        ({"unit": "user", "plan": "plan.toml"}, "which it states; keep one"),
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
        audited("examples:Answers", unit="user")


def test_the_point_of_a_plan_is_that_of_its_claim(tmp_path):
    path = tmp_path / "plan.toml"
    for claim, delta in (("epsilon = 9.0\ndelta = 1e-6", 1e-6), ("mu = 3.0", 1e-5), (None, 1e-5)):
        path.write_text(PLAN + (f"[claim]\n{claim}\n" if claim else ""))
        assert hypothesis(AuditRequest("f.py:f", plan=str(path))).claim.delta == delta
    assert hypothesis(AuditRequest("f.py:f", plan=str(path), delta=1e-3)).claim.delta == 1e-3
    assert hypothesis(AuditRequest("f.py:f", claim=Claim(1.0))).curve is None


HUNTED = """
import numpy as np

def hidden(x, rng, size, low=4.0, high=6.0):
    return x + rng.laplace(scale=0.02 if low < x < high else 1.0, size=size)

def first(data, rng, size):
    return np.atleast_1d(data)[0] + rng.laplace(size=size)

def total(rows, rng, size):
    return sum(row["age"] > 25 for row in rows) + rng.laplace(size=size)

def vector(answers, rng):
    bar, above = 1 + rng.laplace(), [0.0] * 10
    for place, answer in enumerate(answers):
        above[place] = float(answer >= bar)
    return above

def fails(x, rng):
    if x > 5:
        raise ValueError
    return x + rng.laplace()

def keys(x, rng):
    return {"near": x + rng.laplace(), **({"far": True} if x > 4.5 else {})}

def added(numbers, rng):
    return sum(numbers) + rng.laplace()

def words(text, rng):
    return len(text.split())
"""


@pytest.fixture
def hunted(tmp_path, monkeypatch):
    (tmp_path / "hunted_code.py").write_text(HUNTED)
    monkeypatch.chdir(tmp_path)
    return lambda name, **options: audited(
        f"hunted_code.py:{name}", **{"claim": "epsilon = 1", **options}
    )


RUNS = Execution(runs=2000, seed=3, confidence=1 - 1e-4)


class TestNeighbours:
    @pytest.mark.parametrize("bounds", [(), ("low=3.6", "high=5.4")])
    def test_a_leak_between_two_numbers_is_found(self, hunted, bounds):
        wrong = hunted("hidden", execution=RUNS, arguments=bounds)
        assert wrong.exit_code == 1
        x = wrong.record.pair["x"]
        assert any(3.6 < end < 6 for end in (x, x + 1))
        assert "one number moves by 1" in wrong.record.details["neighbours"]
        why = wrong.record.details["why_this_pair"]
        assert re.search(r"pairs made the code raise ([A-Z]\w+Error(, )?)+; less was", why)

    def test_a_right_function_is_not_refuted(self, hunted):
        """The pair is chosen on other runs than those that test it."""
        for seed in range(3):
            execution = Execution(runs=1000, seed=seed, confidence=1 - 1e-6)
            assert hunted("first", execution=execution).exit_code == 0

    def test_a_failure_at_one_end_alone_is_an_answer_like_any_other(self, hunted):
        outcome = hunted("fails", execution=RUNS)
        assert outcome.exit_code == 1
        assert "raises ValueError" in outcome.record.event

    def test_a_dictionary_is_searched_too_and_a_right_sum_stays(self, hunted):
        wrong = hunted("keys", execution=RUNS)
        assert wrong.exit_code == 1
        assert "output['far']" in wrong.record.event
        assert hunted("added", execution=RUNS).exit_code == 0
        assert hunted("added", execution=RUNS, relation="each").exit_code == 1

    def test_a_sparse_vector_without_noise_on_its_answers(self, hunted):
        wrong = hunted("vector", execution=RUNS, relation="each")
        assert wrong.exit_code == 1
        assert len(wrong.record.pair["x"]) > 1

    def test_neighbours_of_data(self, hunted, tmp_path):
        (tmp_path / "rows.csv").write_text("age,name\n30,a\n40,b\n20,c\n")
        right = hunted("total", execution=RUNS, data="rows.csv", unit="name")
        assert right.exit_code == 0
        rows, others = right.record.pair["x"], right.record.pair["x_prime"]
        assert sum(row != other for row, other in zip(rows, others, strict=True)) == 1
        assert sum(row["age"] > 25 for row in rows) != sum(row["age"] > 25 for row in others)
        fewer = hunted("total", execution=RUNS, data="rows.csv", relation="add-remove")
        assert len(fewer.record.pair["x"]) != len(fewer.record.pair["x_prime"])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "no pair of .* is taken; give --pair"),
            ({"data": "empty.json"}, "no neighbours under replace-one"),
            ({"data": "empty.json", "pair": ("0", "1")}, "--data is given with --pair"),
            ({"data": "none.json"}, "does not exist"),
        ],
    )
    def test_what_cannot_be_searched_is_one_sentence(self, hunted, tmp_path, options, message):
        (tmp_path / "empty.json").write_text("{}")
        with pytest.raises(InputError, match=message) as caught:
            hunted("words", execution=RUNS, **options)
        assert "\n" not in str(caught.value)
