"""From a subject to a rehearsal on its own data."""

from dataclasses import dataclass
from inspect import signature

import pytest
from examples import Answers

from dpaudit import InputError, Subject, certify
from dpaudit.auditing.rehearsal.rehearse import LONGEST, rehearse
from dpaudit.certificate import Scope
from dpaudit.project.targets import find_target
from dpaudit.workflow.certifying import certify_target
from dpaudit.workflow.rehearsing import rehearsed, rehearsed_on, with_rehearsal


@dataclass(frozen=True)
class Numbers(Answers):
    default_data = "numbers"


def test_the_default_data_are_loaded():
    made = rehearsed(Numbers(), "numbers")
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
        (BrokenLoad(), "x raised KeyError at test_rehearsing.py:"),
        (Answers(), "x raised InputError at examples.py:"),
    ],
)
def test_what_prevents_it_is_the_reason(subject, reason):
    made = rehearsed(subject, "x")
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


def test_all_doors_give_a_run_the_same_time():
    """A minute was not enough on a machine that others use, and accused a right run."""
    doors = rehearse, rehearsed, rehearsed_on
    assert {signature(each).parameters["timeout"].default for each in doors} == {LONGEST}
