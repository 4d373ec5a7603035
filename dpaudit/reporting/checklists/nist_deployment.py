"""Hazards of the deployment: NIST SP 800-226, section 4."""

from __future__ import annotations

from dpaudit.reporting.checklists.facts import Facts, Rules, listed
from dpaudit.reporting.checklists.model import Status, Template

__all__ = ["TEMPLATES"]

_GROUP = "Deployment"
_NO_RAW_DATA = "Raw data never leave their owner in the local model, so there is no store of them."


def _interactive_queries(facts: Facts) -> tuple[Status, str]:
    return Status.UNKNOWN, (
        f"At most {facts.releases} can happen, all declared in advance, but whether analysts "
        "choose their queries, and how the data are kept for them, is not recorded."
    )


def _trust_assumptions(facts: Facts) -> tuple[Status, str]:
    if facts.local:
        if facts.proved is None:
            return Status.UNKNOWN, f"{facts.unproved}."
        return Status.MET, "The local model asks for no trust in anybody who receives data."
    trusted = dict.fromkeys(str(i.trust) for i in facts.plan.invocations)
    return Status.UNKNOWN, (
        f"The trust model is {listed(list(trusted))}; whether who holds raw data deserves the "
        "trust is not recorded."
    )


def _side_channels(facts: Facts) -> tuple[Status, str]:
    if found := facts.found(Rules.SIDE_CHANNELS):
        return Status.NOT_MET, f"Something beside the released values can leak ({listed(found)})."
    return Status.UNKNOWN, "Timing, error messages and the computing platform are not examined."


def _data_security(facts: Facts) -> tuple[Status, str]:
    if facts.local:
        return Status.NOT_APPLICABLE, _NO_RAW_DATA
    return Status.UNKNOWN, "How raw data are stored and computed on is not recorded."


def _access_control(facts: Facts) -> tuple[Status, str]:
    if facts.local:
        return Status.NOT_APPLICABLE, _NO_RAW_DATA
    return Status.UNKNOWN, "Who has access to raw data is not recorded."


def _data_collection(facts: Facts) -> tuple[Status, str]:
    return Status.UNKNOWN, "Whether less data would do is not recorded."


TEMPLATES = (
    Template(
        "nist-interactive-queries",
        _GROUP,
        "Budget and security stand up to interactive queries (4.1)",
        _interactive_queries,
    ),
    Template(
        "nist-trust-assumptions",
        _GROUP,
        "The trust that the model assumes is justified (4.2)",
        _trust_assumptions,
    ),
    Template(
        "nist-side-channels",
        _GROUP,
        "Floating point, timing and platform leak nothing (4.3)",
        _side_channels,
    ),
    Template(
        "nist-data-security",
        _GROUP,
        "Raw data are stored and processed securely (4.4)",
        _data_security,
    ),
    Template(
        "nist-access-control", _GROUP, "Access to raw data is controlled (4.4)", _access_control
    ),
    Template(
        "nist-data-collection",
        _GROUP,
        "No more data are collected than needed (4.5)",
        _data_collection,
    ),
)
"""In the order of the publication."""
