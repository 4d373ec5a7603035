"""Registry records: valid against the registry's schema, and never better than the proof."""

import html
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml
from foreign_texts import NASTY, certificates
from hypothesis import given, settings
from jsonschema import Draft7Validator
from judged import finding, made
from markdown_it import MarkdownIt
from renderer_conformance import RendererConformance, leaves, squeezed

from dpaudit import (
    Claim,
    Finding,
    Gaussian,
    Invocation,
    Laplace,
    MetricBall,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    Severity,
    TrustModel,
    certify,
)
from dpaudit.certificate import SubjectRecord
from dpaudit.plan import FixedSizeSampling
from dpaudit.reporting import RegistryRenderer, renderer_for
from dpaudit.reporting.checklists.terms import Facts
from dpaudit.reporting.machine import registry

MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})


@cache
def schema():
    path = Path(__file__).parent / "schemas" / "deployments-schema.yaml"
    content = yaml.safe_load(path.read_text("utf-8"))
    return Draft7Validator(content, format_checker=Draft7Validator.FORMAT_CHECKER)


def deployment(certificate):
    return yaml.safe_load(RegistryRenderer().render(certificate))["deployment"]


def tags(certificate):
    """What the texts of a record make on a page."""
    pages = map(MARKDOWN.render, leaves(deployment(certificate)))
    return {tag for page in pages for tag in re.findall(r"</?(\w+)", page)}


def certified(mechanism, **fields):
    return made(mechanism, **({"relation": ReplaceOne()} | fields))


class TestRegistry(RendererConformance):
    renderer = RegistryRenderer

    def read(self, rendered):
        """What the registry's pages show of it."""
        texts = [text for record in yaml.safe_load_all(rendered) for text in leaves(record)]
        shown = " ".join(MARKDOWN.render(text) for text in texts)
        return squeezed(html.unescape(re.sub(r"<[^>]*>", " ", shown)))

    def test_is_valid(self, certificate):
        schema().validate(yaml.safe_load(RegistryRenderer().render(certificate)))

    def test_several_are_several_documents(self, certificates):
        several = [certificates[name] for name in ("bare", "refuted", "hostile")]
        records = list(yaml.safe_load_all(RegistryRenderer().render(*several)))
        for record in records:
            schema().validate(record)
        assert len({record["url_slug"] for record in records}) == 3

    def test_unknown_is_said_and_placeholders_are_listed(self, certificate):
        record = deployment(certificate)
        basic, implementation = record["basic"], record["implementation"]
        for name in ("intended_use", "data_product_region"):
            assert basic[name] == "Unknown"
        assert basic["data_curators"][0]["data_curator_name"] == "Unknown"
        assert implementation["preprocessing_and_hyperparameter_tuning"] == "Unknown"
        assert "data_product_sector" not in basic
        for name in ("data_curator_type", "data_product_type", "publication_date"):
            listed = implementation["additional_information"].splitlines()[0]
            assert name.replace("_", "\\_") in listed
        assert record["administrative"] == {
            "status": "Draft",
            "registry_authors": ["Unknown"],
            "tier": 1,
        }

    @pytest.mark.parametrize("name", ["refuted", "opaque", "unbounded", "hostile"])
    def test_no_parameters_without_a_proof_that_stands(self, certificates, name):
        record = deployment(certificates[name])
        assert "privacy_parameters" not in record["privacy_loss"]
        assert "variant_name" not in record["dp_variant"]
        assert "No parameters are stated" in record["privacy_loss"]["privacy_parameters_details"]

    def test_pure(self):
        record = deployment(certified(Laplace(2.0)))
        assert record["dp_variant"]["variant_name"] == "Pure DP"
        assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}

    def test_approximate(self):
        certificate = certified(Gaussian(5.0), delta=1e-10)
        record = deployment(certificate)
        assert record["dp_variant"]["variant_name"] == "Approximate DP"
        assert record["privacy_loss"]["privacy_parameters"] == {
            "epsilon": certificate.guarantee.epsilon,
            "delta": 1e-10,
        }

    def test_concentrated(self):
        """ρ = Δ²/(2σ²) (Bun and Steinke 2016)."""
        invocation = certified(Gaussian(5.0), delta=1e-6).plan
        certificate = certify(
            invocation, subject=SubjectRecord("a:B"), delta=1e-6, accountant="zcdp"
        )
        record = deployment(certificate)
        assert record["dp_variant"]["variant_name"] == "Zero-concentrated DP"
        assert record["privacy_loss"]["privacy_parameters"]["rho"] == pytest.approx(0.02)

    def test_a_ball_is_no_common_variant(self):
        record = deployment(certified(Laplace(2.0), relation=MetricBall(0.5)))
        assert record["dp_variant"]["variant_name"] == "Custom"

    @pytest.mark.parametrize(
        ("trusts", "name"),
        [
            ((TrustModel.LOCAL,), "Local"),
            ((TrustModel.CENTRAL,), "Central"),
            ((TrustModel.JOINT, TrustModel.CURATOR), "Central"),
            ((TrustModel.LOCAL, TrustModel.CENTRAL), "Varies"),
        ],
    )
    def test_model(self, trusts, name):
        steps = [
            Invocation(Laplace(1.0), 1.0, PrivacyUnit("user"), ReplaceOne(), trust)
            for trust in trusts
        ]
        certificate = certify(Plan.of(*steps), subject=SubjectRecord("a:B"))
        assert deployment(certificate)["deployment_model"]["model_name"] == name

    def test_number_of_units_only_where_it_is_known(self):
        sampled = certified(Gaussian(5.0), delta=1e-6, sampling=FixedSizeSampling(10, 2500))
        assert deployment(sampled)["privacy_loss"]["number_of_privacy_units"] == 2500
        assert "number_of_privacy_units" not in deployment(certified(Laplace(1.0)))["privacy_loss"]

    def test_one_release(self):
        once = deployment(certified(Laplace(1.0)))["deployment_model"]
        assert once["release_type"] == "One release"
        assert (
            "release_type" not in deployment(certified(Laplace(1.0), count=2))["deployment_model"]
        )

    def test_what_leaves_uncounted_is_unprotected(self):
        leak = Finding("data-dependent-bound", Severity.WARNING, "B was read off the data.")
        record = deployment(certified(Laplace(1.0), findings=[leak]))
        assert record["dp_variant"]["unprotected_quantities"] == "- B was read off the data."
        assert (
            deployment(certified(Laplace(1.0)))["dp_variant"]["unprotected_quantities"] == "Unknown"
        )

    def test_claim_is_kept_apart_from_what_is_proved(self):
        record = deployment(certified(Laplace(1.0), claim=Claim(0.25, source="web page")))
        assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
        assert (
            "Claimed: ε = 0.25, δ = 0 (web page)."
            in (record["privacy_loss"]["privacy_parameters_details"])
        )

    def test_slug_is_a_slug(self, certificate):
        slug = yaml.safe_load(RegistryRenderer().render(certificate))["url_slug"]
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
        assert len(slug) <= 73

    @pytest.mark.parametrize("text", NASTY)
    def test_nasty_text_means_nothing(self, certificates, text):
        certificate = replace(
            certificates["bare"],
            subject=SubjectRecord(text, {text: text}, None, text),
            not_covered=(text,),
        )
        schema().validate(yaml.safe_load(RegistryRenderer().render(certificate)))
        assert tags(certificate) <= {"p", "ul", "li"}

    def test_hostile_text_means_nothing(self, certificate):
        assert tags(certificate) <= {"p", "ul", "li"}

    @given(certificates())
    @settings(max_examples=25, deadline=None)
    def test_any_text_is_valid(self, certificate):
        schema().validate(yaml.safe_load(RegistryRenderer().render(certificate)))
        assert tags(certificate) <= {"p", "ul", "li"}

    def test_schema_refuses_what_is_wrong(self, certificates):
        """The validation above can fail."""
        record = yaml.safe_load(RegistryRenderer().render(certificates["bare"]))
        record["deployment"]["basic"]["publication_date"] = "1/1/2026"
        record["deployment"]["surprise"] = 1
        assert len(list(schema().iter_errors(record))) == 2

    def test_ending(self):
        assert isinstance(renderer_for("a.registry.yaml"), RegistryRenderer)


def facts(*given, **options):
    return Facts(made(*given, **options))


def test_parameters_of_a_claim_are_kept_apart():
    loss = registry.deployment(facts(Laplace(1.0), claim=Claim(0.25, source="web")))["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0}
    assert "- Claimed: ε = 0.25, δ = 0 (web)." in loss["privacy_parameters_details"]


@pytest.mark.parametrize(("count", "release"), [(1, {"One release"}), (2, set())])
def test_one_release_is_named_so(count, release):
    model = registry.deployment(facts(Laplace(1.0), count=count))["deployment_model"]
    assert {model[name] for name in model if name == "release_type"} == release


def test_nothing_to_list_is_unknown():
    implementation = registry.deployment(facts(Laplace(1.0)))["implementation"]
    assert implementation["utility"] == registry.UNKNOWN
    assert "float-noise" in implementation["justification"]


def test_uncounted_findings_are_unprotected():
    known = facts(Gaussian(5.0), delta=1e-6, findings=[finding("outside-the-claim")])
    variant = registry.deployment(known)["dp_variant"]
    assert variant["unprotected_quantities"] == "- Something is wrong."


def test_name_is_escaped():
    assert registry.deployment(facts(Laplace(1.0), name="*a*"))["basic"]["name"] == "\\*a\\*"
