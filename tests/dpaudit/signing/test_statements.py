"""Statements: valid for the framework's own library, and one text for each."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from examples import LAPLACE, response_plan
from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement as InTotoStatement

from dpaudit import Claim, InputError, Ledger, TamperedError, certify
from dpaudit.base import files
from dpaudit.certificate import SubjectRecord
from dpaudit.ledger import summarise_journal
from dpaudit.signing.keys import key_id
from dpaudit.signing.statements import (
    JOURNAL_TYPE,
    Statement,
    journal_statement,
    signed_certificate,
    statement_of,
)

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
KEYS = [KEY.public_key()]
NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
SUBJECT = SubjectRecord("survey:Survey", {"users": 3}, "ab" * 32)
CERTIFICATE = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0))
FILE = hashlib.sha256(b"its file").hexdigest()
STATED = statement_of(CERTIFICATE, FILE, NOON)


def reopened(statement):
    return Statement.from_envelope(statement.envelope().with_signature(KEY), KEYS)


def test_it_is_valid_for_the_framework():
    text = STATED.envelope().payload.decode()
    found = InTotoStatement.copy_from_pb(json_format.Parse(text, statement_pb2.Statement()))
    found.validate()
    assert [dict(each.digest) for each in found.pb.subject] == [
        {"dpauditCodeV1": "ab" * 32},
        {"sha256": CERTIFICATE.plan.hash},
        {"sha256": FILE},
    ]


def test_what_was_stated_comes_back():
    found = reopened(STATED)
    assert found.signers == {key_id(KEYS[0])}
    assert replace(found, signers=frozenset()) == STATED
    assert found.signed_at == NOON
    assert signed_certificate(found) == (CERTIFICATE, FILE)


def test_the_time_is_beside_the_certificate_not_in_it():
    predicate = STATED.to_dict()["predicate"]
    assert predicate.pop("signed_at") == "2026-01-31T12:00:00Z"
    assert predicate == CERTIFICATE.to_dict()
    assert "signed_at" not in statement_of(CERTIFICATE, FILE, None).to_dict()["predicate"]


def test_other_statements_go_the_same_way():
    """As for any other JSON that somebody wants to sign: a type of its own, and subjects."""
    book = Statement("urn:example:book:1", {"spent": 0.5}, [{"name": "book", "digest": {}}], NOON)
    assert replace(reopened(book), signers=frozenset()) == book
    with pytest.raises(InputError, match="schema is missing"):
        signed_certificate(reopened(book))


def test_without_keys_nobody_is_believed():
    assert Statement.from_envelope(STATED.envelope(), None).signers == frozenset()
    with pytest.raises(TamperedError, match="none of the given keys"):
        Statement.from_envelope(STATED.envelope(), KEYS)


def test_a_certificate_that_was_edited_before_it_was_signed(tmp_path):
    record = CERTIFICATE.to_dict() | {"seed": 7}
    with pytest.raises(TamperedError, match="digest does not match"):
        signed_certificate(replace(STATED, predicate=record))


def test_a_journal_is_named_by_its_head(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(response_plan(total=1), rng=np.random.default_rng(0), journal=path) as ledger:
        ledger.release(LAPLACE, 0.0, unit="ann")
    head = json.loads(path.read_text().splitlines()[-1])["hash"]
    stated = journal_statement(summarise_journal(path), NOON)
    assert stated.kind == JOURNAL_TYPE
    assert stated.predicate["head"] == head
    assert (stated.predicate["lines"], stated.predicate["closed"]) == (3, True)
    assert [each["digest"] for each in stated.subjects] == [{"dpauditJournalHeadV1": head}]
    assert replace(reopened(stated), signers=frozenset()) == stated
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match="last line was cut off"):
        journal_statement(summarise_journal(path), None)


def test_the_payload_is_canonical():
    payload = STATED.envelope().payload
    assert payload == files.canonical_json(json.loads(payload)).encode()
