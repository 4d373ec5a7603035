"""Checklists: every answer follows from the certificate, and nothing unknown is met."""

import json
from dataclasses import replace
from string import Formatter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged import answers, finding, made, simple, status

from dpaudit import Laplace, PrivacyUnit, Severity
from dpaudit.certificate import Certificate
from dpaudit.reporting.checklists import checklists, model
from dpaudit.reporting.checklists.facts import Facts, Rules
from dpaudit.reporting.checklists.model import Status
from dpaudit.reporting.checklists.terms import terms

HAZARDS = {
    "The Privacy Parameter ε": ("nist-large-epsilon",),
    "Variants of Differential Privacy": ("nist-catastrophic-failure",),
    "The Unit of Privacy": ("nist-unit-of-privacy", "nist-event-level"),
    "Comparing Differential Privacy Guarantees": (
        "nist-different-delta",
        "nist-different-unit",
        "nist-large-delta",
    ),
    "Mixing Differential Privacy With Other Data Releases": ("nist-other-releases",),
    "Differentially Private Algorithms": ("nist-custom-implementation",),
    "Systemic Bias": ("nist-systemic-bias",),
    "Human Bias": ("nist-human-bias",),
    "Statistical Bias": ("nist-statistical-bias",),
    "Counting Queries": ("nist-bounded-contribution", "nist-histogram-bins"),
    "Machine Learning": ("nist-machine-learning",),
    "Synthetic Data": ("nist-synthetic-data", "nist-synthetic-quality"),
    "Unstructured Data": ("nist-unstructured-data",),
    "Query Models": ("nist-interactive-queries",),
    "Trust Models": ("nist-trust-assumptions",),
    "Mechanism Implementation Challenges": ("nist-side-channels",),
    "Data Security and Access Control": ("nist-data-security", "nist-access-control"),
    "Data Collection Exposure": ("nist-data-collection",),
}
"""The 24 hazards of NIST SP 800-226, under the titles of its sections."""
REPORTING = {
    "DP setting": ("dpfy-setting",),
    "Instantiating the DP definition": (
        "dpfy-data-accesses",
        "dpfy-final-output",
        "dpfy-unit",
        "dpfy-adjacency",
    ),
    "Privacy accounting details": (
        "dpfy-accountant",
        "dpfy-assumptions",
        "dpfy-formal-statement",
    ),
    "Transparency and verifiability": ("dpfy-recomputable", "dpfy-open-code"),
}
LABEL = {
    "Label": (
        "label-parameters",
        "label-unit",
        "label-utility",
        "label-mechanism",
        "label-hyperparameters",
        "label-deployment",
        "label-empirical",
        "label-interpretation",
        "label-other",
    )
}


class TestLists:
    def test_rules_are_those_of_the_sources(self, certificate):
        for checklist, groups in zip(
            checklists(certificate), (HAZARDS, REPORTING, LABEL), strict=True
        ):
            found = {}
            for item in checklist.items:
                found[item.group] = (*found.get(item.group, ()), item.rule)
            assert found == groups

    def test_rules_are_unique(self, certificate):
        rules = [item.rule for each in checklists(certificate) for item in each.items]
        assert len(rules) == len(set(rules)) == 24 + 10 + 9

    def test_every_answer_has_one_sentence(self, certificate):
        for item in answers(certificate).values():
            assert isinstance(item.status, Status)
            assert item.reason.endswith(".")
            assert item.title
            assert "\n" not in item.reason
            assert len(item.reason) < 400

    def test_same_answers_for_a_certificate_read_back(self, certificate):
        again = Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
        assert checklists(again) == checklists(certificate)

    def test_counts(self, certificates):
        for checklist in checklists(certificates["certified"]):
            assert sum(map(checklist.count, Status)) == len(checklist.items)


class TestUnknownIsNeverMet:
    NEVER_TOLD = (
        "nist-systemic-bias",
        "nist-human-bias",
        "nist-statistical-bias",
        "nist-histogram-bins",
        "nist-synthetic-quality",
        "nist-unstructured-data",
        "nist-interactive-queries",
        "nist-data-collection",
        "label-other",
    )
    """What no certificate can tell."""

    def test_what_a_certificate_cannot_tell(self, certificate):
        for rule in self.NEVER_TOLD:
            assert status(certificate, rule) is Status.UNKNOWN, rule

    @pytest.mark.parametrize("name", ["opaque", "unbounded", "refuted", "hostile"])
    def test_nothing_that_needs_a_proof_is_met_without_one(self, certificates, name):
        """refuted and hostile: an audit exceeds the proof, or an error disputes the plan."""
        for rule in (
            "nist-large-epsilon",
            "nist-catastrophic-failure",
            "nist-large-delta",
            "nist-bounded-contribution",
            "nist-machine-learning",
            "nist-synthetic-data",
            "nist-trust-assumptions",
            "dpfy-assumptions",
            "dpfy-formal-statement",
            "label-parameters",
            "label-interpretation",
        ):
            assert status(certificates[name], rule) is not Status.MET, rule

    @given(
        rules=st.sets(st.sampled_from(sorted(Rules.IMPLEMENTATION | Rules.UNCOUNTED)), max_size=3),
        severity=st.sampled_from(Severity),
    )
    @settings(max_examples=30, deadline=None)
    def test_a_further_finding_never_makes_an_item_met(self, rules, severity):
        plain = simple()
        worse = replace(
            plain, findings=(*plain.findings, *(finding(rule, severity) for rule in sorted(rules)))
        )
        before, after = answers(plain), answers(worse)
        for rule, item in after.items():
            assert item.status is not Status.MET or before[rule].status is Status.MET


class TestTables:
    @pytest.fixture(params=["nist", "dpfy", "label"])
    def items(self, request):
        table = model._loaded(request.param)
        return [
            item for group in table.values() if isinstance(group, dict) for item in group.values()
        ]

    def test_conditions_and_quotations_are_terms(self, items):
        known = terms(Facts(simple())).keys()
        for item in items:
            answers = {name: answer for name, answer in item.items() if name != "title"}
            assert answers.keys() - {"otherwise"} <= known
            for _, sentence in answers.values():
                quoted = {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}
                assert quoted <= known

    def test_every_item_has_a_last_answer(self, items):
        for item in items:
            assert next(iter(item)) == "title"
            assert list(item)[-1] == "otherwise"

    def test_what_is_quoted_is_no_placeholder(self):
        quoted = made(Laplace(1.0), unit=PrivacyUnit("{relation} {0.__class__}"))
        assert "{relation} {0.__class__}" in answers(quoted)["label-unit"].reason

    def test_tally(self, certificates):
        (nist, *_) = checklists(certificates["bare"])
        counts = [nist.count(each) for each in Status]
        assert (
            nist.tally
            == "Of 24 items: {} met, {} not met, {} not applicable, {} unknown.".format(*counts)
        )
