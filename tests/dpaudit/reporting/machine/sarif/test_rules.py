"""The rules behind SARIF results, and foreign text in them."""

import re

import pytest
from foreign_texts import NASTY

from dpaudit import Finding, Severity
from dpaudit.reporting.machine.sarif.renderer import message, rule_id, rules


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


class TestMessages:
    @pytest.mark.parametrize("text", NASTY)
    def test_nothing_means_anything(self, text):
        escaped = message(text)["text"]
        assert not re.search(r"(?<!\\)(?:\\\\)*\[", escaped)
        assert not re.search(r"(?<!\{)(?:\{\{)*\{\d", escaped.replace("{{", ""))
        unescaped = re.sub(r"\\([\[\]\\])|([{}])\2", lambda m: m[1] or m[2], escaped)
        assert unescaped == text

    def test_empty(self):
        assert message("") == {"text": "–"}
