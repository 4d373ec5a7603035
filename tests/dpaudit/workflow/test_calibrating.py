"""Calibrated plans certify as they are printed, and hardly less noise would."""

import json
import tomllib

import pytest
from scipy.stats import norm

from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate import Claim
from dpaudit.mechanisms import Gaussian
from dpaudit.project.plan_file import read_plan_file
from dpaudit.workflow.calibrating import calibrate_target, fitting
from dpaudit.workflow.certifying import certify_target
from tests.benchmarks.calibrate import targets, tried


def test_what_is_printed_certifies_and_less_does_not():
    """The law of ``python -m tests.benchmarks.calibrate``, on its first few dozen targets."""
    found = [tried(target) for target in targets(24, seed=2, quick=True)]
    assert [each for each in found if each.fault] == []
    assert sum(not each.refused for each in found) >= 18


@pytest.mark.parametrize(
    ("claim", "sigma"),
    [
        (
            "epsilon = 1, delta = 1e-5",
            Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1).sigma,
        ),
        ("advantage = 0.1", 0.5 / norm.ppf(0.55)),
        ("success = 0.55", 0.5 / norm.ppf(0.55)),
        ("tpr = 0.05, fpr = 0.01", 1 / (norm.isf(0.01) - norm.isf(0.05))),
        ("mu = 0.5", 2.0),
        ("rho = 0.125", 2.0),
    ],
)
def test_the_least_sigma_is_that_of_the_closed_form(claim, sigma):
    found = calibrate_target("gaussian", [], claim)
    (name, value) = found.noise["invocation 1"]
    assert name == "sigma"
    assert sigma * (1 - 1e-9) <= value <= sigma * (1 + 2e-5)
    assert [cost.certified for cost in found.costs] == [cost.factor >= 1 for cost in found.costs]


PLAN = """
[plan]
relation = "add-remove"
[claim]
advantage = 0.2
[[invocation]]
mechanism = "gaussian"
sigma = 5.0
sensitivity = 1.0
at = "sum"
[[invocation]]
mechanism = "laplace"
scale = 10.0
sensitivity = 1.0
at = "count"
"""


def test_a_plan_file_scales_as_a_whole_or_in_one_place(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    whole = calibrate_target(str(path), [], None)
    (_, sigma), (_, scale) = whole.noise.values()
    assert scale / sigma == pytest.approx(2.0, rel=1e-4)
    one = calibrate_target(str(path), [], None, at="sum")
    assert list(one.noise) == ["sum"]
    assert one.certificate.plan.invocations[1].mechanism.scale == 10.0
    written = one.save(tmp_path / "calibrated.toml")
    assert read_plan_file(written).claim == Claim.of(advantage=0.2)
    assert certify_target(str(written), [], None, "best").verdict == "certified"
    json.dumps(one.to_dict(), allow_nan=False)
    assert tomllib.loads(one.to_dict()["plan"])["invocation"][0]["at"] == "sum"


def test_where_the_others_alone_cost_more_no_noise_is_sought(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    with pytest.raises(InputError, match="what is not 'sum' alone exceeds"):
        calibrate_target(str(path), [], "epsilon = 0.05, delta = 1e-6", at="sum")


@pytest.mark.parametrize(
    ("name", "settings", "claim", "at", "message"),
    [
        ("gauss", [], "advantage = 0.1", "", "did you mean 'gaussian'"),
        ("gaussian", [], None, "", "--claim is missing"),
        ("gaussian", [], "advantage 0.1", "", "must be as in a plan file"),
        ("gaussian", [], "mu = 1 } \n x = { y = 2", "", "must be as in a plan file"),
        ("gaussian", [], "epsilon = 1", "", "no noise certifies"),
        (
            "randomized-response",
            ["k=2", "sampling={scheme='poisson', rate=0.05}"],
            "advantage = 0.4",
            "",
            "any noise",
        ),
        ("gaussian", ["sensitivity=0"], "advantage = 0.1", "", "every sensitivity is 0"),
        ("gaussian", ["sigmas=3"], "advantage = 0.1", "", "for example: mechanism = "),
        ("gaussian", [], "advantage = 0.1", "here", "must be the label of an invocation"),
        ("continual-gaussian", [], "mu = 1", "", "lacks the key 'factorization'"),
        ("plan.toml", ["count=2"], "mu = 1", "", "edit the file"),
    ],
)
def test_wrong_input_is_one_sentence(name, settings, claim, at, message):
    with pytest.raises(InputError, match=message):
        calibrate_target(name, settings, claim, at)


def test_a_threshold_that_stays_leaves_a_window_of_noise():
    """Between 10, where the count of a key tells too much, and 34, where a new key is told."""
    found = calibrate_target("stable-histogram", ["threshold=400"], "epsilon = 0.1, delta = 1e-5")
    assert found.noise["invocation 1"] == ("scale", pytest.approx(10.0, rel=1e-3))
    assert [cost.certified for cost in found.costs] == [cost.factor >= 1 for cost in found.costs]


def test_what_has_no_proof_cannot_be_calibrated():
    with pytest.raises(UnsupportedError, match="without a proof"):
        calibrate_target("opaque", ['label="x"'], "advantage = 0.1")


def test_a_claim_without_source_is_written_without_one():
    assert "source" not in calibrate_target("laplace", [], "advantage = 0.1").content["claim"]


def test_where_no_noise_that_a_float_holds_is_enough_there_is_none():
    invocation = {"mechanism": "gaussian", "sigma": 1e300, "sensitivity": 1.0}
    content = {"plan": {"relation": "add-remove"}, "invocation": [invocation]}
    assert fitting(content, lambda plan: False) is None
