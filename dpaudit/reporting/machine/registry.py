"""A draft record for the OpenDP deployments registry, as YAML, and what fills its fields."""

from __future__ import annotations

import math
import re
from typing import Any, ClassVar

from dpaudit.accounting import AccountantName
from dpaudit.certificate import Certificate
from dpaudit.plan import TrustModel
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.checklists.terms import Facts, Rules
from dpaudit.reporting.markdown import template
from dpaudit.reporting.text import escaped
from dpaudit.reporting.wording import words
from dpaudit.reporting.wording.headline import headline

REGISTRY_HEAD = (
    "# A draft for the OpenDP deployments registry. What a certificate does not state is "
    "unknown.\n# Where the schema asks for a choice or a date, a placeholder stands and is "
    "listed under\n# additional_information. Replace them before you submit the record.\n"
)
_LONGEST_SLUG = 60


class RegistryRenderer(Renderer):
    """The record of one deployment; several make several YAML documents.

    The registry renders every text as Markdown, so foreign text is escaped for it. Parameters are
    stated only where they are proved and nothing in the certificate speaks against the proof.
    """

    name: ClassVar[str] = "registry"
    suffix: ClassVar[str] = ".registry.yaml"

    def render(self, *certificates: Certificate) -> str:
        """Fields in the order of the schema; texts of several lines as literal blocks."""
        return REGISTRY_HEAD + registry_yaml(
            [registry_record(certificate) for certificate in certificates]
        )


def registry_record(certificate: Certificate) -> dict[str, Any]:
    """Follows ``schemas/deployments-schema.yaml`` of the registry."""
    administrative = {"status": "Draft", "registry_authors": ["Unknown"], "tier": 1}
    return {
        "url_slug": _slug(certificate),
        "deployment": deployment(Facts(certificate)) | {"administrative": administrative},
    }


def _slug(certificate: Certificate) -> str:
    """Letters, digits and hyphens, made unique by the certificate's digest."""
    name = re.sub(r"[^a-z0-9]+", "-", certificate.subject.name.lower()).strip("-")
    return f"{name[:_LONGEST_SLUG].strip('-') or 'subject'}-{certificate.to_dict()['digest'][:12]}"


def registry_yaml(records: list[dict[str, Any]]) -> str:
    """Documents of the registry, one for each record."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Literal blocks, which keep the line breaks of Markdown lists."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    dumped: str = yaml.dump_all(
        records, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100
    )
    return dumped


UNKNOWN = "Unknown"
"""What stands in a text field that a certificate does not fill."""

_PLACEHOLDERS = {
    "data_curator_type": "Industry",
    "data_product_type": "Summary statistics",
    "publication_date": "1900-01-01",
}
"""Required fields in which the schema allows no text; the registry's own template does the same."""


def deployment(facts: Facts) -> dict[str, Any]:
    """Every field but the status of the record; hardly anything is known of the data product."""
    certificate, plan, proved = facts.certificate, facts.plan, facts.proved
    said, texts = headline(certificate), _texts(facts)
    near = f"{words.neighbours(plan.relation, plan.unit)} The relation is {plan.relation}."
    population = {} if facts.population is None else {"number_of_privacy_units": facts.population}
    curator = {
        "data_curator_name": UNKNOWN,
        "data_curator_type": _PLACEHOLDERS["data_curator_type"],
    }
    return {
        "basic": {
            "name": escaped(certificate.subject.name),
            "data_curators": [curator],
            "description": escaped(f"{said.label}: {said.sentence}"),
            "intended_use": UNKNOWN,
            "data_product_type": _PLACEHOLDERS["data_product_type"],
            "data_product_region": UNKNOWN,
            "publication_date": _PLACEHOLDERS["publication_date"],
        },
        "dp_variant": {
            **({} if proved is None else {"variant_name": _variant(facts)}),
            "data_domain": UNKNOWN,
            "unprotected_quantities": texts["unprotected"],
        },
        "privacy_loss": {
            "privacy_unit": escaped(plan.unit),
            "privacy_unit_details": escaped(near),
            **population,
            **({} if proved is None else {"privacy_parameters": _parameters(facts)}),
            "privacy_parameters_details": texts["parameters"],
        },
        "deployment_model": {
            "model_name": _model(facts),
            "model_name_details": texts["model"],
            "trust_assumptions": texts["adversaries"],
            "actors": UNKNOWN,
            **({"release_type": "One release"} if facts.releases == "1 release" else {}),
            "release_type_details": f"At most {facts.releases} by the mechanisms; how they are "
            "published, and whether the data are used again, is unknown.",
            "data_source_type_details": UNKNOWN,
            "access_type_details": UNKNOWN,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": UNKNOWN,
            "mechanisms": texts["mechanisms"],
            "composition": texts["composition"],
            "post_processing": UNKNOWN,
            "justification": texts["justification"],
            "utility": texts["utility"],
            "additional_information": texts["additional"],
        },
    }


def _variant(facts: Facts) -> str:
    """Tell which definition the proof is of."""
    if facts.ball is not None or facts.proved is None:
        return "Custom"
    if facts.proved.delta == 0:
        return "Pure DP"
    return "Zero-concentrated DP" if _rho(facts) is not None else "Approximate DP"


def _rho(facts: Facts) -> float | None:
    if facts.proved is None or facts.proved.accountant is not AccountantName.ZCDP:
        return None
    rho = facts.proved.native.get("rho")
    return rho if isinstance(rho, float) and math.isfinite(rho) else None


def _parameters(facts: Facts) -> dict[str, float]:
    """Only where they can be relied on."""
    if facts.proved is None:
        return {}
    stated = {"epsilon": facts.proved.epsilon}
    if facts.proved.delta > 0:
        stated["delta"] = facts.proved.delta
    rho = _rho(facts)
    return stated if rho is None else stated | {"rho": rho}


def _model(facts: Facts) -> str:
    local = [trust is TrustModel.LOCAL for trust in facts.trust_models]
    return "Local" if all(local) else "Varies" if any(local) else "Central"


def _texts(facts: Facts) -> dict[str, str]:
    """Lists in Markdown, by name; unknown where there is nothing to list."""
    certificate = facts.certificate
    run = certificate.run or {"summary": {}, "series": {}}
    made = template("registry").make_module(
        {
            "facts": facts,
            "certificate": certificate,
            "record": certificate.to_dict(),
            "claim": certificate.claim,
            "guarantee": certificate.guarantee,
            "groups": len(facts.plan.by_unit()),
            "placeholders": _PLACEHOLDERS,
            "results": sorted({*run["summary"], *run["series"]}),
            "uncounted": tuple(
                f.message for f in certificate.findings if f.rule in Rules.UNCOUNTED
            ),
        }
    )
    texts = {name: text for name, text in vars(made).items() if not name.startswith("_")}
    return {name: str(text).strip("\n") or UNKNOWN for name, text in texts.items()}
