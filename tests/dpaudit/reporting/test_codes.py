"""Every code that a report or a terminal prints has an explanation."""

import ast
from pathlib import Path

import dpaudit
from dpaudit.base.finding_table import known_findings
from dpaudit.certificate.assumptions import Premise
from dpaudit.certificate.decisions import DECISIONS
from dpaudit.cli.commands import explain
from dpaudit.reporting.wording.words import RULES

PACKAGE = Path(dpaudit.__file__).parent


def test_every_rule_that_code_names_is_known():
    known = {each.rule for each in known_findings()}
    named = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                rule = next(iter(node.args), None)
                if isinstance(rule, ast.Constant):
                    named[rule.value] = path
    assert {rule: path for rule, path in named.items() if rule not in known} == {}


def test_every_known_code_is_explained(capsys):
    for rule in sorted({each.rule for each in known_findings()} | RULES.keys()):
        explain(rule)
        assert rule in capsys.readouterr().out


def test_every_premise_names_who_decides_what():
    for premise in Premise:
        assert DECISIONS[premise].startswith("Have "), premise
