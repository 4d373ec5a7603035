"""Forgeries of signed certificates: whatever could be tried by somebody who has no key.

Each is a name, and a function that makes its files in a folder and returns the words of
``dpaudit verify``. All of them must be refused under the policy of :class:`World`.
"""

from __future__ import annotations

import base64
import copy
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from audit_records import attack
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpaudit import (
    FileAnchor,
    Finding,
    Laplace,
    MetricBall,
    PrivacyUnit,
    Severity,
    TrustModel,
    certify,
)
from dpaudit.base import files
from dpaudit.certificate import Certificate, Standing
from dpaudit.certificate.findings import run_findings
from dpaudit.ledger import summarise_journal
from dpaudit.plan import Plan
from dpaudit.signing.keys import key_id, load_private, new_key
from dpaudit.signing.signed_files import sign_file
from dpaudit.signing.statements import Envelope, Statement, journal_statement, statement_of
from dpaudit.workflow.running import run_subject

POLICY = """
keys = ["{ana}", "{ben}"]
threshold = 2
days = 30
subject = ["examples:Answers"]
plan_hash = "{plan}"
code_hash = "{code}"
enforced = ["noise of the declared law, fresh and secret"]
tested = ["touches of one unit as declared", "results from releases"]
secure_noise = true
journal = true
anchor = true
accountants = ["pure"]
dpaudit = ">=0.1"
never = ["data-dependent-bound"]
worst = "warning"

[[limit]]
unit = "response"
epsilon = 1.0
trust = ["local"]

[[audit]]
method = "white-box"
confidence = 0.99
runs = 1000
"""
ELSEWHERE = "does not fit this payload"
L = 2**252 + 27742317777372353535851937790883648493
"""Order of the base point of Ed25519 (RFC 8032)."""
P = 2**255 - 19


def audit(epsilon_lower, *, refuted=False, **changes):
    usual = {"method": "white-box likelihood ratio", "confidence": 0.999, "runs": 20_000}
    usual |= {"event": "release ≥ 1.5", "pair": [2.0, -2.0]}
    return attack(refuted=refuted, epsilon_lower=epsilon_lower, **(usual | changes))


AUTHORS_ERROR = Finding(
    "data-dependent-bound", Severity.ERROR, "The clip is the largest value.", "Take a public one."
)


class World:
    """A folder with keys, a policy, a run, and what honest people signed of it.

    ``good`` is what the policy wants, signed by Ana and Ben. ``bad`` is the same run, of which an
    audit shows ε ≥ 6 and the author says what is wrong: both have signed that, too.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.keys = {}
        for name in ("ana", "ben", "eve"):
            new_key(home / f"{name}.pem", None)
            self.keys[name] = load_private(home / f"{name}.pem", str)
        self.ids = {name: key_id(key.public_key()) for name, key in self.keys.items()}
        self.ledger, self.anchor = home / "run" / "ledger.jsonl", home / "anchor"
        made, _ = run_subject(
            "examples:Answers", (), "numbers", None, home / "run", anchor=self.anchor, most=2
        )
        self.certificate = made.with_audits([audit(0.9)])
        worse = replace(self.certificate, findings=(*made.findings, AUTHORS_ERROR))
        self.refuted = worse.with_audits([audit(6.0, refuted=True)])
        self.file = self.certificate.save(home / "certificate.json")
        self.policy = home / "policy.toml"
        code, plan = made.subject.code_hash, made.plan.hash
        self.policy.write_text(POLICY.format(**self.ids, plan=plan, code=code), "utf-8")
        self.good = self.sign_file(self.file, "good")
        self.bad = self.sign_file(self.refuted.save(home / "refuted.json"), "bad")

    def sign_file(self, path: Path, name: str) -> Path:
        """As two people do it who use the command."""
        once, twice = self.home / f"{name}.once.dsse.json", self.home / f"{name}.dsse.json"
        sign_file(path, self.home / "ana.pem", once, str)
        return sign_file(once, self.home / "ben.pem", twice, str)

    def words(self, envelope: Path, *more: str, policy=True, run=True) -> list[str]:
        keys = [f"--key={self.home / name}.pub.pem" for name in ("ana", "ben")]
        words = [str(envelope), *keys, *map(str, more)]
        words += [f"--policy={self.policy}"] if policy else []
        return words + ([f"--ledger={self.ledger}", f"--anchor={self.anchor}"] if run else [])

    def with_signature(self, statement: Statement | bytes, *names: str) -> dict:
        """An envelope, by keys that its makers have (by default those of Ana and Ben)."""
        envelope = Envelope(statement, {}) if isinstance(statement, bytes) else statement.envelope()
        for name in names or ("ana", "ben"):
            envelope = envelope.with_signature(self.keys[name])
        return json.loads(envelope.to_json())

    def stated(self, certificate: Certificate, at: datetime | None = None) -> Statement:
        return statement_of(certificate, "0" * 64, at or datetime.now(UTC))

    def sign_head(self) -> Path:
        return sign_file(self.ledger, self.home / "ana.pem", self.home / "head.dsse.json", str)

    def read(self, name: str) -> dict:
        return json.loads((self.home / f"{name}.dsse.json").read_text("utf-8"))


@dataclass(frozen=True)
class Forgery:
    """One attempt.

    Attributes:
        kind: what sort of thing is tried.
        name: what exactly.
        make: files in a new folder, and the words that would have them pass.
        told: part of the sentence that refuses it, for the right reason.
        edit: of a certificate's record, which is all that is done, and its source.
    """

    kind: str
    name: str
    make: Callable[[World, Path], list[str]]
    told: str = ""
    edit: tuple[str, Callable[[dict], object]] | None = None


FORGERIES: list[Forgery] = []


def add(kind: str, name: str, make: Callable[[World, Path], list[str]], told="", edit=None) -> None:
    """Once, though what adds them may be imported by two names."""
    if (kind, name) not in {(each.kind, each.name) for each in FORGERIES}:
        FORGERIES.append(Forgery(kind, name, make, told, edit))


def written(world: World, folder: Path, envelope: dict | str | bytes) -> list[str]:
    path = folder / "forged.dsse.json"
    if isinstance(envelope, dict):
        envelope = json.dumps(envelope)
    path.write_bytes(envelope if isinstance(envelope, bytes) else envelope.encode())
    return world.words(path)


def rehashed(record: dict) -> dict:
    """A certificate whose hashes are again those of what it says."""
    record["plan_hash"] = Plan.from_dict(record["plan"]).hash
    rest = {name: value for name, value in record.items() if name not in ("digest", "signed_at")}
    record["digest"] = files.digest(rest)
    return record


def payload_of(envelope: dict) -> dict:
    return json.loads(base64.b64decode(envelope["payload"]))


def with_payload(envelope: dict, payload: bytes) -> dict:
    return {**envelope, "payload": base64.b64encode(payload).decode()}


def edited(source: str, change: Callable[[dict], object]) -> Callable[[World, Path], list[str]]:
    """A signed certificate is edited, every hash is made anew, and its signatures are kept."""

    def make(world, folder):
        envelope = world.read(source)
        statement = payload_of(envelope)
        change(statement["predicate"])
        rehashed(statement["predicate"])
        for subject in statement["subject"]:
            if subject["name"] == "plan":
                subject["digest"]["sha256"] = statement["predicate"]["plan_hash"]
        payload = files.canonical_json(statement).encode()
        return written(world, folder, with_payload(envelope, payload))

    return make


def dropped(record, name, keep=lambda each: False):
    record[name] = [each for each in record[name] if keep(each)]


def beautified(record):
    """What makes the refuted certificate look like the other one."""
    dropped(record, "audits", lambda each: each["verdict"] != "refuted")
    rules = ("data-dependent-bound", "not-the-declared-mechanism")
    dropped(record, "findings", lambda each: each["rule"] not in rules)
    record["verdict"] = "certified"


def lowered(record):
    for each in record["audits"]:
        each.update(verdict="not-refuted", epsilon_lower=0.9)
    dropped(record, "findings", lambda each: each["rule"] != "not-the-declared-mechanism")


def put(*path, value) -> Callable[[dict], None]:
    """An edit: this value in that place."""

    def change(record):
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = value

    return change


PLAN = ("plan", "invocations", 0)
REFUTED_EDITS = {
    "all evidence deleted": beautified,
    "refuting audit deleted": lambda r: dropped(r, "audits", lambda e: e["verdict"] != "refuted"),
    "all audits deleted": lambda r: dropped(r, "audits"),
    "6.0 rewritten to .9": lowered,
    "refutation of a stronger claim": lambda r: r["audits"][-1].update(claim_epsilon=0.1),
    "author's error deleted": lambda r: dropped(r, "findings"),
    "author's error made a note": lambda r: [e.update(severity="note") for e in r["findings"]],
    "author's error renamed": lambda r: [e.update(rule="style") for e in r["findings"]],
    "verdict rewritten": put("verdict", value="certified"),
}
GOOD_EDITS = {
    "smaller claim": put("claim", "epsilon", value=0.1),
    "claim deleted": put("claim", value=None),
    "smaller ε": put("guarantee", "epsilon", value=0.1),
    "weaker noise declared as stronger": put(*PLAN, "mechanism", "scale", value=400.0),
    "other sensitivity": put(*PLAN, "sensitivity", value=5.0),
    "more units": put(*PLAN, "total", value=9),
    "other label": put(*PLAN, "at", value="question"),
    "audit of more runs": put("audits", 0, "runs", value=10**9),
    "audit of another pair": put("audits", 0, "pair", value=[0, 1]),
    "audit more confident": put("audits", 0, "confidence", value=0.999999),
    "audit twice": lambda r: r["audits"].append(copy.deepcopy(r["audits"][0])),
    "assumption upgraded": lambda r: [e.update(standing="enforced") for e in r["assumptions"]],
    "assumptions deleted": put("assumptions", value=[]),
    "rehearsal on more neighbours": put("rehearsal", "neighbours", value=["all of them"] * 99),
    "rehearsal deleted": put("rehearsal", value=None),
    "other samplers": put("run", "ledger", "samplers", value={"opendp 9.9, exact": 3}),
    "other head of the journal": put("run", "ledger", "head", value="0" * 64),
    "other journal": put("run", "ledger", "journal", value="0" * 32),
    "no journal": put("run", "ledger", value={"entries": 3, "samplers": {}, "seeded": False}),
    "other result": put("run", "summary", "mean", value=0.0),
    "a seed": put("seed", value=7),
    "other code": put("subject", "code_hash", value="0" * 64),
    "other subject": put("subject", "name", value="examples:Careless"),
    "subject with a Cyrillic letter": put("subject", "name", value="ex\u0430mples:Answers"),
    "subject with a turned text": put("subject", "name", value="examples:\u202eAnswers"),
    "subject with a zero-width space": put("subject", "name", value="examples:Answers\u200b"),
    "unit with a Cyrillic letter": put(*PLAN, "unit", value="resp\u043ense"),
    "other unit": put(*PLAN, "unit", value="user"),
    "other relation": put(*PLAN, "relation", value="zero-out"),
    "other trust model": put(*PLAN, "trust", value="central"),
    "other configuration": put("subject", "configuration", value={"epsilon": 1, "users": 99}),
    "what is left open deleted": put("not_covered", value=[]),
    "newer version": put("versions", "dpaudit", value="9.9"),
    "signed an hour later": lambda r: r.update(signed_at="2026-01-01T00:00:00Z"),
    "no time": lambda r: r.pop("signed_at"),
    "first schema": lambda r: r.update(schema="dpaudit-certificate/1"),
}
for name, change in REFUTED_EDITS.items():
    kind, edit = "refuted certificate edited and rehashed", ("bad", change)
    add(kind, name, edited(*edit), ELSEWHERE, edit)
for name, change in GOOD_EDITS.items():
    edit = ("good", change)
    add("certificate edited and rehashed", name, edited(*edit), ELSEWHERE, edit)


def statement_edit(change):
    def make(world, folder):
        envelope = world.read("good")
        statement = payload_of(envelope)
        change(statement)
        return written(
            world, folder, with_payload(envelope, files.canonical_json(statement).encode())
        )

    return make


for name, change in {
    "file of another digest": lambda s: s["subject"][-1]["digest"].update(sha256="1" * 64),
    "subject left out": lambda s: s["subject"].pop(0),
    "predicate type": lambda s: s.update(predicateType="urn:dpaudit:certificate:1"),
    "statement type": lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"),
    "predicate left out": lambda s: s.pop("predicate"),
    "one more key": lambda s: s.update(note="trust me"),
}.items():
    add("statement edited", name, statement_edit(change), ELSEWHERE)


def mixed(payload, signatures):
    def make(world, folder):
        other = world.read(signatures)["signatures"]
        return written(world, folder, {**world.read(payload), "signatures": other})

    return make


add(
    "payload and signatures swapped",
    "good payload, signatures of another",
    mixed("good", "bad"),
    ELSEWHERE,
)
add(
    "payload and signatures swapped",
    "bad payload, signatures of another",
    mixed("bad", "good"),
    ELSEWHERE,
)


def envelope_edit(change):
    """The envelope of the good certificate, with something else about it."""

    def make(world, folder):
        envelope = world.read("good")
        changed = change(world, envelope)
        return written(world, folder, changed if isinstance(changed, dict) else envelope)

    return make


for kind in (
    "application/json",
    "application/vnd.in-toto+JSON",
    "application/vnd.in-toto+json ",
    "",
):
    add(
        "payloadType changed",
        repr(kind),
        envelope_edit(lambda w, e, kind=kind: e.update(payloadType=kind)),
        "payloadType is",
    )
add("payloadType changed", "a list", envelope_edit(lambda w, e: e.update(payloadType=[])))


def sig(envelope, place=0) -> bytes:
    return base64.b64decode(envelope["signatures"][place]["sig"])


def set_sig(envelope, value: bytes, place=0) -> None:
    envelope["signatures"][place]["sig"] = base64.b64encode(value).decode()


def malleable(world, envelope):
    """The same signature with S + L in place of S, which a careless verifier takes too."""
    value = sig(envelope)
    larger = int.from_bytes(value[32:], "little") + L
    set_sig(envelope, value[:32] + larger.to_bytes(32, "little"))


for name, change in {
    "one bit": lambda w, e: set_sig(e, bytes([sig(e)[0] ^ 1]) + sig(e)[1:]),
    "S + L": malleable,
    "zeros": lambda w, e: set_sig(e, bytes(64)),
    "cut": lambda w, e: set_sig(e, sig(e)[:63]),
    "longer": lambda w, e: set_sig(e, sig(e) + b"\0"),
    "none": lambda w, e: set_sig(e, b""),
    "of the payload without its type": lambda w, e: set_sig(
        e, w.keys["ana"].sign(base64.b64decode(e["payload"]))
    ),
    "no list": lambda w, e: e.update(signatures=None),
    "empty list": lambda w, e: e.update(signatures=[]),
    "left out": lambda w, e: e.pop("signatures"),
    "a text": lambda w, e: e["signatures"].append("ana"),
    "a thousand": lambda w, e: e.update(
        signatures=[{"keyid": f"{n:064x}", "sig": "AAAA"} for n in range(1000)]
    ),
}.items():
    add("signature changed", name, envelope_edit(change))


def keyid(envelope, *names):
    for each, name in zip(envelope["signatures"], names, strict=True):
        each["keyid"] = name


for name, change in {
    "the two swapped": lambda w, e: keyid(e, w.ids["ben"], w.ids["ana"]),
    "in capitals": lambda w, e: keyid(e, w.ids["ana"].upper(), w.ids["ben"]),
    "of a third": lambda w, e: keyid(e, w.ids["eve"], w.ids["ben"]),
    "of a third, twice": lambda w, e: keyid(e, *[w.ids["eve"]] * 2),
    "a path": lambda w, e: keyid(e, "../ana.pub.pem", w.ids["ben"]),
    "empty": lambda w, e: keyid(e, "", w.ids["ben"]),
    "left out": lambda w, e: e["signatures"][0].pop("keyid"),
    "a number": lambda w, e: keyid(e, 1, w.ids["ben"]),
    "a list": lambda w, e: keyid(e, [w.ids["ana"]], w.ids["ben"]),
    "with a zero-width space": lambda w, e: keyid(e, w.ids["ana"] + "\u200b", w.ids["ben"]),
}.items():
    add("key id pointing elsewhere", name, envelope_edit(change))


def by(*names, claims=()):
    """The good statement, signed by these, who say that they are others."""

    def make(world, folder):
        envelope = world.with_signature(world.stated(world.certificate), *names)
        for each, name in zip(envelope["signatures"], claims, strict=False):
            each["keyid"] = world.ids[name]
        return written(world, folder, envelope)

    return make


add("key not in the policy", "alone", by("eve"))
add("key not in the policy", "beside one that is", by("ana", "eve"))
add("key not in the policy", "under another's id", by("eve", claims=("ana",)))
add("key not in the policy", "under both ids", by("eve", claims=("ana", "ben")))
add(
    "key not in the policy",
    "good one beside, under the other's id",
    by("ana", "eve", claims=("ana", "ben")),
)
add("threshold", "one of two", by("ana"))
for name, second in {
    "the same signature twice": lambda w, first: dict(first),
    "the same under the other id": lambda w, first: {**first, "keyid": w.ids["ben"]},
    "the same under its id in capitals": lambda w, first: {**first, "keyid": w.ids["ana"].upper()},
    "the same under its id with a space": lambda w, first: {**first, "keyid": w.ids["ana"] + " "},
}.items():

    def twice(world, folder, second=second):
        envelope = world.with_signature(world.stated(world.certificate), "ana")
        first = envelope["signatures"][0]
        return written(world, folder, {**envelope, "signatures": [first, second(world, first)]})

    add("threshold counted twice by one key", name, twice)
add(
    "several signatures, one of them bad",
    "second of another payload",
    envelope_edit(lambda w, e: e["signatures"].__setitem__(1, w.read("bad")["signatures"][1])),
)
add(
    "several signatures, one of them bad",
    "second of zeros",
    envelope_edit(lambda w, e: set_sig(e, bytes(64), 1)),
)


def replace_text(name, change):
    """Another base64 text of the same bytes, of the payload and of a signature."""

    def payload(world, envelope):
        envelope["payload"] = change(envelope["payload"])

    def signature(world, envelope):
        envelope["signatures"][0]["sig"] = change(envelope["signatures"][0]["sig"])

    add("base64 otherwise", f"payload {name}", envelope_edit(payload))
    add("base64 otherwise", f"signature {name}", envelope_edit(signature))


def loose_bits(text: str) -> str:
    """The same bytes: the bits that padding leaves over are not zero."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body = text.rstrip("=")
    if body == text:
        return text + "===="
    return body[:-1] + alphabet[alphabet.index(body[-1]) | 1] + "=" * (len(text) - len(body))


replace_text("with a line break", lambda t: t[:8] + "\n" + t[8:])
replace_text("with a space at its end", lambda t: t + " ")
replace_text("with more padding", lambda t: t + "=")
replace_text("with loose bits", loose_bits)
replace_text("with a foreign character", lambda t: "é" + t)
add(
    "base64 otherwise",
    "signature for URLs, without padding",
    envelope_edit(
        lambda w, e: e["signatures"][0].update(
            sig=base64.urlsafe_b64encode(b"\xfb\xff" + sig(e)[2:]).decode().rstrip("=")
        )
    ),
)
add("base64 otherwise", "payload a number", envelope_edit(lambda w, e: e.update(payload=5)))


def text_edit(change):
    """The good envelope's file, as other text."""

    def make(world, folder):
        return written(world, folder, change(world.good.read_text("utf-8"), world))

    return make


def beside(text, world):
    """Two payloads: the first for a reader that takes the first, the second for other ones."""
    other = world.read("bad")["payload"]
    return text.replace('"payload":', f'"payload": "{other}",\n  "payload":', 1)


for name, change in {
    "payload twice": beside,
    "payload twice, the second escaped": lambda t, w: t.replace(
        '"payload":', '"p\\u0061yload": "AAAA", "payload":', 1
    ),
    "signatures twice": lambda t, w: t.replace('"signatures":', '"signatures": [], "signatures":'),
    "sig twice": lambda t, w: t.replace('"sig":', '"sig": "", "sig":'),
    "data behind it": lambda t, w: t + "{}",
    "a null behind it": lambda t, w: t + "\0",
    "a byte order mark": lambda t, w: "\ufeff" + t,
    "UTF-16": lambda t, w: t.encode("utf-16"),
    "not UTF-8": lambda t, w: b"\xff" + t.encode(),
    "NaN": lambda t, w: t.replace('"signatures":', '"x": NaN, "signatures":'),
    "a key more": lambda t, w: t.replace('"payload":', '"note": 1, "payload":', 1),
    "a comment": lambda t, w: "// signed\n" + t,
    "in a list": lambda t, w: f"[{t}]",
    "cut": lambda t, w: t[: len(t) // 2],
    "empty": lambda t, w: "",
    "a number": lambda t, w: "1" * 10_000,
    "nested deeply": lambda t, w: "[" * 100_000 + "]" * 100_000,
    "half a surrogate pair": lambda t, w: t.replace('"keyid": "', '"keyid": "\\ud800', 1),
}.items():
    add("envelope's text", name, text_edit(change))
add("huge file", "21 MB of spaces", text_edit(lambda t, w: t + " " * 21_000_000))


def careless(change):
    """A payload that Ana and Ben signed though its text can be read in two ways."""

    def make(world, folder):
        text = files.canonical_json(world.stated(world.certificate).to_dict())
        changed = change(text)
        payload = changed if isinstance(changed, bytes) else changed.encode()
        return written(world, folder, world.with_signature(payload))

    return make


for name, change in {
    "a key twice": lambda t: t.replace('"verdict":', '"verdict":"refuted","verdict":', 1),
    "a byte order mark": lambda t: "\ufeff" + t,
    "spaces": lambda t: t.replace('":', '": '),
    "another order": lambda t: json.dumps(dict(reversed(json.loads(t).items()))),
    "data behind it": lambda t: t + "\n{}",
    "a line break": lambda t: t + "\n",
    "NaN": lambda t: t.replace('"seed":null', '"seed":NaN'),
    "escapes": lambda t: json.dumps(json.loads(t), sort_keys=True, separators=(",", ":")),
    "half a surrogate pair": lambda t: t.replace('"seed":null', '"seed":"\\ud800"'),
    "not UTF-8": lambda t: b"\xff" + t.encode(),
    "a list": lambda t: f"[{t}]",
    "no object": lambda t: "17",
    "a time that is none": lambda t: t.replace('"signed_at":"2', '"signed_at":"x'),
    "nested deeply": lambda t: "[" * 100_000 + "]" * 100_000,
}.items():
    add("payload that can be read in two ways", name, careless(change), "payload ")


add(
    "statement edited",
    "subjects that are none, though signed",
    careless(lambda t: t.replace('"subject":[', '"subject":[7,')),
    "the statement's subjects",
)


def pem(key) -> bytes:
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def point(y: int, sign: int = 0) -> bytes:
    raw = (y | sign << 255).to_bytes(32, "little")
    return pem(Ed25519PublicKey.from_public_bytes(raw))


def order_eight() -> int:
    """y of a point of order 8: a root of d·y⁴ + 2·y² = 1, by square roots modulo p."""
    d = -121665 * pow(121666, -1, P) % P
    for sign in (1, -1):
        square = (-1 + sign * root(1 + d)) * pow(d, -1, P) % P
        if pow(square, (P - 1) // 2, P) == 1:
            return root(square)
    raise AssertionError


def root(value: int) -> int:
    value %= P
    found = pow(value, (P + 3) // 8, P)
    if found * found % P != value:
        found = found * pow(2, (P - 1) // 4, P) % P
    assert found * found % P == value
    return found


def foreign_key(content: Callable[[World], bytes]):
    """A policy that somebody was talked into: its second key is none that is safe."""

    def make(world, folder):
        path = folder / "odd.pub.pem"
        path.write_bytes(content(world))
        words = written(world, folder, world.read("good"))
        return [*words[:2], f"--key={path}", *words[3:]]

    return make


for name, content in {
    "RSA": lambda w: pem(rsa.generate_private_key(65537, 1024).public_key()),
    "ECDSA": lambda w: pem(ec.generate_private_key(ec.SECP256R1()).public_key()),
    "X25519": lambda w: pem(x25519.X25519PrivateKey.generate().public_key()),
    "Ed448": lambda w: pem(ed448.Ed448PrivateKey.generate().public_key()),
    "private": lambda w: (w.home / "ben.pem").read_bytes(),
    "of zeros": lambda w: point(0),
    "the neutral point": lambda w: point(1),
    "the point of order 2": lambda w: point(P - 1),
    "the other point of order 4": lambda w: point(0, 1),
    "a point of order 8": lambda w: point(order_eight()),
    "another of order 8": lambda w: point(P - order_eight(), 1),
    "a y that is not reduced": lambda w: point(P + 1),
    "no key": lambda w: b"ana\n",
    "empty": lambda w: b"",
    "Eve's": lambda w: (w.home / "eve.pub.pem").read_bytes(),
    "a certificate": lambda w: w.file.read_bytes(),
}.items():
    add("key of another kind", name, foreign_key(content))


def neutral_key(world, folder):
    """R = S·B is a signature of anything, if the key is the neutral point."""
    path = folder / "neutral.pub.pem"
    path.write_bytes(point(1))
    spki = Ed25519PublicKey.from_public_bytes((1).to_bytes(32, "little"))
    envelope = with_payload(world.read("good"), world.stated(world.certificate).envelope().payload)
    base = bytes([0x58] + [0x66] * 31)
    signature = base64.b64encode(base + (1).to_bytes(32, "little")).decode()
    envelope["signatures"] = [{"keyid": key_id(spki), "sig": signature}]
    words = written(world, folder, envelope)
    return [words[0], f"--key={path}"]


add("key of another kind", "the neutral point, with its signature of anything", neutral_key)


def companion(change):
    """A file beside the envelope that signs another one."""

    def make(world, folder):
        path = folder / "certificate.json"
        data = change(world.file.read_bytes(), world)
        path.write_bytes(data)
        return world.words(path, f"--signature={world.good}")

    return make


def looking_good(data, world):
    record = json.loads(data)
    record["claim"]["source"] = "the board"
    return files.pretty_json(rehashed(record)).encode()


for name, change in {
    "edited and rehashed": looking_good,
    "the same value in other words": lambda d, w: json.dumps(json.loads(d)).encode(),
    "a line break more": lambda d, w: d + b"\n",
    "a byte order mark": lambda d, w: b"\xef\xbb\xbf" + d,
    "a key twice": lambda d, w: d.replace(b"{", b'{"verdict": "refuted",', 1),
    "line ends of Windows": lambda d, w: d.replace(b"\n", b"\r\n"),
    "another certificate": lambda d, w: (w.home / "refuted.json").read_bytes(),
    "the envelope itself": lambda d, w: w.good.read_bytes(),
}.items():
    add(
        "file beside the envelope", name, companion(change), "differs from the file that was signed"
    )
add("no envelope", "the certificate alone", lambda w, f: w.words(w.file))
add(
    "no envelope",
    "the statement that nobody signed",
    lambda w, f: written(w, f, base64.b64decode(w.read("good")["payload"])),
)


def other_journal(change, **without):
    def make(world, folder):
        ledger, anchor = folder / "ledger.jsonl", folder / "anchor"
        shutil.copy(world.ledger, ledger)
        shutil.copy(world.anchor, anchor)
        change(ledger, anchor, world)
        more = [f"--ledger={ledger}"] if ledger.exists() else []
        more += [f"--anchor={anchor}"] if anchor.exists() else []
        return world.words(world.good, *more, run=False)

    return make


def shortened(ledger, anchor, world, lines=-1):
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:lines]))


def another_run(ledger, anchor, world):
    ledger.unlink()
    anchor.unlink()
    home = ledger.parent
    run_subject(
        "examples:Answers", (), "numbers", None, home / "run", anchor=anchor, rehearse=False
    )
    shutil.move(home / "run" / "ledger.jsonl", ledger)


for name, change in {
    "its closing line missing": shortened,
    "its last release missing": lambda j, a, w: shortened(j, a, w, -2),
    "the first line alone": lambda j, a, w: shortened(j, a, w, 1),
    "cut within a line": lambda j, a, w: j.write_bytes(j.read_bytes()[:-9]),
    "edited": lambda j, a, w: j.write_bytes(j.read_bytes().replace(b"user 1", b"user 9")),
    "of another run": another_run,
    "lines twice": lambda j, a, w: j.write_bytes(j.read_bytes() * 2),
    "empty": lambda j, a, w: j.write_bytes(b""),
    "missing": lambda j, a, w: (j.unlink(), a.unlink()),
    "without its anchor": lambda j, a, w: a.unlink(),
    "with an empty anchor": lambda j, a, w: a.write_bytes(b""),
    "anchored elsewhere": lambda j, a, w: (
        a.unlink(),
        FileAnchor(a).advance(replace(FileAnchor(w.anchor).read(), journal="0" * 32)),
    ),
}.items():
    add("journal", name, other_journal(change))


def honest(certificate=lambda world: world.certificate, at=None, type_=None):
    """What Ana and Ben did sign, but a policy does not want."""

    def make(world, folder):
        now = datetime.now(UTC)
        statement = world.stated(certificate(world), None if at is None else now + at)
        if type_ is not None:
            statement = replace(statement, kind=type_)
        words = written(world, folder, world.with_signature(statement))
        return [each for each in words if not each.startswith(("--ledger", "--anchor"))]

    return make


add("time", "tomorrow", honest(at=timedelta(days=1)), "in the future")
add("time", "in ten minutes", honest(at=timedelta(minutes=10)), "in the future")
add("time", "a year ago", honest(at=timedelta(days=-365)), "at most")


def untimed(world, folder):
    statement = replace(world.stated(world.certificate), signed_at=None)
    return written(world, folder, world.with_signature(statement))


add("time", "none", untimed, "state no time")


def first_schema(world, folder):
    """A certificate of the first schema, which knows no assumptions; signed by both."""
    record = world.certificate.to_dict()
    for name in ("assumptions", "rehearsal"):
        del record[name]
    record = rehashed(record | {"schema": "dpaudit-certificate/1"})
    statement = replace(world.stated(world.certificate), predicate=record)
    return written(world, folder, world.with_signature(statement))


add("older schema", "under the type of the newest", first_schema)
add("older schema", "type alone", honest(type_="urn:dpaudit:certificate:1"))


def journal_head(world, folder):
    return written(
        world,
        folder,
        world.with_signature(journal_statement(summarise_journal(world.ledger), None)),
    )


add("statement of another kind", "head of the journal", journal_head)
add("statement of another kind", "unknown type", honest(type_="urn:dpaudit:book:1"))
add(
    "statement of another kind",
    "type of the journal's head",
    honest(type_="urn:dpaudit:journal-head:1"),
)


def of_plan(world, **changes):
    """The certificate of nearly the same plan; the rest, which has its own demands, is kept."""
    (invocation,) = world.certificate.plan.invocations
    plan = Plan.of(replace(invocation, **changes))
    made = certify(plan, subject=world.certificate.subject)
    kept = {name: getattr(world.certificate, name) for name in ("run", "rehearsal", "audits")}
    changed = replace(made, **kept)
    return replace(changed, assumptions=changed.known_assumptions())


def with_audit(**changes):
    return lambda world: replace(world.certificate, audits=(audit(0.0, **changes),))


def with_ledger(**changes):
    def make(world):
        run = copy.deepcopy(dict(world.certificate.run))
        run["ledger"].update(changes)
        changed = replace(world.certificate, run=run)
        return replace(changed, assumptions=changed.known_assumptions())

    return make


def restated(world, **changes):
    changed = replace(world.certificate, **changes)
    return replace(changed, assumptions=changed.known_assumptions())


def seeded(world):
    run = copy.deepcopy(dict(world.certificate.run))
    run["ledger"]["seeded"] = True
    findings = (*world.certificate.findings, *run_findings(run["ledger"]))
    return restated(world, run=run, seed=7, findings=findings)


def with_subject(**changes):
    return lambda world: restated(world, subject=replace(world.certificate.subject, **changes))


OTHER = replace(AUTHORS_ERROR, severity=Severity.NOTE)
for name, (certificate, told) in {
    "refuted": (lambda w: w.refuted, "the verdict is 'refuted'"),
    "a larger ε": (lambda w: of_plan(w, mechanism=Laplace(2.0, clip=(-2.0, 2.0))), "the ε that is"),
    "a metric ball": (lambda w: of_plan(w, relation=MetricBall(radius=4.0)), "the relation is"),
    "another unit": (lambda w: of_plan(w, unit=PrivacyUnit("resp\u043ense")), "the unit is"),
    "central trust": (lambda w: of_plan(w, trust=TrustModel.CENTRAL), "the trust model is"),
    "another plan": (lambda w: of_plan(w, total=9), "the plan_hash is"),
    "no audits": (
        lambda w: replace(w.certificate, audits=()),
        "no audit of the stated claim or guarantee",
    ),
    "an audit of less": (
        with_audit(claim_epsilon=9.0),
        "no audit of the stated claim or guarantee",
    ),
    "an audit at a large δ": (with_audit(delta=0.9), "no audit of the stated claim or guarantee"),
    "an unsure audit": (with_audit(confidence=0.5), "no audit of the stated claim or guarantee"),
    "an audit of few runs": (with_audit(runs=999), "no audit of the stated claim or guarantee"),
    "an audit of another kind": (
        with_audit(method="a white-box"),
        "no audit of the stated claim or guarantee",
    ),
    "seeded noise": (with_ledger(seeded=True), "findings lacks 'seeded-noise'"),
    "seeded noise that is told": (seeded, "exact samplers"),
    "floats": (
        with_ledger(samplers={"opendp 0.12, exact": 2, "numpy": 1}),
        "findings lacks 'float-noise'",
    ),
    "nobody's noise": (with_ledger(samplers={}), "findings lacks 'float-noise'"),
    "no run": (lambda w: restated(w, run=None), "findings lacks 'float-noise'"),
    "no rehearsal": (lambda w: restated(w, rehearsal=None), "is assumed; the policy wants it"),
    "no code": (with_subject(code_hash=None), "is not about code"),
    "other code": (with_subject(code_hash="0" * 64), "the code_hash is"),
    "another name": (with_subject(name="ex\u0430mples:Answers"), "the subject is"),
    "a version of its own": (lambda w: restated(w, versions={"dpaudit": "latest"}), "'latest'"),
    "a finding that may not be": (lambda w: restated(w, findings=(OTHER,)), "data-dependent-bound"),
}.items():
    add("signed, but not what the policy wants", name, honest(certificate), told)


def claiming(epsilon):
    def make(world):
        proved = replace(world.certificate.guarantee, epsilon=epsilon)
        return replace(world.certificate, guarantee=proved)

    return make


for name, (certificate, told) in {
    "a smaller ε": (claiming(0.1), "guarantee.epsilon is 0.1; the plan proves 1"),
    "a verdict that does not follow": (
        lambda w: replace(w.refuted, verdict=w.certificate.verdict),
        "verdict is certified; plan, claim, findings and audits make it refuted",
    ),
    "an assumption that is better than known": (
        lambda w: replace(
            w.certificate,
            assumptions=tuple(
                replace(each, standing=Standing.ENFORCED) for each in w.certificate.assumptions
            ),
        ),
        "is said to be enforced; it is",
    ),
}.items():
    add("signed, but it does not follow", name, honest(certificate), told)


def flips(count=12):
    """One byte of the payload or of a signature, anywhere."""
    for number in range(count):

        def flipped(world, folder, number=number):
            envelope, rng = world.read("good"), random.Random(number)
            if number % 3 == 0:
                value = bytearray(sig(envelope, 1))
                value[rng.randrange(64)] ^= 1 << rng.randrange(8)
                set_sig(envelope, bytes(value), 1)
                return written(world, folder, envelope)
            payload = bytearray(base64.b64decode(envelope["payload"]))
            payload[rng.randrange(len(payload))] ^= 1 << rng.randrange(8)
            return written(world, folder, with_payload(envelope, bytes(payload)))

        add("one bit anywhere", str(number), flipped, ELSEWHERE)


flips()


def right(world: World) -> dict[str, list[str]]:
    """What must pass: whatever is refused above, these are not."""
    four = world.home / "by more.dsse.json"
    envelope = world.with_signature(world.stated(world.certificate), "ana", "ben", "eve")
    four.write_text(json.dumps(envelope), "utf-8")
    reordered = world.home / "reordered.dsse.json"
    turned = world.read("good")
    turned["signatures"].reverse()
    reordered.write_text(json.dumps(turned, indent=7), "utf-8")
    plain = f"--key={world.home / 'ana.pub.pem'}"
    head = world.sign_head()
    return {
        "under the policy": world.words(world.good),
        "beside the file": world.words(world.file, f"--signature={world.good}"),
        "signed by one more": world.words(four),
        "in another order": world.words(reordered),
        "without a policy": [str(world.good), plain],
        "without a policy, refuted but said so": [str(world.bad), plain],
        "journal's head": [str(head), plain, f"--ledger={world.ledger}"],
        "journal beside its head": [str(world.ledger), f"--signature={head}", plain],
    }
