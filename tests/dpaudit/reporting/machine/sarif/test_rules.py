"""The rules behind SARIF results."""

from dpaudit import Finding, Severity
from dpaudit.reporting.machine.sarif.rules import rule_id, rules


def test_finding_may_not_pose_as_our_rule():
    posing = Finding("claim", Severity.NOTE, "All is well.")
    assert [rule["id"] for rule in rules([posing])] == ["claim", "audit", "finding/claim"]


def test_a_rule_is_as_bad_as_its_worst_finding():
    found = [Finding("a", Severity.NOTE, "x"), Finding("a", Severity.ERROR, "y", "Mend it.")]
    rule = rules(found)[-1]
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert rule["help"]["text"] == "Mend it."


def test_a_rule_without_a_name_gets_one():
    assert rule_id("") == "finding/unnamed"
