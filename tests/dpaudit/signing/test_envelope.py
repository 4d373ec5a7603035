"""Envelopes: signatures that an independent reader checks, and one text for each."""

import base64
import json

import edwards
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as some

from dpaudit import InputError, TamperedError
from dpaudit.signing.keys import key_id
from dpaudit.signing.statements import PAYLOAD_TYPE, Envelope

ANA, BEN, EVE = (Ed25519PrivateKey.from_private_bytes(bytes([n] * 32)) for n in (1, 2, 3))
IDS = [key_id(key.public_key()) for key in (ANA, BEN, EVE)]


def publics(*keys):
    return [key.public_key() for key in keys]


def test_what_is_signed_is_that_of_dsse():
    """PAE: the words DSSEv1, and each part behind its length in bytes (DSSE 1.0, protocol)."""
    envelope = Envelope('{"ε":1}'.encode(), {}).with_signature(ANA)
    message = b'DSSEv1 28 application/vnd.in-toto+json 8 {"\xce\xb5":1}'
    raw = ANA.public_key().public_bytes_raw()
    assert edwards.holds(raw, message, envelope.signatures[IDS[0]])
    assert not edwards.holds(raw, message + b" ", envelope.signatures[IDS[0]])


def test_the_file_is_that_of_dsse():
    record = json.loads(Envelope(b"{}", {}).with_signature(ANA).to_json())
    assert base64.b64decode(record["payload"], validate=True) == b"{}"
    assert record["payloadType"] == PAYLOAD_TYPE
    (signature,) = record["signatures"]
    assert signature["keyid"] == IDS[0]
    assert len(base64.b64decode(signature["sig"], validate=True)) == 64


@given(some.binary(max_size=200), some.sets(some.sampled_from([ANA, BEN, EVE]), min_size=1))
@settings(max_examples=30, deadline=None)
def test_what_is_written_is_read(payload, keys):
    envelope = Envelope(payload, {})
    for key in keys:
        envelope = envelope.with_signature(key)
    again = Envelope.from_json(envelope.to_json().encode())
    assert again == envelope
    assert again.signers(publics(ANA, BEN, EVE)) == {key_id(key.public_key()) for key in keys}


def test_only_given_keys_count():
    envelope = Envelope(b"{}", {}).with_signature(ANA).with_signature(EVE)
    assert envelope.signers(publics(ANA, BEN)) == {IDS[0]}
    with pytest.raises(TamperedError, match="none of the given keys has signed"):
        envelope.signers(publics(BEN))
    with pytest.raises(TamperedError, match="none of the given keys has signed"):
        envelope.signers([])


def test_nobody_signs_twice():
    with pytest.raises(InputError, match="has signed it already"):
        Envelope(b"{}", {}).with_signature(ANA).with_signature(ANA)
