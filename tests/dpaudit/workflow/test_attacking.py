"""From the command line to the first run: what is attacked, and how short the way is."""

import sys
from dataclasses import replace

import pytest
from audited import audited
from examples import Answers
from ways import returns_upwards, way

from dpaudit import AuditPair, InputError, Laplace
from dpaudit.cli.main import main
from dpaudit.project import Execution
from dpaudit.project.audit_request import AuditRequest
from dpaudit.workflow.attacking import attack, audit

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
            assert {"dpaudit.cli.main", "dpaudit.cli.audit_command"} < stack
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
            ("watched_code.py:watched", {"epsilon": -1.0}, "epsilon is -1"),
            ("watched_code.py:watched", {"epsilon": 1.0, "delta": 2.0}, "delta is 2"),
            ("watched_code.py:watched", {"pair": ("0", "{")}, "--pair x' is not JSON"),
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
        with pytest.raises(InputError, match=r"arguments are given for \w+, which is no function"):
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

    def test_a_name_is_no_object(self):
        with pytest.raises(InputError, match="target is"):
            audit(AuditRequest(abs, pair=AuditPair(0, 1), epsilon=1.0))
