"""in-toto: valid for the framework's own protocol buffers and checks."""

import hashlib
import json

import pytest
from foreign_texts import certificates
from google.protobuf import json_format
from hypothesis import given, settings
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from renderer_conformance import RendererConformance, leaves, squeezed

from dpaudit.base import files
from dpaudit.certificate import Certificate
from dpaudit.certificate.schema import certificate_schema, validate_certificate
from dpaudit.reporting import InTotoRenderer, renderer_for


def validated(text):
    """The statement, as the framework's own library reads and checks it."""
    statement = Statement.copy_from_pb(json_format.Parse(text, statement_pb2.Statement()))
    statement.validate()
    return statement.pb


class TestInToto(RendererConformance):
    renderer = InTotoRenderer

    def read(self, rendered):
        return squeezed(" ".join(leaves(json.loads(rendered))))

    def seen(self, text):
        return squeezed(text)

    def number(self, value, shown):
        return json.dumps(value).replace("Infinity", "null")

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
