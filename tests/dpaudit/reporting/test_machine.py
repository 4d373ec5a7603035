"""Formats for machines: JSON, JUnit and in-toto."""

import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema
from foreign_texts import NASTY, certificates
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from renderer_conformance import JsonConformance, RendererConformance, squeezed

from dpaudit.base import files
from dpaudit.certificate import Certificate, load_certificate
from dpaudit.certificate.certificate import certificate_schema, validate_certificate
from dpaudit.reporting import InTotoRenderer, JsonRenderer, JUnitRenderer, render_to, renderer_for
from dpaudit.reporting.machine.junit import leaves, scalar

# JSON: the suite of all renderers, and the certificate reads back


class TestJson(JsonConformance):
    renderer = JsonRenderer

    def test_several_are_an_array(self, certificates):
        kinds = ("bare", "refuted")
        records = json.loads(JsonRenderer().render(*(certificates[kind] for kind in kinds)))
        assert records == [json.loads(JsonRenderer().render(certificates[kind])) for kind in kinds]

    def test_reads_back(self, certificates, tmp_path):
        path = render_to(certificates["exceeded"], tmp_path / "again.json")
        assert load_certificate(path) == certificates["exceeded"]
        saved = certificates["exceeded"].save(tmp_path / "saved.json")
        assert saved.read_bytes() == path.read_bytes()


# A JSON record as a flat list

RECORDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("record", "flat"),
    [
        ({"a": []}, [("a", "[]")]),
        ({"a": [1, [2]]}, [("a[0]", "1"), ("a[1]", "[2]")]),
        ({"a": [True, 1]}, [("a[0]", "true"), ("a[1]", "1")]),
        (["x", {"b": 1}], [("[0]", "x"), ("[1].b", "1")]),
        ("x", [("", "x")]),
    ],
)
def test_paths(record, flat):
    assert list(leaves(record)) == flat


@given(RECORDS)
def test_order_of_names_does_not_matter(record):
    turned = dict(reversed(record.items())) if isinstance(record, dict) else record
    assert list(leaves(record)) == list(leaves(turned))


def test_text_stays_as_it_is():
    assert scalar('"') == '"'
    assert scalar(None) == "null"


# JUnit XML: valid against the Jenkins schema, and fails where the certificate does

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).parent / "machine" / "schemas" / "junit-10.xsd"))


def parsed(*given_certificates):
    return ET.fromstring(JUnitRenderer().render(*given_certificates))


def outcomes(suite):
    """Name of every test with what became of it."""
    names = ("failure", "error", "skipped")
    return {
        test.get("name"): next((n for n in names if test.find(n) is not None), "passed")
        for test in suite.iter("testcase")
    }


class TestJUnit(RendererConformance):
    renderer = JUnitRenderer

    def read(self, rendered):
        texts = []
        for element in ET.fromstring(rendered).iter():
            texts += [*element.attrib.values(), element.text or ""]
        return squeezed(" ".join(texts))

    def number(self, value, shown):
        return "null" if value == math.inf else json.dumps(value)

    def test_is_valid(self, certificate):
        SCHEMA.validate(JUnitRenderer().render(certificate))

    def test_several_are_valid(self, certificates):
        several = list(certificates.values())[:5]
        SCHEMA.validate(JUnitRenderer().render(*several))
        suites = parsed(*several).findall("testsuite")
        assert [suite.get("name") for suite in suites] == [c.subject.name for c in several]

    def test_counts_are_those_of_the_tests(self, certificates):
        several = [c for c in certificates.values() if c is not certificates["thousand"]]
        root = parsed(*several)
        for suite in root:
            found = list(outcomes(suite).values())
            assert int(suite.get("tests")) == len(found) == len(suite.findall("testcase"))
            for count, tag in (
                ("failures", "failure"),
                ("errors", "error"),
                ("skipped", "skipped"),
            ):
                assert int(suite.get(count)) == found.count(tag)
        for count in ("tests", "failures", "errors"):
            assert int(root.get(count)) == sum(int(suite.get(count)) for suite in root)

    @pytest.mark.parametrize(
        ("name", "test", "outcome"),
        [
            ("certified", "claim ε = 1, δ = 0", "passed"),
            ("refuted", "claim ε = 1, δ = 0", "failure"),
            ("exceeded", "claim ε = 0.1, δ = 1e-05", "failure"),
            ("opaque", "claim ε = 1, δ = 0", "error"),
            ("unbounded", "guarantee", "error"),
            ("bare", "guarantee", "passed"),
        ],
    )
    def test_verdict_decides_over_the_claim(self, certificates, name, test, outcome):
        assert outcomes(parsed(certificates[name]))[test] == outcome

    def test_audits_and_findings(self, certificates):
        assert outcomes(parsed(certificates["refuted"])) == {
            "claim ε = 1, δ = 0": "failure",
            "audit 1: black-box, event chosen on a pilot": "failure",
            "audit 2: exact": "passed",
            "finding 1: not-the-declared-mechanism": "failure",
            "finding 2: float-noise": "skipped",
            "finding 3: response-unit": "passed",
            "finding 4: data-dependent-bound": "skipped",
            "finding 5: wrong-range": "failure",
        }

    def test_unbounded_lower_bound_is_told(self, certificates):
        audited = parsed(certificates["hostile"]).findall(".//testcase")[1]
        assert "epsilon_lower: infinity" in audited.findtext("system-out")

    def test_properties_hold_the_whole_rest_of_the_record(self, certificates):
        properties = {
            each.get("name"): each.get("value")
            for each in parsed(certificates["certified"]).iter("property")
        }
        record = certificates["certified"].to_dict()
        assert properties["digest"] == record["digest"]
        assert properties["plan.invocations[0].mechanism.scale"] == "1.0"
        assert properties["subject.configuration.kernel.type"] == "SE"
        assert json.loads(properties["run.series.cumulative regret"]) == list(range(1, 3001))

    def test_no_time(self, certificates):
        text = JUnitRenderer().render(certificates["certified"])
        assert "timestamp" not in text
        assert "time=" not in text

    @pytest.mark.parametrize("text", NASTY)
    def test_nasty_text_is_valid_and_readable(self, certificates, text):
        certificate = replace(certificates["bare"], not_covered=(text,))
        rendered = JUnitRenderer().render(certificate)
        SCHEMA.validate(rendered)
        [value] = [
            each.get("value")
            for each in ET.fromstring(rendered).iter("property")
            if each.get("name") == "not_covered[0]"
        ]
        shown = re.sub("⟨U\\+[0-9A-F]{4,6}⟩", "", value)
        assert [c for c in shown if c.isprintable()] == [c for c in text if c.isprintable()]

    @given(certificates())
    @settings(max_examples=40, deadline=None)
    def test_any_text_is_valid(self, certificate):
        SCHEMA.validate(JUnitRenderer().render(certificate))

    def test_schema_refuses_what_is_wrong(self, certificates):
        """The validation above can fail."""
        wrong = JUnitRenderer().render(certificates["bare"]).replace("testcase", "testcas")
        assert not SCHEMA.is_valid(wrong)

    def test_endings(self):
        assert isinstance(renderer_for("out/report.xml"), JUnitRenderer)
        assert isinstance(renderer_for("report.junit.xml"), JUnitRenderer)


# in-toto: valid for the framework's own protocol buffers and checks


def validated(text):
    """The statement, as the framework's own library reads and checks it."""
    statement = Statement.copy_from_pb(json_format.Parse(text, statement_pb2.Statement()))
    statement.validate()
    return statement.pb


class TestInToto(JsonConformance):
    renderer = InTotoRenderer

    def test_is_valid(self, certificate):
        statement = validated(InTotoRenderer().render(certificate))
        assert statement.type == "https://in-toto.io/Statement/v1"
        assert statement.predicate_type == certificate_schema()["$id"]

    def test_predicate_is_the_certificate(self, certificate):
        predicate = json.loads(InTotoRenderer().render(certificate))["predicate"]
        validate_certificate(predicate)
        assert Certificate.from_dict(predicate) == certificate

    def test_plan_is_named_by_its_bytes(self, certificates):
        certificate = certificates["exceeded"]
        [plan] = json.loads(InTotoRenderer().render(certificate))["subject"]
        text = files.canonical_json(certificate.plan.to_dict())
        assert plan == {
            "name": "plan",
            "digest": {"sha256": hashlib.sha256(text.encode()).hexdigest()},
        }

    def test_code_is_named_where_there_is_code(self, certificates):
        code, plan = json.loads(InTotoRenderer().render(certificates["certified"]))["subject"]
        assert code == {"name": "shop.local:Market", "digest": {"dpauditCodeV1": "ab" * 32}}
        assert plan["name"] == "plan"

    def test_several_are_an_array(self, certificates):
        several = [certificates[name] for name in ("bare", "refuted")]
        for statement, certificate in zip(
            json.loads(InTotoRenderer().render(*several)), several, strict=True
        ):
            validated(json.dumps(statement))
            assert statement["predicate"] == certificate.to_dict()

    @given(certificates())
    @settings(max_examples=25, deadline=None)
    def test_any_text_is_valid(self, certificate):
        validated(InTotoRenderer().render(certificate))

    @pytest.mark.parametrize("field", ["_type", "predicateType", "subject", "predicate"])
    def test_the_checks_refuse_what_is_missing(self, certificates, field):
        statement = json.loads(InTotoRenderer().render(certificates["bare"]))
        del statement[field]
        with pytest.raises(ValueError, match=r"type|subject|required"):
            validated(json.dumps(statement))

    def test_ending(self):
        assert isinstance(renderer_for("a.intoto.json"), InTotoRenderer)
