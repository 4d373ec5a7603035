"""Valid plans of every kind, noise that is calibrated, and budgets that plans share.

What is said of a certificate that was verified.
"""

import json
import math
import random
import tomllib
import warnings
from dataclasses import replace

import pytest
from accounting_builders import use
from examples import response_plan
from gaussian_truth import gaussian_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpaudit import (
    Claim,
    Laplace,
    Plan,
    ReplaceOne,
    guarantee,
)
from dpaudit.accounting import compose, seconds_of_proof
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate import SubjectRecord, certify
from dpaudit.mechanisms import Gaussian
from dpaudit.project.plan_file import read_plan_file
from dpaudit.workflow.calibrating import calibrate_target, fitting
from dpaudit.workflow.certifying import certify_target
from dpaudit.workflow.outcomes import in_sequence
from dpaudit.workflow.verifying import verification
from tests.benchmarks.calibrate import targets, tried
from tests.benchmarks.fuzz import case, made_plan

# Calibrated plans certify as they are printed, and hardly less noise would


@pytest.mark.parametrize(
    ("number", "most_refused"), [(3, 0), pytest.param(24, 6, marks=pytest.mark.pages)]
)
def test_what_is_printed_certifies_and_less_does_not(number, most_refused):
    """The law of ``python -m tests.benchmarks.calibrate``, on its first targets."""
    found = [tried(target) for target in targets(number, seed=2, quick=True)]
    assert [each for each in found if each.fault] == []
    assert sum(bool(each.refused) for each in found) <= most_refused


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
    with pytest.raises(InputError, match="the other invocations alone exceed"):
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


# Valid plans of every kind certify, run and verify: a slice of ``tests.benchmarks.fuzz``

SEED, CASES = 1, 16


def _is_cheap(place):
    return seconds_of_proof(made_plan(random.Random(f"{SEED}/{place}"))) < 15


@pytest.mark.pages
def test_valid_plans_certify_run_and_verify():
    ran, kinds = 0, set()
    for place in filter(_is_cheap, range(CASES)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = case(SEED, place)
        assert not outcome.violation, f"case {place} of seed {SEED}: {outcome.violation}"
        ran, kinds = ran + outcome.ran, kinds | set(outcome.kinds)
    assert ran
    assert len(kinds) > 3


# What several plans release together, against closed forms


def laplace(epsilon, **more):
    return use(Laplace(1 / epsilon), **more)


def test_gaussian_plans_add_up_in_squares():
    plans = {"a": Plan.of(use(Gaussian(4.0), count=3)), "b": Plan.of(use(Gaussian(2.0)))}
    exact = gaussian_epsilon(math.sqrt(3 / 16 + 1 / 4), 1e-6)
    proved = guarantee(in_sequence(plans), 1e-6).epsilon
    assert exact <= proved <= exact * (1 + 1e-6)
    alone = sum(guarantee(plan, 1e-6).epsilon for plan in plans.values())
    assert proved < 0.8 * alone


def test_labels_say_whose_they_are():
    plans = {"a": Plan.of(laplace(1.0, at="x"), laplace(1.0)), "b": Plan.of(laplace(1.0, at="x"))}
    labels = [each.at for each in in_sequence(plans).invocations]
    assert labels == ["a: x", "a: invocation 2", "b: x"]


def test_groups_of_one_plan_stay_parallel():
    grouped = Plan.of(laplace(1.0, group="left"), laplace(2.0, group="right"))
    together = in_sequence({"a": grouped, "b": Plan.of(laplace(0.5))})
    assert guarantee(together).epsilon == pytest.approx(2.5, rel=1e-12)


@pytest.mark.parametrize("names", [("young", "old"), ("left", "right"), ("right", "left")])
def test_groups_of_two_plans_may_overlap_whatever_their_names(names):
    """Somebody may be in the worst group of both: 2 + 3, not max(1, 2, 0.5, 3)."""
    first = Plan.of(laplace(1.0, group="left"), laplace(2.0, group="right"))
    second = Plan.of(laplace(0.5, group=names[0]), laplace(3.0, group=names[1]))
    proved = guarantee(in_sequence({"a": first, "b": second})).epsilon
    assert proved == pytest.approx(5.0, rel=1e-12)
    with_all = in_sequence({"a": first, "b": second, "c": Plan.of(laplace(0.25))})
    assert guarantee(with_all).epsilon == pytest.approx(5.25, rel=1e-12)


losses = st.lists(st.floats(0.01, 3), min_size=1, max_size=3)


@settings(deadline=None)
@given(st.lists(st.lists(losses, min_size=1, max_size=3), min_size=1, max_size=3))
def test_the_sum_over_plans_of_the_worst_group(plans):
    """Pure ε: groups take the maximum within a plan, plans add up."""
    built = {
        f"p{n}": Plan.of(
            *(
                laplace(loss, group=f"g{g}" if len(groups) > 1 else None)
                for g, group in enumerate(groups)
                for loss in group
            )
        )
        for n, groups in enumerate(plans)
    }
    expected = sum(max(math.fsum(group) for group in groups) for groups in plans)
    proved = compose(in_sequence(built), "pure").epsilon(0.0).upper
    assert proved == pytest.approx(expected, rel=1e-9)


def test_what_protects_different_things_has_no_sum():
    rows, users = Plan.of(laplace(1.0)), Plan.of(laplace(1.0, unit="user"))
    with pytest.raises(InputError, match="mixes the units row and user"):
        in_sequence({"a": rows, "b": users})
    replaced = Plan.of(laplace(1.0, relation=ReplaceOne()))
    with pytest.raises(InputError, match="mixes the relations"):
        in_sequence({"a": rows, "b": replaced})


def test_too_many_combinations_are_refused_at_once():
    grouped = Plan.of(*(laplace(1.0, group=str(n)) for n in range(20)))
    with pytest.raises(InputError, match="8000 combinations"):
        in_sequence({"a": grouped, "b": grouped, "c": grouped})


def test_an_older_file_is_called_what_it_is() -> None:
    made = certify(response_plan(), subject=SubjectRecord("mine"), claim=Claim(1.0))
    assert verification(made).remarks == ()
    (remark,) = verification(replace(made, schema="dpaudit-certificate/2")).remarks
    assert "of dpaudit-certificate/2, which does not say on what each premise rests" in remark
