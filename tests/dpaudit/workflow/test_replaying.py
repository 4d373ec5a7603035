"""A finding of a rehearsal can be looked at, by the command that it names."""

import re
import shlex
from dataclasses import dataclass

import pytest
from examples import Answers

from dpaudit import InputError, RunResult
from dpaudit.cli.main import main
from dpaudit.project.targets import find_subject
from dpaudit.workflow.rehearsing import rehearsed
from dpaudit.workflow.replaying import replay_command, replay_subject

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
    made = rehearsed(Leaks(), f"{HERE}:Leaks")
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
    (finding,) = rehearsed(find_subject(name, {"users": 4}), name).findings
    (command,) = re.findall(r"To see it: (.*)\)$", finding.message)
    assert "--set users=4" in command
    assert "epsilon" not in command
    assert ran(command, capsys)[0] == 1


def test_an_unknown_neighbour_is_refused():
    with pytest.raises(InputError, match="leave --neighbour out"):
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
    (finding,) = rehearsed(find_subject(name, {}), name).findings
    (command,) = re.findall(r"To see it: (.*)\)$", finding.message)
    code, out = ran(command, capsys)
    assert code == 1
    assert "result-not-from-releases" in out
