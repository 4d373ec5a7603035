"""``dpaudit list NAME`` and ``dpaudit calibrate``, and ``--claim``, as a terminal of 80 columns."""

import json
from pathlib import Path

import pytest

from dpaudit.base.finding_table import known_findings
from dpaudit.project.targets import own_packages
from dpaudit.reporting.wording.words import RULES


@pytest.fixture
def call(call):
    """The same, whose answers have no line that is wider than the terminal."""

    def run(*arguments):
        answer = call(*arguments)
        lines = [] if "--json" in arguments else answer.out.splitlines()
        assert all(len(line) <= 80 for line in lines)
        return answer

    return run


def test_a_mechanism_is_told_with_an_example_that_certifies(call):
    code, out, _ = call("list", "gaussian")
    assert code == 0
    assert "sigma = 8.0" in out
    assert "must be given" in out
    Path("plan.toml").write_text(out.partition("# a plan file\n")[2])
    assert call("certify", "plan.toml")[0] == 0
    _, out, _ = call("list", "poisson", "--json")
    assert json.loads(out)["kinds"][0]["parameters"][0]["type"] == "a number in (0, 1]"


def test_relations_are_told_together(call):
    call("list", "--relations").says(0, 'relation = { kind = "metric-ball", radius = 2.0 }')
    assert len(json.loads(call("list", "--relations", "--json")[1])["kinds"]) >= 4
    assert call("list", "metricball")[0] == 3


def test_a_selection_of_runs_is_calibrated_by_its_name(call):
    wish = ("calibrate", "private-selection", "--claim", "epsilon = 4, delta = 1e-6")
    call(*wish, "-o", "plan.toml").says(0, "sigma = 1.99777")
    assert call("certify", "plan.toml")[0] == 0
    call(*wish, "--set", 'runs={ law = "poisson", mean = 10 }').says(0, "sigma = 2.14778")


def test_a_threshold_finds_the_least_noise_behind_it(call):
    wish = ("calibrate", "gaussian-histogram", "--claim", "epsilon = 1, delta = 1e-6")
    call(*wish, "--set", "threshold=90", "--set", "key_sensitivity=10").says(0, "certified")


def test_costs_say_whose_noise_they_show(call):
    """One factor is for all noise, but a column shows that of one invocation."""
    call("calibrate", "laplace", "--claim", "epsilon = 1", "-o", "plan.toml").says(
        0, "noise scale ε"
    )
    lines = "\n[[invocation]]\nmechanism = 'gaussian'\nsigma = 9\nsensitivity = 1\nat = 'two'\n"
    text = Path("plan.toml").read_text() + "at = 'one'\n" + lines
    Path("plan.toml").write_text(text)
    claim = ("--claim", "epsilon = 1, delta = 1e-6")
    call("calibrate", "plan.toml", *claim).says(0, "scale of one")


def test_a_calibrated_plan_is_written_and_certifies(call):
    call("calibrate", "laplace", "--accuracy", "5", "--confidence", "0.99").says(
        0, "scale = 1.08573; its noise is at most 4.99998 with 99 %"
    )
    call("calibrate", "laplace", "--claim", "advantage = 0.1", "-o", "plan.toml").says(
        0, "scale = 4.7456", "not certified"
    )
    call("certify", "plan.toml").says(0, "advantage ≤ 0.1")
    answer = json.loads(call("calibrate", "plan.toml", "--json")[1])
    assert answer["claim"]["advantage"] == 0.1
    assert call("certify", "plan.toml", "--claim", "advantage = 0.05")[0] == 1
    code, _, err = call("calibrate", "laplace")
    assert (code, err.count("\n")) == (3, 1)
    code, _, err = call("certify", "plan.toml", "--claim", "advantage = x")
    assert (code, err.count("\n")) == (3, 1)


@pytest.mark.parametrize(
    ("claim", "scale", "code"),
    [
        ("advantage = 0.4", 1.0, 0),
        ("advantage = 0.4", 0.5, 1),
        ("tpr = 0.05, fpr = 0.01", 1.0, 0),
        ("tpr = 0.05, fpr = 0.01", 0.2, 1),
        ("success = 0.7", 0.5, 1),
        ("curve = [[0.2, 0.4], [1.0, 1e-3]]", 0.4, 1),
        ("curve = [[0.2, 0.4], [1.0, 1e-3]]", 1.0, 0),
        ("mu = 1.2, delta = 1e-6", 0.4, 1),
    ],
)
def test_an_audit_tests_what_a_claim_implies(call, claim, scale, code):
    Path("noise.py").write_text(
        f"def noisy(data, rng, size):\n    return data + rng.laplace(scale={scale}, size=size)\n"
    )
    found, out, _ = call(
        *("audit", "noise.py:noisy", "--pair", "0", "1", "--claim", claim),
        *("--seed", "1", "--runs", "4000"),
    )
    assert found == code, out


def test_two_claims_are_one_too_many(call):
    Path("noise.py").write_text("def noisy(data, rng):\n    return data\n")
    call(
        *("audit", "noise.py:noisy", "--pair", "0", "1"),
        *("--claim", "mu = 1", "--epsilon", "1"),
    ).refuses("keep one of them")


def test_a_finding_is_explained(call):
    told = call("explain", "float-noise")
    assert told.out.startswith("float-noise (warning)")
    told.says(0, "What to do: Deploy with a discrete mechanism")
    call("explain").says(0, "batches-not-poisson")
    told = json.loads(call("explain", "--json")[1])["findings"]
    assert {each["rule"] for each in told} >= {"unproven"}
    call("explain", "float-nois").refuses("did you mean 'float-noise'?")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(call, monkeypatch, shell):
    monkeypatch.setenv("_DPAUDIT_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "dpaudit certify --del")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("COMP_WORDS", "dpaudit certify --del")
    monkeypatch.setenv("COMP_CWORD", "2")
    call().says(0, "--delta")


def test_every_rule_of_sarif_is_explained(call):
    for rule in {each.rule for each in known_findings(*own_packages())}:
        code, out, _ = call("explain", f"finding/{rule}")
        assert code == 0
        assert out == call("explain", rule)[1]
    for rule in RULES:
        call("explain", rule).says(0, f"{rule} is a rule of SARIF, not a finding: ")


def test_no_finding_is_explained_by_facts_alone():
    assert [
        each.rule for each in known_findings(*own_packages()) if len(each.message.split()) < 5
    ] == []
