"""A subject is rehearsed, and a run of it is replayed."""

import re
import shlex
from dataclasses import dataclass
from inspect import signature

import pytest
from examples import Answers

from dpaudit import InputError, RunResult, Subject, certify
from dpaudit.certificate import Scope
from dpaudit.cli.main import main
from dpaudit.project.targets import find_subject, find_target
from dpaudit.rehearsal.rehearse import LONGEST, rehearse
from dpaudit.workflow.certifying import certify_target
from dpaudit.workflow.rehearsing import (
    rehearse_on,
    rehearse_subject,
    replay_command,
    replay_subject,
    with_rehearsal,
)

# From a subject to a rehearsal on its own data


@dataclass(frozen=True)
class Numbers(Answers):
    default_data = "numbers"


def test_the_default_data_are_loaded():
    made = rehearse_subject(Numbers(), "numbers")
    assert made.record.done
    assert made.record.data == "numbers"
    assert made.findings == ()


@dataclass(frozen=True)
class WithoutRun(Subject):
    def plan(self):
        return Answers().plan()


@dataclass(frozen=True)
class WithoutLoad(WithoutRun):
    def run(self, data, ledger, rng):
        raise AssertionError


@dataclass(frozen=True)
class BrokenLoad(WithoutLoad):
    def load(self, source, rng):
        raise KeyError("secret")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (WithoutRun(), "The subject has no run; define run and load."),
        (WithoutLoad(), "The subject has no data to run on; define load."),
        (BrokenLoad(), "x raised KeyError at test_replaying.py:"),
        (Answers(), "x raised InputError at examples.py:"),
    ],
)
def test_what_prevents_it_is_the_reason(subject, reason):
    made = rehearse_subject(subject, "x")
    assert not made.record.done
    assert made.record.reason.startswith(reason)
    assert "secret" not in made.record.reason


def test_a_certificate_of_the_code_needs_data():
    target = find_target("examples:Answers", {})
    plain = certify(target.plan, subject=target.record, claim=target.claim)
    assert with_rehearsal(plain, target).scope is Scope.PLAN
    assert with_rehearsal(plain, target, data="numbers").scope is Scope.CODE


def test_the_command_s_options_go_together(tmp_path):
    made = certify_target("examples:Answers", [], None, "best", rehearse=True, data="numbers")
    assert made.scope is Scope.CODE
    with pytest.raises(InputError, match="add --rehearse"):
        certify_target("examples:Answers", [], None, "best", data="numbers")
    plan = tmp_path / "p.toml"
    plan.write_text(
        '[plan]\nunit = "row"\nrelation = "add-remove"\n'
        '[[invocation]]\nmechanism = "laplace"\nscale = 1\nsensitivity = 1\n'
    )
    with pytest.raises(InputError, match="is a plan; only the code of a subject"):
        certify_target(str(plan), [], None, "best", rehearse=True)


# A finding of a rehearsal can be looked at, by the command that it names

HERE = __name__


@dataclass(frozen=True)
class Leaks(Answers):
    default_data = "numbers"

    def run(self, data, ledger, rng):
        super().run(data, ledger, rng)
        return RunResult({"raw": max(data)})


def ran(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command)[1:])
    return ended.value.code, capsys.readouterr().out


def test_the_command_of_a_finding_shows_it(capsys):
    made = rehearse_subject(Leaks(), f"{HERE}:Leaks")
    (finding,) = made.findings
    (command,) = re.findall(r"To see it: (.*)\)$", finding.message)
    code, out = ran(command, capsys)
    assert code == 1
    assert "result-not-from-releases" in out
    assert "raw" in out


def test_without_a_neighbour_all_are_listed(capsys):
    code, out = ran(f"dpaudit replay {HERE}:Leaks", capsys)
    assert code == 1
    assert out.count("result-not-from-releases") >= 2
    code, out = ran(f"dpaudit replay {HERE}:Right", capsys)
    assert code == 0


@dataclass(frozen=True)
class Right(Answers):
    default_data = "numbers"


def test_what_differs_from_the_defaults_is_in_the_command():
    assert replay_command(Right(), "m:Right", "numbers", 0) == "dpaudit replay m:Right --neighbour"
    found = replay_command(Right(epsilon=2.0), "m:Right", "my data", 3)
    assert found == (
        "dpaudit replay m:Right --set epsilon=2.0 --data 'my data' --seed 3 --neighbour"
    )


def test_an_instance_is_replayed_with_its_own_fields(tmp_path, capsys):
    target = tmp_path / "made_here.py"
    target.write_text(KEEPS + "\n\nMADE = Keeps(epsilon=0.5, users=3)\n")
    name = f"{target}:MADE"
    (finding,) = rehearse_subject(find_subject(name, {"users": 4}), name).findings
    (command,) = re.findall(r"To see it: (.*)\)$", finding.message)
    assert "--set users=4" in command
    assert "epsilon" not in command
    assert ran(command, capsys)[0] == 1


def test_an_unknown_neighbour_is_refused():
    with pytest.raises(InputError, match="leave it out"):
        list(replay_subject(f"{HERE}:Right", neighbour="another one"))


KEEPS = """
from examples import Answers
from dpaudit import RunResult

KEPT = {}

class Keeps(Answers):
    default_data = "numbers"

    def run(self, data, ledger, rng):
        super().run(data, ledger, rng)
        return RunResult({"raw": KEPT.setdefault("raw", max(data))})
"""


def test_what_only_a_process_of_its_own_shows_is_shown_too(tmp_path, capsys):
    target = tmp_path / "keeping.py"
    target.write_text(KEEPS)
    name = f"{target}:Keeps"
    (finding,) = rehearse_subject(find_subject(name, {}), name).findings
    (command,) = re.findall(r"To see it: (.*)\)$", finding.message)
    code, out = ran(command, capsys)
    assert code == 1
    assert "result-not-from-releases" in out


def test_all_doors_give_a_run_the_same_time():
    """A minute was not enough on a machine that others use, and accused a right run."""
    doors = rehearse, rehearse_subject, rehearse_on
    assert {signature(each).parameters["timeout"].default for each in doors} == {LONGEST}
