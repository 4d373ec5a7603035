"""Attacks on what a command names, on its releases and through its whole run.

What is tested of a function, and how far wrong ones are found.
"""

import math
import re
import shlex
import sys
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from audited import audited
from examples import Answers
from gaussian_truth import gaussian_delta
from scipy.stats import norm
from ways import returns_upwards, way

from dpaudit import (
    AddRemove,
    AuditPair,
    Claim,
    Contribution,
    InconclusiveError,
    InputError,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RunResult,
    Subject,
    TrustModel,
    UnsupportedError,
)
from dpaudit.auditing.replaying.replay import own_generator
from dpaudit.certificate import Verdict
from dpaudit.cli.main import main
from dpaudit.mechanisms import BinaryTree, ContinualLaplace
from dpaudit.plan import PoissonSampling
from dpaudit.project import Execution, Move
from dpaudit.project.audit_request import AuditRequest
from dpaudit.reporting.wording.tables import commands, replay_command
from dpaudit.workflow.attacking import attack, attack_subject, audit, hypothesis
from dpaudit.workflow.rehearsing import FEWEST, audit_run

# From the command line to the first run: what is attacked, and how short the way is

MODULE = """
import sys
from dataclasses import dataclass

from examples import Answers

STACKS = []


def remember():
    frame, names = sys._getframe(1), set()
    while frame is not None:
        names.add(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    STACKS.append({name for name in names if name.startswith("dpaudit.")})


@dataclass(frozen=True)
class Watched(Answers):
    def audit_release(self, data, size, rng):
        remember()
        return super().audit_release(data, size, rng)


def watched(data, rng):
    remember()
    return data + rng.laplace()


@dataclass(frozen=True)
class Owner:
    by: float = 1.0

    def watched(self, data, rng):
        return self.by * watched(data, rng)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "watched_code.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield "watched_code"
    sys.modules.pop("watched_code", None)


class TestWay:
    @pytest.mark.parametrize(
        "words",
        [
            ["watched_code:Watched"],
            ["watched_code:Watched", "--pair", "2", "-2"],
            ["watched_code.py:watched", "--pair", "0", "1", "--epsilon", "1"],
            ["watched_code:watched", "--epsilon", "1"],
            ["watched_code:watched", "--pair", "0", "1", "--epsilon", "1"],
            ["watched_code:Owner.watched", "--pair", "0", "1", "--epsilon", "1", "--set", "by=2"],
        ],
    )
    def test_eight_modules_at_most_lead_to_any_run(self, module, words, capsys):
        with pytest.raises(SystemExit):
            main(["audit", *words, "--runs", "100", "--seed", "1"])
        assert "lower bound" in capsys.readouterr().out
        stacks = sys.modules[module].STACKS
        for stack in stacks:
            assert {"dpaudit.cli.main", "dpaudit.cli.commands"} < stack
            assert len(stack) <= 8, sorted(stack)
        assert len(stacks) > 100

    @pytest.mark.parametrize(
        ("words", "most"),
        [
            (["audit", "watched_code:Watched", "--runs", "100", "--seed", "1"], (15, 6)),
            (["certify", "watched_code:Watched"], (12, 2)),
        ],
    )
    @pytest.mark.usefixtures("module")
    def test_the_way_of_a_plan_is_short(self, words, most, capsys):
        modules = way(words)
        assert capsys.readouterr().err == ""
        assert modules[0] == "dpaudit.cli.main"
        assert len(modules) <= most[0], modules
        assert returns_upwards(modules) <= most[1], modules


class TestTarget:
    def test_a_subject_is_attacked_on_its_own_claim(self):
        outcome = audited("examples:Answers", execution=Execution(runs=300, seed=1))
        assert outcome.record.claim_epsilon == Answers().claim().epsilon
        assert outcome.target.subject == Answers()
        assert outcome.exit_code == 0
        assert outcome.to_dict()["subject"] == "examples:Answers"

    def test_other_numbers_are_no_other_claim(self):
        outcome = audited("examples:Answers", epsilon=0.2, execution=Execution(runs=1000, seed=1))
        assert outcome.record.refuted
        assert outcome.exit_code == 1
        assert outcome.certificate().claim == Answers().claim()

    def test_settings_and_a_pair(self):
        outcome = audited(
            "examples:Answers",
            settings=["epsilon=2"],
            pair=("2", "-2"),
            execution=Execution(runs=300, seed=1),
        )
        assert outcome.record.claim_epsilon == 2.0
        assert outcome.record.pair == {"x": 2, "x_prime": -2}

    def test_a_function_is_certified_as_what_was_tested(self, module):
        outcome = audited(
            f"{module}.py:watched",
            pair=("0", "1"),
            epsilon=1.0,
            execution=Execution(runs=300, seed=1),
        )
        assert outcome.target.subject is None
        (invocation,) = outcome.certificate().plan.invocations
        assert invocation.mechanism.kind == "opaque"

    @pytest.mark.parametrize(
        ("name", "options", "message"),
        [
            ("plan.toml", {}, "a plan file has no code to attack"),
            ("watched_code.py:watched", {}, "--epsilon is missing"),
            ("watched_code.py:watched", {"pair": ("0", "{")}, "--pair x' is not JSON"),
            (
                "watched_code.py:watched",
                {"pair": ("red", "blue")},
                "of texts --pair '\"a\"' '\"b\"'",
            ),
            ("watched_code.py:nothing", {"epsilon": 1.0}, "has no 'nothing'"),
        ],
    )
    @pytest.mark.usefixtures("module")
    def test_what_is_wrong_is_one_sentence(self, name, options, message):
        with pytest.raises(InputError, match=message) as caught:
            audited(name, **{"pair": ("0", "1"), **options})
        assert "\n" not in str(caught.value)


class TestAtHand:
    """What a caller in Python holds is attacked as it is, once."""

    EXECUTION = Execution(runs=300, seed=1)

    def test_a_subject_is_attacked_as_by_its_name(self):
        by_name = audited("examples:Answers", execution=self.EXECUTION).record
        assert attack(AuditRequest(Answers(), execution=self.EXECUTION)) == by_name

    def test_a_function_takes_arguments(self):
        def shifted(data, rng, by=0.0):
            return data * by + rng.laplace()

        pair, execution = AuditPair(0.0, 1.0), self.EXECUTION
        ask = AuditRequest(shifted, pair=pair, epsilon=1.0, execution=execution)
        assert not attack(ask).refuted
        assert attack(replace(ask, arguments={"by": 20.0})).refuted

    @pytest.mark.parametrize("target", [Answers(), Laplace(1.0)])
    def test_what_is_no_function_takes_none(self, target):
        ask = AuditRequest(target, pair=AuditPair(0.0, 1.0), epsilon=1.0, arguments={"by": 2})
        with pytest.raises(
            InputError, match=r"arguments are given for \w+, which is not a function"
        ):
            attack(ask)

    def test_a_function_needs_a_claim_and_a_pair(self):
        with pytest.raises(InputError, match="pair is missing"):
            attack(AuditRequest(abs, epsilon=1.0))
        with pytest.raises(InputError, match="--epsilon is missing"):
            attack(AuditRequest(abs, pair=AuditPair(0, 1)))

    def test_whoever_asks_is_told_of_the_runs(self):
        told = []
        execution = self.EXECUTION.updated({"progress": lambda done, total: told.append(done)})
        attack(AuditRequest(Answers(), execution=execution))
        assert max(told) == 300

    def test_runs_on_every_pair_are_told_as_one_total(self):
        class Several(Answers):
            def audit_pairs(self):
                return (*super().audit_pairs(), *super().audit_pairs())

        told = []
        execution = self.EXECUTION.updated({"progress": lambda *now: told.append(now)})
        ask = AuditRequest(every_pair=True, execution=execution)
        pairs = len(Several().audit_pairs())
        assert len(attack_subject(ask, Several(), Answers().claim(), "survey")) == pairs > 1
        assert {total for _, total in told} == {300 * pairs}
        assert [done for done, _ in told] == sorted(done for done, _ in told)
        assert told[-1][0] == 300 * pairs

    def test_a_name_is_no_object(self):
        with pytest.raises(InputError, match="target is"):
            audit(AuditRequest(abs, pair=AuditPair(0, 1), epsilon=1.0))


# The real run is attacked, with no model by its author

FACTS = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
TREE = ContinualLaplace(scale=3.0, factorization=BinaryTree(4), participations=1)
RUNS = Execution(runs=400, seed=1, confidence=0.999999)


@dataclass(frozen=True)
class Total(Subject):
    """A sum, released twice as ``half`` noisy as declared."""

    declared: float = 1.0
    factor: float = 1.0

    def plan(self):
        return Plan.of(Invocation(Laplace(self.declared), 1.0, *FACTS, at="sum"))

    def claim(self):
        return Claim(1.0 / self.declared)

    def load(self, source, rng):
        return rng.uniform(0, 1, 10)

    def run(self, rows, ledger, rng):
        total = self.factor * np.clip(np.nan_to_num(rows), 0, 1).sum()
        return RunResult({"sum": ledger.release(Laplace(self.declared), total, at="sum")})


@dataclass(frozen=True)
class Stream(Total):
    def plan(self):
        return Plan.of(Invocation(TREE, 1.0, *FACTS, at="sums"))

    def load(self, source, rng):
        return rng.uniform(0, 1, 4)

    def run(self, rows, ledger, rng):
        sums = ledger.stream(TREE, (), at="sums")
        return RunResult({}, {"sums": [float(sums.add(self.factor * row)) for row in rows]})

    def neighbours(self, data, rng):
        return [Move(np.concatenate([[0.0], data[1:]]), "row 0 zeroed")]


def run_of(subject, claim, execution=RUNS, **asked):
    return audit_run(subject, "x", claim, AuditRequest(execution=execution, **asked))


def slow(data, rng):
    time.sleep(2e-4)
    return sum(data) + rng.laplace()


def test_it_is_told_once_how_long_slow_runs_take(monkeypatch):
    monkeypatch.setattr("dpaudit.auditing.execution._SLOW", 0.02)
    monkeypatch.setattr("dpaudit.auditing.execution._LONG", 0.1)
    told = list[str]()
    found = AuditRequest(
        slow, pair=AuditPair([0.0], [1.0]), epsilon=1.0, execution=Execution(runs=1000, seed=0)
    )
    audit(replace(found, target=f"{__file__}:slow", notice=told.append))
    (line,) = told
    done, runs, took, whole = map(int, re.findall(r"[0-9]+", line))
    assert 0 < done < runs == 1000
    assert whole >= took
    audit(replace(found, target=f"{__file__}:slow", pair=None, notice=told.append))
    assert len(told) == 2


def test_as_many_draws_as_there_is_time_for_but_never_too_few():
    claim = Claim(1.0)
    assert run_of(Total(), claim, seconds=1e-9).runs == min(FEWEST, RUNS.runs)
    assert run_of(Total(), claim, seconds=1e9).runs == RUNS.runs


def test_how_long_it_takes_is_told_and_has_a_limit():
    claim, told = Claim(1.0), list[str]()
    limited = partial(run_of, Total(), claim)
    assert limited(limit=1e9, notice=told.append) == limited()
    assert re.fullmatch(rf"{RUNS.runs} draws on each side, at .* s for both sides: .*\.", told[0])
    with pytest.raises(InputError, match=r"--timeout is 1e-09 s, too few for .*; give more or few"):
        limited(limit=1e-9)


def test_a_run_that_takes_longer_than_was_foreseen_is_ended():
    @dataclass(frozen=True)
    class Slow(Total):
        def run(self, rows, ledger, rng):
            if len(calls) > 2:
                time.sleep(1.0)
            calls.append(1)
            return super().run(rows, ledger, rng)

    calls, start = list[int](), time.monotonic()
    with pytest.raises(InconclusiveError, match=r"did not end within the 2 s of --timeout"):
        run_of(Slow(), Claim(1.0), Execution(runs=60, seed=1), limit=2.0)
    assert time.monotonic() - start < 20


def test_the_pair_is_a_recipe_and_the_bound_is_near():
    record = run_of(Total(), Claim(1.0))
    assert "examples" not in record.details  # each would be one more release of the data
    assert not record.refuted
    assert 0.3 < record.epsilon_lower < 1.0
    assert set(record.pair) == {"x", "x_prime"}
    assert record.pair["x"] == "synthetic"
    assert "row" in record.pair["x_prime"]


@pytest.mark.parametrize("kind", [Total, Stream])
def test_a_run_that_does_more_than_it_declares_is_refuted(kind):
    claim = Claim(kind().plan().invocations[0].mechanism.pair(1.0).pure_epsilon)
    assert run_of(kind(factor=12.0), claim).refuted
    assert not run_of(kind(), claim).refuted


def test_who_is_sampled_is_not_the_adversary_s_to_know():
    @dataclass(frozen=True)
    class Sampled(Total):
        def plan(self):
            (use,) = super().plan().invocations
            return Plan.of(
                Invocation(use.mechanism, 1.0, *FACTS, at="sum", sampling=PoissonSampling(0.5))
            )

    with pytest.raises(UnsupportedError, match="the plan samples units"):
        run_of(Sampled(), Claim(1.0))


@dataclass(frozen=True)
class BySample(Total):
    """A sum of a Poisson sample, or of all, at half the noise that is declared for these."""

    rate: float = 0.5
    everybody: bool = False

    def plan(self):
        use = Invocation(
            Laplace(self.declared), 1.0, *FACTS, at="sum", sampling=PoissonSampling(self.rate)
        )
        return Plan.of(use)

    def run(self, rows, ledger, rng):
        sample = ledger.sample([f"row {n}" for n in range(len(rows))])
        chosen = rows if self.everybody else np.asarray(rows)[sample]
        total = self.factor * np.clip(np.nan_to_num(chosen), 0, 1).sum()
        return RunResult({"sum": ledger.release(Laplace(self.declared), total, at="sum")})


def test_samples_of_the_ledger_are_the_adversary_s_to_know_but_for_one_unit():
    """Rows are removed, whatever their numbers are then."""
    claim = Claim(math.log1p(0.5 * math.expm1(1.0)))
    record = run_of(BySample(), claim)
    assert not record.refuted
    assert record.epsilon_lower <= claim.epsilon
    assert "removed" in record.pair["x_prime"]
    assert run_of(BySample(factor=12.0), claim).refuted
    with pytest.raises(InputError, match="the unit is in no sample"):
        run_of(BySample(everybody=True), claim)


def test_a_neighbour_must_move_something():
    with pytest.raises(InputError, match="no neighbour of the data changes what is released"):
        run_of(Total(factor=0.0), Claim(1.0))


def test_bounded_sums_are_attacked_too():
    @dataclass(frozen=True)
    class Bounded(Total):
        def plan(self):
            return Plan.of(Invocation.bounded(Laplace(1.0), Contribution(1.0), *FACTS, at="sum"))

        def run(self, rows, ledger, rng):
            return RunResult({"sum": ledger.sum(rows)})

    assert not run_of(Bounded(), Claim(1.0)).refuted


@dataclass(frozen=True)
class Weighed(Total):
    """One row counts, and the run's own randomness says which."""

    def load(self, source, rng):
        return np.ones(10)

    def run(self, rows, ledger, rng):
        total = rows[rng.integers(10)]
        return RunResult({"sum": ledger.release(Laplace(self.declared), total, at="sum")})

    def neighbours(self, data, rng):
        for row in range(10):
            yield Move(np.where(np.arange(10) == row, 0.0, data), f"row {row} zeroed")


@pytest.mark.parametrize("seed", range(4))
def test_the_neighbour_is_chosen_for_the_randomness_that_is_attacked(seed):
    few = Execution(runs=200, seed=seed, confidence=0.999999)
    record = run_of(Weighed(), Claim(1.0), few)
    chosen = int(own_generator(seed).integers(10))
    assert record.pair["x_prime"] == f"row {chosen} zeroed"
    assert record.epsilon_lower > 0


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


ADVANTAGE = 2 * norm.cdf(0.5) - 1
POINTS = [[epsilon, float(UP * gaussian_delta(epsilon))] for epsilon in (0.2, 0.8, 1.6, 3.0)]
CLAIMS = {
    "mu = 1": 0.8,
    "rho = 0.5": 0.6,
    f"curve = {POINTS}": 0.8,
    f"tpr = {UP * norm.cdf(1 - norm.isf(0.01))}, fpr = 0.01": 0.7,
    f"advantage = {UP * ADVANTAGE}": 0.8,
    f"success = {UP * (1 + ADVANTAGE) / 2}": 0.8,
    f"epsilon = 1, delta = {UP * gaussian_delta(1.0)}": 0.8,
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
        ({"unit": "user", "plan": "plan.toml"}, "which the plan states; keep one"),
        ({"plan": "none.toml"}, "does not exist"),
        ({"claim": "mu = 1", "relation": "add-romove"}, "add-remove"),
        ({"claim": "mu = 1", "unit": "x" * 99}, "unit is"),
        ({"plan": "opaque.toml"}, "proves no bound"),
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

def number(rows, rng):
    return len(rows) + rng.laplace(0, 0.1)

def seniors(ages, rng):
    return sum(age >= 65 for age in ages) + rng.laplace(0, 0.3)

def constant(rows, rng):
    return {"version": 3}

def rows(rows, rng):
    return len(rows) + rng.laplace()

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


SHORT = Execution(runs=2000, seed=3, confidence=1 - 1e-4)


class TestNeighbours:
    @pytest.mark.parametrize("bounds", [(), ("low=3.6", "high=5.4")])
    def test_a_leak_between_two_numbers_is_found(self, hunted, bounds):
        wrong = hunted("hidden", execution=SHORT, arguments=bounds)
        assert wrong.exit_code == 1
        x = wrong.record.pair["x"]
        assert any(3.6 < end < 6 for end in (x, x + 1))
        assert "the pair moves one number by 1" in wrong.record.details["neighbours"]
        why = wrong.record.details["why_this_pair"]
        assert re.search(r"pairs made the code raise ([A-Z]\w+Error(, )?)+; less was", why)

    def test_a_right_function_is_not_refuted(self, hunted):
        """The pair is chosen on other runs than those that test it."""
        for seed in range(3):
            execution = Execution(runs=1000, seed=seed, confidence=1 - 1e-6)
            assert hunted("first", execution=execution).exit_code == 0

    def test_a_failure_at_one_end_alone_is_an_answer_like_any_other(self, hunted):
        outcome = hunted("fails", execution=SHORT)
        assert outcome.exit_code == 1
        assert "ValueError" in outcome.record.event

    def test_a_dictionary_is_searched_too_and_a_right_sum_stays(self, hunted):
        wrong = hunted("keys", execution=SHORT)
        assert wrong.exit_code == 1
        assert "output['far']" in wrong.record.event
        assert hunted("added", execution=SHORT).exit_code == 0
        assert hunted("added", execution=SHORT, relation="each").exit_code == 1

    def test_a_sparse_vector_without_noise_on_its_answers(self, hunted):
        wrong = hunted("vector", execution=SHORT, relation="each")
        assert wrong.exit_code == 1
        assert len(wrong.record.pair["x"]) > 1

    def test_a_missing_row_is_named_where_no_relation_is_stated(self, hunted):
        """The verdict is of pairs of equal length; what a missing row shows stands beside it."""
        wrong = hunted("number", execution=SHORT)
        assert wrong.exit_code == 2, "nothing moved, so nothing is concluded"
        told = wrong.record.details["neighbours"]
        assert "With one row more or less, 2000 runs show ε ≥ " in told
        assert told.endswith("give --relation add-remove")
        assert hunted("number", execution=SHORT, relation="add-remove").exit_code == 1
        right = hunted("rows", execution=SHORT)
        assert right.record.details["neighbours"] == (
            "no pair that was tried moves the output visibly, so give --pair or --data or "
            "--relation add-remove"
        )
        moved = hunted("added", execution=SHORT)
        assert moved.exit_code == 0
        assert moved.record.details["neighbours"].startswith("the pair moves one number by 1; ")

    def test_constants_of_the_code_are_tried_in_lists(self, hunted):
        assert hunted("seniors", execution=SHORT).exit_code == 1

    def test_lists_of_different_lengths_are_no_replacement(self, hunted):
        near = hunted("added", execution=SHORT, pair=("[1, 1]", "[1]"))
        assert near.record.details["relation"] == "add-remove"
        assert "why_this_pair" not in near.record.details
        far = hunted("added", execution=SHORT, pair=("[1, 1, 0]", "[0, 0, 1]"))
        assert far.record.details["relation"] == "replace-one"
        assert "differ in 3 entries" in far.record.details["why_this_pair"]

    def test_code_whose_outputs_are_all_alike_ends_with_nothing_concluded(self, hunted):
        assert hunted("constant", execution=SHORT, pair=("[1]", "[2]")).exit_code == 2

    def test_a_missing_row_of_data_is_named_too(self, hunted, tmp_path):
        (tmp_path / "rows.csv").write_text("age,name\n30,a\n40,b\n20,c\n")
        wrong = hunted("number", execution=SHORT, data="rows.csv")
        assert "With one row more or less, " in wrong.record.details["neighbours"]
        right = hunted("rows", execution=SHORT, data="rows.csv")
        assert right.record.details["neighbours"].endswith("give --pair or --relation add-remove")

    def test_neighbours_of_data(self, hunted, tmp_path):
        (tmp_path / "rows.csv").write_text("age,name\n30,a\n40,b\n20,c\n")
        right = hunted(
            "total", execution=SHORT, data="rows.csv", unit="name", relation="replace-one"
        )
        assert right.exit_code == 0
        rows, others = right.record.pair["x"], right.record.pair["x_prime"]
        assert sum(row != other for row, other in zip(rows, others, strict=True)) == 1
        assert sum(row["age"] > 25 for row in rows) != sum(row["age"] > 25 for row in others)
        fewer = hunted("total", execution=SHORT, data="rows.csv", relation="add-remove")
        assert len(fewer.record.pair["x"]) != len(fewer.record.pair["x_prime"])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "the code accepts none of .* pairs; give --pair"),
            ({"data": "empty.json"}, "no neighbours under replace-one"),
            ({"data": "empty.json", "pair": ("0", "1")}, "--data is given with --pair"),
            ({"data": "none.json"}, "does not exist"),
        ],
    )
    def test_what_cannot_be_searched_is_one_sentence(self, hunted, tmp_path, options, message):
        (tmp_path / "empty.json").write_text("{}")
        with pytest.raises(InputError, match=message) as caught:
            hunted("words", execution=SHORT, **options)
        assert "\n" not in str(caught.value)
