"""What every format for people shows: one model, many views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpaudit.reporting import headline, tables, words

if TYPE_CHECKING:
    from dpaudit.certificate import Certificate

__all__ = ["view"]


def view(certificate: Certificate) -> dict[str, Any]:
    """What the templates of every format show."""
    record = certificate.to_dict()
    plan = certificate.plan
    trusted = dict.fromkeys(invocation.trust for invocation in plan.invocations)
    return {
        "certificate": certificate,
        "digest": record["digest"],
        "schema": record["schema"],
        "headline": headline.headline(certificate),
        "trust": tuple(words.TRUST[trust] for trust in trusted),
        "neighbours": words.neighbours(plan.relation, plan.unit),
        "published": words.published(plan),
        "assumptions": words.assumptions(plan),
        "rows": tables.invocation_rows(plan),
        "compared": tables.compared_rows(certificate),
        "native": tables.facts(
            {} if record["guarantee"] is None else record["guarantee"]["native"]
        ),
        "audits": tuple((a, tables.replay_command(certificate, a)) for a in certificate.audits),
        "findings": tables.sorted_findings(certificate.findings),
        "severities": words.SEVERITIES,
        "configuration": tables.facts(certificate.subject.configuration),
        "summary": tables.facts((certificate.run or {}).get("summary", {})),
        "series_rows": tables.series_rows((certificate.run or {}).get("series", {})),
        "versions": sorted(certificate.versions.items()),
        "commands": tables.commands(certificate),
    }
