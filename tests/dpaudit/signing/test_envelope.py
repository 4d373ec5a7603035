"""Keys, agents that hold them, and what is signed with them."""

import base64
import hashlib
import json
import os
import shutil
import stat
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import edwards
import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from examples import LAPLACE, response_plan
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as some
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement as InTotoStatement

from dpaudit import Claim, InputError, Ledger, TamperedError, certify
from dpaudit.base import files
from dpaudit.base.optional_import import optional_import
from dpaudit.certificate import SubjectRecord
from dpaudit.ledger import summarise_journal
from dpaudit.signing.envelope import PAYLOAD_TYPE, Envelope, parsed
from dpaudit.signing.keys import key_id, load_private, load_public, new_key
from dpaudit.signing.statements import (
    JOURNAL_TYPE,
    Statement,
    journal_statement,
    signed_certificate,
    statement_of,
)

# -- envelopes: signatures that an independent reader checks, and one text for each ----------------


ANA, BEN, EVE = (Ed25519PrivateKey.from_private_bytes(bytes([n] * 32)) for n in (1, 2, 3))
IDS = [key_id(key.public_key()) for key in (ANA, BEN, EVE)]


def publics(*keys):
    return [key.public_key() for key in keys]


def test_what_is_signed_is_that_of_dsse():
    """PAE: the words DSSEv1, and each part behind its length in bytes (DSSE 1.0, protocol)."""
    envelope = Envelope('{"ε":1}'.encode(), {}).signed(ANA)
    message = b'DSSEv1 28 application/vnd.in-toto+json 8 {"\xce\xb5":1}'
    raw = ANA.public_key().public_bytes_raw()
    assert edwards.holds(raw, message, envelope.signatures[IDS[0]])
    assert not edwards.holds(raw, message + b" ", envelope.signatures[IDS[0]])


def test_the_file_is_that_of_dsse():
    record = json.loads(Envelope(b"{}", {}).signed(ANA).to_json())
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
        envelope = envelope.signed(key)
    again = Envelope.from_json(envelope.to_json().encode())
    assert again == envelope
    assert again.signers(publics(ANA, BEN, EVE)) == {key_id(key.public_key()) for key in keys}


def test_only_given_keys_count():
    envelope = Envelope(b"{}", {}).signed(ANA).signed(EVE)
    assert envelope.signers(publics(ANA, BEN)) == {IDS[0]}
    with pytest.raises(TamperedError, match="none of the given keys has signed"):
        envelope.signers(publics(BEN))
    with pytest.raises(TamperedError, match="none of the given keys has signed"):
        envelope.signers([])


def test_a_wrong_one_of_a_given_key_spoils_all():
    envelope = Envelope(b"{}", {}).signed(ANA).signed(BEN)
    mixed = Envelope(b"{}", {**envelope.signatures, IDS[1]: envelope.signatures[IDS[0]]})
    with pytest.raises(TamperedError, match=f"signature of key {IDS[1]:.16}… is not of this"):
        mixed.signers(publics(ANA, BEN))
    assert mixed.signers(publics(ANA)) == {IDS[0]}


def test_nobody_signs_twice():
    with pytest.raises(InputError, match="has signed it already"):
        Envelope(b"{}", {}).signed(ANA).signed(ANA)


GOOD = json.loads(Envelope(b'{"a":1}', {}).signed(ANA).to_json())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"payloadType": "text/plain"}, "payloadType is 'text/plain'; it must be"),
        ({"payload": "e30"}, "payload is 'e30'; it must be base64 with padding"),
        ({"payload": "e31="}, "payload is 'e31='; it must be base64 with padding"),
        ({"payload": "eyJh\nIjoxfQ=="}, "it must be base64 with padding, on one line"),
        ({"payload": "-_8="}, "it must be base64 with padding"),
        ({"payload": None}, "payload is None"),
        ({"signatures": []}, "signatures must be a list of 1 to 100"),
        ({"signatures": GOOD["signatures"] * 101}, "signatures must be a list of 1 to 100"),
        ({"signatures": GOOD["signatures"] * 2}, "signs twice; once is enough"),
        ({"signatures": [{"sig": "AAAA"}]}, "must have keyid and sig alone"),
        ({"signatures": [{"keyid": 1, "sig": "AAAA"}]}, "which are texts"),
        ({"signatures": [{"keyid": "a", "sig": "AAA"}]}, "sig is 'AAA'"),
        ({"more": 1}, "must have payload, payloadType and signatures alone"),
    ],
)
def test_one_that_dpaudit_does_not_write_is_refused(changes, told):
    with pytest.raises(TamperedError, match=told):
        Envelope.from_json(json.dumps(GOOD | changes).encode())


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"a": 1, "a": 2}', "has the key 'a' twice"),
        (b'{"a": NaN}', "has the number NaN"),
        (b"{} {}", "is not JSON: Extra data"),
        (b"\xef\xbb\xbf{}", "is not JSON"),
        (b"\xff", "is not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
        (b'"\\ud800"', "half of a surrogate pair"),
    ],
)
def test_json_means_one_thing(data, told):
    with pytest.raises(InputError, match=told):
        parsed(data, "file")


# -- keys: beside the formulas of RFC 8032, and as files that nobody overwrites --------------------


def nobody():
    raise AssertionError("there is no password to ask for")


def saved(path, raw):
    key = Ed25519PublicKey.from_public_bytes(raw)
    encoding = serialization.Encoding.PEM
    path.write_bytes(key.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo))
    return path


def test_the_id_is_that_of_the_public_key_info():
    """The DER of an Ed25519 key is these twelve bytes and the point (RFC 8410, section 4)."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key()
    info = bytes.fromhex("302a300506032b6570032100") + key.public_bytes_raw()
    assert key_id(key) == hashlib.sha256(info).hexdigest()


def test_all_points_of_small_order_are_refused(tmp_path):
    points = edwards.torsion()
    assert len({*points}) == 8
    for point in points:
        assert edwards.times(8, point) == edwards.NEUTRAL
        with pytest.raises(InputError, match=r"is a point of small order.*keygen\.$"):
            load_public(saved(tmp_path / "a.pub.pem", edwards.encoded(point)))


@pytest.mark.parametrize("y", [0, 1, 18])
@pytest.mark.parametrize("sign", [0, 1])
def test_a_point_has_one_text(tmp_path, y, sign):
    raw = (edwards.P + y | sign << 255).to_bytes(32, "little")
    with pytest.raises(InputError, match="small order"):
        load_public(saved(tmp_path / "a.pub.pem", raw))


def test_other_points_are_not(tmp_path):
    for number in range(50):
        key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"%d" % number).digest())
        raw = key.public_key().public_bytes_raw()
        assert load_public(saved(tmp_path / "a.pub.pem", raw)).public_bytes_raw() == raw


def test_a_new_key_is_its_owners_alone(tmp_path):
    public, path = new_key(tmp_path / "office.pem", None)
    assert path == tmp_path / "office.pub.pem"
    assert stat.S_IMODE((tmp_path / "office.pem").stat().st_mode) == 0o600
    assert key_id(load_public(path)) == key_id(public)
    private = load_private(tmp_path / "office.pem", nobody)
    assert key_id(private.public_key()) == key_id(public)


def test_a_password_keeps_it(tmp_path):
    public, _ = new_key(tmp_path / "office.pem", "oh, ε!")
    assert b"ENCRYPTED" in (tmp_path / "office.pem").read_bytes()
    key = load_private(tmp_path / "office.pem", lambda: "oh, ε!")
    assert key_id(key.public_key()) == key_id(public)
    with pytest.raises(InputError, match="has another password"):
        load_private(tmp_path / "office.pem", lambda: "oh, e!")


@pytest.mark.parametrize("there", ["a.pem", "a.pub.pem"])
def test_nothing_is_overwritten(tmp_path, there):
    (tmp_path / there).write_text("mine")
    with pytest.raises(InputError, match=r"cannot be made: File exists; give a new path, as no"):
        new_key(tmp_path / "a.pem", None)
    assert [each.name for each in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "password"), [("a.pem", "x" * 1024), ("a.pem", ""), ("a.pem", "\ud800"), ("", None)]
)
def test_what_can_be_no_key_leaves_nothing(tmp_path, name, password):
    with pytest.raises(InputError, match="it needs a name, and a password of 1 to 1023 bytes"):
        new_key(tmp_path / name if name else "/", password)
    assert list(tmp_path.iterdir()) == []


def test_a_password_may_be_any_bytes_of_the_shell(tmp_path):
    public, _ = new_key(tmp_path / "a.pem", "\udcff\udcfe")
    key = load_private(tmp_path / "a.pem", lambda: "\udcff\udcfe")
    assert key_id(key.public_key()) == key_id(public)


def test_a_folder_that_takes_no_key_is_not_called_an_old_key(tmp_path):
    with pytest.raises(InputError, match=r"cannot be made: No such file .*; give a folder that"):
        new_key(tmp_path / "none" / "a.pem", None)


def test_no_link_is_followed(tmp_path):
    (tmp_path / "a.pem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="File exists"):
        new_key(tmp_path / "a.pem", None)
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_leaves_no_half_of_a_key(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpaudit.signing.keys.os.fdopen", full)
    with pytest.raises(InputError, match="No space left"):
        new_key(tmp_path / "a.pem", None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no key", b"\xff\xfe", b"-----BEGIN PUBLIC KEY-----\n"])
def test_what_is_no_key_is_one_sentence(tmp_path, content):
    path = tmp_path / "odd.pem"
    path.write_bytes(content)
    for load in (load_public, lambda path: load_private(path, nobody)):
        with pytest.raises(InputError, match=r"is not one of that half, in PEM; give what"):
            load(path)


def test_halves_are_not_mixed_up(tmp_path):
    _, public = new_key(tmp_path / "a.pem", None)
    with pytest.raises(InputError, match="is not one of that half"):
        load_public(tmp_path / "a.pem")
    with pytest.raises(InputError, match="is not one of that half"):
        load_private(public, nobody)
    with pytest.raises(InputError, match="does not exist"):
        load_public(Path("none.pem"))


# -- keys of a real SSH agent ----------------------------------------------------------------------


pytest.importorskip("paramiko", reason="the extra sign is not installed")


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """An agent with two keys of one comment, one of another, and one that is no Ed25519 key."""
    for program in ("ssh-agent", "ssh-add", "ssh-keygen"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    socket = Path(f"/tmp/dpaudit-agent-{os.getpid()}")  # a socket's path must be short
    command = ["ssh-agent", "-D", "-a", str(socket)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not socket.exists():
        assert process.poll() is None
        time.sleep(0.001)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    for name, comment, kind in (
        ("a", "office", "ed25519"),
        ("b", "two", "ed25519"),
        ("c", "two", "ed25519"),
        ("d", "office", "ecdsa"),
    ):
        path = tmp_path / name
        made = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", comment, "-f", str(path)]
        subprocess.run(made, check=True)
        subprocess.run(["ssh-add", "-q", str(path)], check=True, capture_output=True)
    yield tmp_path
    process.terminate()
    process.wait()


def held(name):
    return optional_import("sign", "dpaudit.signing.agent", what="a test").agent_key(name)


def test_a_key_of_an_agent_signs_like_any_other(agent):
    key, public = held("office"), load_public(agent / "a.pub")
    assert key_id(key.public_key()) == key_id(public)
    envelope = Envelope(b"{}", {}).signed(key)
    assert Envelope.from_json(envelope.to_json().encode()).signers([public]) == {key_id(public)}
    line = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(agent / "b.pub")], check=True, capture_output=True, text=True
    ).stdout
    assert key_id(held(line.split()[1]).public_key()) == key_id(load_public(agent / "b.pub"))


@pytest.mark.parametrize(
    ("name", "told"),
    [("two", "has 2 Ed25519 keys 'two'"), ("none", "has 0 Ed25519 keys 'none'"), ("", "has 0")],
)
def test_one_key_must_be_named(agent, name, told):
    with pytest.raises(InputError, match=told):
        held(name)


def test_an_agent_that_does_not_sign_is_told(agent):
    key = held("office")
    subprocess.run(["ssh-add", "-q", "-D"], check=True, capture_output=True)
    with pytest.raises(InputError, match="has not signed; is its key there"):
        key.sign(b"{}")


def test_an_agent_that_signs_something_else_is_not_believed(agent, monkeypatch):
    key = held("office")
    monkeypatch.setattr("paramiko.AgentKey.sign_ssh_data", lambda *given, **more: bytes(83))
    with pytest.raises(InputError, match="has not signed"):
        key.sign(b"{}")


def test_without_an_agent(monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(InputError, match="has 0 Ed25519 keys 'office'; it has none"):
        held("office")


# -- statements: valid for the framework's own library, and one text for each ----------------------


KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
KEYS = [KEY.public_key()]
NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
SUBJECT = SubjectRecord("survey:Survey", {"users": 3}, "ab" * 32)
CERTIFICATE = certify(response_plan(), subject=SUBJECT, claim=Claim(1.0))
FILE = hashlib.sha256(b"its file").hexdigest()
STATED = statement_of(CERTIFICATE, FILE, NOON)


def reopened(statement):
    return Statement.opened(statement.envelope().signed(KEY), KEYS)


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
    with pytest.raises(InputError, match="schema is None"):
        signed_certificate(reopened(book))


def test_without_keys_nobody_is_believed():
    assert Statement.opened(STATED.envelope(), None).signers == frozenset()
    with pytest.raises(TamperedError, match="none of the given keys"):
        Statement.opened(STATED.envelope(), KEYS)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace('":', '": ', 1),
        lambda t: t + "\n",
        lambda t: t.replace("T12:00:00Z", "T12:00:00+00:00"),
        lambda t: t.replace("T12:00:00Z", "T12:00:00.0Z"),
        lambda t: t.replace("T12:00:00Z", "T12:00:00"),
        lambda t: t.replace("T12:00:00Z", "T12:00:00+02:00"),
        lambda t: t.replace('"2026-01-31T12:00:00Z"', "null"),
        lambda t: t.replace('"2026-01-31T12:00:00Z"', '[["a"]]'),
        lambda t: t.replace("2026-01-31", "2026-02-31"),
        lambda t: t.replace("2026-01-31", "٢026-01-31"),
        lambda t: t.replace('"2026-01-31T12:00:00Z"', "1769860800"),
        lambda t: t.replace("/Statement/v1", "/Statement/v0.1"),
        lambda t: t.replace('"subject"', '"subjects"'),
        lambda t: t.replace('"users":3', '"users":3.00'),
        lambda _: "{}",
        lambda _: "null",
        lambda _: '{"predicate":1}',
        lambda _: '{"predicate":[["a",1]],"predicateType":"x","subject":[]}',
    ],
)
def test_another_text_is_refused_though_it_is_signed(change):
    text = change(STATED.envelope().payload.decode())
    with pytest.raises(TamperedError, match=r"no in-toto statement in canonical JSON; sign"):
        Statement.opened(Envelope(text.encode(), {}).signed(KEY), KEYS)


@pytest.mark.parametrize(
    "subjects",
    [[], [7], [{}], [{"digest": 1}], [{"name": "certificate", "digest": {"sha256": FILE}}]],
)
def test_the_subjects_are_those_of_the_certificate(subjects):
    with pytest.raises(TamperedError, match="subjects or schema are not those"):
        signed_certificate(replace(STATED, subjects=subjects))


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
