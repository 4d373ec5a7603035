"""SARIF: valid against the standard's schema, with rules, and with places in the source."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from foreign_texts import NASTY, certificates
from hypothesis import given, settings
from jsonschema import Draft4Validator
from places_in_source import assert_below_root
from renderer_conformance import JsonConformance

from dpaudit import Finding, Severity
from dpaudit.certificate import SubjectRecord
from dpaudit.reporting import SarifRenderer, renderer_for
from dpaudit.reporting.machine.sarif import location, message, rule_id, rules


@cache
def schema():
    path = Path(__file__).parent / "schemas" / "sarif-2.1.0-rtm.5.json"
    return Draft4Validator(json.loads(path.read_text("utf-8")))


def log(*given_certificates):
    return json.loads(SarifRenderer().render(*given_certificates))


def run(certificate):
    [only] = log(certificate)["runs"]
    return only


class TestSarif(JsonConformance):
    renderer = SarifRenderer

    def test_is_valid(self, certificate):
        schema().validate(log(certificate))

    def test_several_are_several_runs(self, certificates):
        several = [certificates[name] for name in ("bare", "refuted", "hostile")]
        document = log(*several)
        schema().validate(document)
        categories = [each["automationDetails"]["id"] for each in document["runs"]]
        assert categories == [f"dpaudit/{c.subject.name}/" for c in several]

    def test_runs_of_one_subject_differ_in_their_identifiers(self, certificates):
        known = certificates["bare"]
        several = log(known, certificates["refuted"], known, known)["runs"]
        *_, second, third = (each["automationDetails"]["id"] for each in several)
        name = f"dpaudit/{known.subject.name}/"
        assert (second, third) == (f"{name}2/", f"{name}3/")

    def test_the_certificate_is_a_property_of_its_run(self, certificate):
        assert run(certificate)["properties"]["certificate"] == certificate.to_dict()

    def test_nothing_wrong_makes_no_result(self, certificates):
        assert run(certificates["bare"])["results"] == []

    def test_results(self, certificates):
        found = [
            (result["ruleId"], result["level"])
            for result in run(certificates["refuted"])["results"]
        ]
        assert found == [
            ("claim", "error"),
            ("audit", "error"),
            ("finding/not-the-declared-mechanism", "error"),
            ("finding/float-noise", "warning"),
            ("finding/response-unit", "note"),
            ("finding/data-dependent-bound", "warning"),
            ("finding/wrong-range", "error"),
        ]

    @pytest.mark.parametrize(
        ("name", "level"),
        [("exceeded", "error"), ("opaque", "warning"), ("unbounded", "warning")],
    )
    def test_level_of_the_verdict(self, certificates, name, level):
        first = run(certificates[name])["results"][0]
        assert (first["ruleId"], first["level"]) == ("claim", level)

    def test_every_rule_has_help_and_every_result_its_rule(self, certificate):
        only = run(certificate)
        rules = only["tool"]["driver"]["rules"]
        for rule in rules:
            assert rule["help"]["text"]
            assert rule["shortDescription"]["text"]
        names = [rule["id"] for rule in rules]
        assert len(names) == len(set(names))
        for result in only["results"]:
            assert names[result["ruleIndex"]] == result["ruleId"]

    def test_help_is_what_the_findings_advise(self, certificates):
        rules = {
            rule["id"]: rule for rule in run(certificates["refuted"])["tool"]["driver"]["rules"]
        }
        assert rules["finding/wrong-range"]["help"]["text"] == "Add it."
        assert rules["finding/response-unit"]["help"]["text"] == "Worth knowing."

    def test_places(self, certificates):
        places = [result["locations"] for result in run(certificates["refuted"])["results"]]
        assert places[0] == [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "shop/local.py", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 120},
                }
            }
        ]
        [label] = places[-1][0]["logicalLocations"]
        assert (label["name"], label["fullyQualifiedName"]) == ("clip", "shop.local:Market:clip")

    def test_an_attack_on_other_code_stands_there(self, certificates):
        known = certificates["refuted"]
        attack = replace(known.audits[0], details={"code": "attacks/leaky.py:poll"})
        results = run(replace(known, audits=(attack,)))["results"]
        (place,) = (each["locations"][0] for each in results if each["ruleId"] == "audit")
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "attacks/leaky.py"

    def test_fingerprints_outlive_numbers_and_lines(self, certificates):
        certificate = certificates["refuted"]
        changed = replace(
            certificate,
            subject=replace(certificate.subject, location="shop/local.py:300"),
            audits=tuple(
                replace(a, epsilon_lower=3.0, seed=5) if a.refuted else a
                for a in certificate.audits
            ),
        )
        assert fingerprints(changed) == fingerprints(certificate)

    def test_fingerprints_are_unique(self, certificates):
        twice = replace(certificates["refuted"], findings=certificates["refuted"].findings * 2)
        assert len(set(fingerprints(twice))) == len(fingerprints(twice))
        other = replace(
            certificates["refuted"], subject=replace(certificates["refuted"].subject, name="a:B")
        )
        assert not set(fingerprints(other)) & set(fingerprints(certificates["refuted"]))

    @given(certificates())
    @settings(max_examples=25, deadline=None)
    def test_any_text_is_valid(self, certificate):
        document = log(certificate)
        schema().validate(document)
        for result in document["runs"][0]["results"]:
            for place in result.get("locations", ()):
                if "physicalLocation" in place:
                    assert_below_root(place["physicalLocation"]["artifactLocation"]["uri"])

    def test_schema_refuses_what_is_wrong(self, certificates):
        """The validation above can fail."""
        document = log(certificates["refuted"])
        document["runs"][0]["results"][0]["level"] = "fatal"
        assert not schema().is_valid(document)

    def test_ending(self):
        assert isinstance(renderer_for("report.SARIF.json"), SarifRenderer)


def fingerprints(certificate):
    return [r["partialFingerprints"]["dpaudit/v1"] for r in run(certificate)["results"]]


class TestPlaces:
    SUBJECT = SubjectRecord("a.b:C", {}, None, "a/b.py:10")

    def test_a_place_in_the_code(self):
        place = location(self.SUBJECT, "a/c d.py:77")
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "a/c%20d.py"
        assert place["physicalLocation"]["region"] == {"startLine": 77}
        assert "logicalLocations" not in place

    @pytest.mark.parametrize("at", ["step 3", "c:3", "3", "step 2.5", "answer"])
    def test_a_label(self, at):
        place = location(self.SUBJECT, at)
        assert place["physicalLocation"]["region"] == {"startLine": 10}
        assert place["logicalLocations"][0]["name"] == at

    def test_a_plan_file(self):
        place = location(SubjectRecord("plans/my plan.toml"))
        assert place == {
            "physicalLocation": {
                "artifactLocation": {"uri": "plans/my%20plan.toml", "uriBaseId": "%SRCROOT%"}
            }
        }

    def test_a_file_of_a_project_is_told_below_its_repository(self, tmp_path, monkeypatch):
        project = tmp_path / "repository" / "my study"
        project.mkdir(parents=True)
        (project / "survey.py").touch()
        monkeypatch.chdir(project)

        def uri(name):
            place = location(SubjectRecord("x:Y", {}, None, f"{name}:6"))
            return place["physicalLocation"]["artifactLocation"]["uri"]

        assert uri("survey.py") == "survey.py"
        (project.parent / ".git").touch()  # a file in a further work tree
        assert uri("survey.py") == "my%20study/survey.py"
        assert uri("elsewhere.py") == "elsewhere.py"

    def test_nothing_known(self):
        assert location(SubjectRecord("vendor:Thing")) is None

    def test_line_zero_is_no_line(self):
        place = location(SubjectRecord("a:B", {}, None, "a.py:0"))
        assert "region" not in place["physicalLocation"]

    @pytest.mark.parametrize("text", NASTY)
    def test_foreign_places_stay_below_the_root(self, text):
        for place in (
            location(SubjectRecord("a:B", {}, None, text)),
            location(SubjectRecord("a:B"), text),
        ):
            if place is not None and "physicalLocation" in place:
                assert_below_root(place["physicalLocation"]["artifactLocation"]["uri"])


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
