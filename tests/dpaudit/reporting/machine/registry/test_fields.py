"""Fields of a registry record."""

import pytest
from judged import finding, made

from dpaudit import Claim, Gaussian, Laplace
from dpaudit.reporting.checklists.terms import Facts
from dpaudit.reporting.machine.registry import fields


def facts(*given, **options):
    return Facts(made(*given, **options))


def test_parameters_of_a_claim_are_kept_apart():
    loss = fields.deployment(facts(Laplace(1.0), claim=Claim(0.25, source="web")))["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0}
    assert "- Claimed: ε = 0.25, δ = 0 (web)." in loss["privacy_parameters_details"]


@pytest.mark.parametrize(("count", "release"), [(1, {"One release"}), (2, set())])
def test_one_release_is_named_so(count, release):
    model = fields.deployment(facts(Laplace(1.0), count=count))["deployment_model"]
    assert {model[name] for name in model if name == "release_type"} == release


def test_nothing_to_list_is_unknown():
    implementation = fields.deployment(facts(Laplace(1.0)))["implementation"]
    assert implementation["utility"] == fields.UNKNOWN
    assert "float-noise" in implementation["justification"]


def test_uncounted_findings_are_unprotected():
    known = facts(Gaussian(5.0), delta=1e-6, findings=[finding("outside-the-claim")])
    variant = fields.deployment(known)["dp_variant"]
    assert variant["unprotected_quantities"] == "- Something is wrong."


def test_name_is_escaped():
    assert fields.deployment(facts(Laplace(1.0), name="*a*"))["basic"]["name"] == "\\*a\\*"
