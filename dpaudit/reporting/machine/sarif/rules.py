"""The rules behind SARIF results, with help, and foreign text in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dpaudit.base.finding_table import explained_at
from dpaudit.certificate import Finding, Severity
from dpaudit.reporting.wording.words import RULES, SEVERITIES

CLAIM = "claim"
"""Rule of the verdict."""
AUDIT = "audit"
"""Rule of every audit."""

_MOST_REMEDIES = 5
_MEANS_SOMETHING = re.compile(r"[\[\]\\]|[{}]")


def rules(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The verdict's rule, the audits' rule, and one for each kind of finding, by first appearance.

    The help of a finding's rule is what the findings themselves advise.
    """
    alike: dict[str, list[Finding]] = {}
    for finding in findings:
        alike.setdefault(finding.rule, []).append(finding)
    own = [_rule(name, said["short"], said["help"], "error") for name, said in RULES.items()]
    return own + [_finding_rule(rule, found) for rule, found in alike.items()]


def _finding_rule(rule: str, found: list[Finding]) -> dict[str, Any]:
    worst = min(found, key=lambda finding: list(Severity).index(finding.severity)).severity
    remedies = dict.fromkeys(finding.remedy for finding in found if finding.remedy)
    advice = " ".join(list(remedies)[:_MOST_REMEDIES])
    meaning = f"{SEVERITIES[worst][0].upper()}{SEVERITIES[worst][1:]}."
    page = explained_at(rule)
    told = _rule(rule_id(rule), meaning, advice or meaning, str(worst))
    return told | ({"helpUri": page} if page else {})


def rule_id(rule: str) -> str:
    """A finding may not pose as a rule of ours, and a rule needs a name."""
    return f"finding/{rule or 'unnamed'}"


def _rule(name: str, short: str, text: str, level: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": message(short),
        "help": message(text),
        "defaultConfiguration": {"level": level},
    }


def message(text: str) -> dict[str, str]:
    r"""A message object in which no character makes a link or a placeholder.

    SARIF 2.1.0 doubles braces (section 3.11.5) and puts a backslash before brackets and backslashes
    (section 3.11.6). An empty message, which viewers refuse, becomes a dash.

    >>> message("see [a](http://b) and {0}")["text"]
    'see \\[a\\](http://b) and {{0}}'
    """
    return {"text": _MEANS_SOMETHING.sub(_escaped, text) or "–"}


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return character * 2 if character in "{}" else f"\\{character}"
