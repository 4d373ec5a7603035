"""A draft record for the OpenDP deployments registry, as YAML."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from dpaudit.certificate import Certificate
from dpaudit.reporting.base import Renderer
from dpaudit.reporting.checklists.terms import Facts
from dpaudit.reporting.machine.registry.fields import deployment

REGISTRY_HEAD = (
    "# A draft for the OpenDP deployments registry. What a certificate does not tell is unknown.\n"
    "# Where the schema asks for a choice or a date, a placeholder stands and is listed under\n"
    "# additional_information. Replace them before you submit the record.\n"
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
