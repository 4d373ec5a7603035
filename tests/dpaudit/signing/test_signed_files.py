"""From the command line: keys, signatures, and who is believed."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from examples import response_plan
from typed_commands import typed

from dpaudit import Claim, certify
from dpaudit.base import files
from dpaudit.certificate import SubjectRecord
from dpaudit.signing.signed_files import verify_signed

PASSWORD = "DPAUDIT_KEY_PASSWORD"


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run a command in a folder with a certificate, a key of Ana's and one of Ben's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PASSWORD, raising=False)
    certify(response_plan(), subject=SubjectRecord("a:b"), claim=Claim(1.0)).save("c.json")

    run = partial(typed, capsys)
    for name in ("ana", "ben"):
        assert run("keygen", f"{name}.pem", "--no-password")[0] == 0
    return run


def signed(call, *names, source="c.json", to="c.dsse.json"):
    for name in names:
        code, out, err = call("sign", source, "--key", f"{name}.pem", "-o", to)
        assert (code, out) == (0, f"wrote {to}\n"), err
        source = to
    return to


def test_a_key_is_made_signs_and_is_believed(call):
    code, out, _ = call("keygen", "office.pem", "--no-password")
    wrote, also, name = out.splitlines()
    assert (code, wrote, also) == (0, "wrote office.pem", "wrote office.pub.pem")
    path = signed(call, "office")
    code, out, err = call("verify", path, "--key", "office.pub.pem", "--json")
    answer = json.loads(out)
    assert (code, err, answer["valid"], answer["verdict"]) == (0, "", True, "certified")
    assert answer["signed_by"] == [name.removeprefix("id ")]
    at = datetime.fromisoformat(answer["signed_at"])
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)


def test_passwords_come_from_the_environment_or_a_terminal(call, monkeypatch):
    call("keygen", "x.pem").refuses("password is missing; give it in", PASSWORD)
    assert not Path("x.pem").exists()
    monkeypatch.setenv(PASSWORD, "first")
    assert call("keygen", "x.pem")[0] == 0
    assert signed(call, "x")
    monkeypatch.setenv(PASSWORD, "second")
    words = ("sign", "c.json", "--key", "x.pem", "-o", "d.dsse.json")
    call(*words).refuses("key 'x.pem' has another password")
    monkeypatch.delenv(PASSWORD)
    call(*words).refuses("password is missing")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr(
        "dpaudit.signing.application.typer.prompt", lambda *_, **how: asked.append(how) or "first"
    )
    assert call(*words)[0] == 0
    assert [(how["hide_input"], how["confirmation_prompt"]) for how in asked] == [(True, False)]
    assert call("keygen", "y.pem")[0] == 0
    assert asked[1]["confirmation_prompt"] is True


def test_every_key_that_is_given_must_have_signed(call):
    path, keys = signed(call, "ana"), ("--key", "ana.pub.pem", "--key", "ben.pub.pem")
    call("verify", path, *keys).refuses("has not signed it; leave the key out, or have it signed.")
    signed(call, "ben", source=path)
    assert call("verify", path, *keys)[0] == 0
    call("sign", path, "--key", "ben.pem", "-o", path).refuses("has signed it already")


def test_a_second_signer_signs_the_same_bytes(call):
    one, two = signed(call, "ana"), signed(call, "ana", "ben", to="two.dsse.json")
    payloads = [json.loads(Path(each).read_text())["payload"] for each in (one, two)]
    both = signed(call, "ben", source=one, to="both.dsse.json")
    assert json.loads(Path(both).read_text())["payload"] == payloads[0]


def test_a_file_beside_its_signature_is_the_one_that_was_signed(call):
    path = signed(call, "ana")
    words = ("verify", "c.json", "--signature", path, "--key", "ana.pub.pem")
    assert call(*words)[0] == 0
    Path("c.json").write_text(Path("c.json").read_text() + "\n")
    call(*words).refuses("'c.json' differs from the file that was signed.")


def test_nothing_is_signed_that_does_not_follow(call):
    record = json.loads(Path("c.json").read_text())
    record["guarantee"]["epsilon"] = 0.5
    rest = {name: value for name, value in record.items() if name != "digest"}
    Path("e.json").write_text(files.pretty_json(record | {"digest": files.digest(rest)}))
    words = ("--key", "ana.pem", "-o", "e.dsse.json")
    call("sign", "e.json", *words).refuses("guarantee.epsilon is 0.5; the plan proves 1.")
    for content, told in {
        "{}": "is not a 'dpaudit-certificate/3'; certify it again.",
        "[]": "is not a 'dpaudit-certificate/3'",
        '{"schema": "dpaudit-certificate/1"}': "certify it again",
        '{"schema": "dpaudit-certificate/3"}': "does not follow the schema",
        '{"payloadType": 1}': "envelope must have payload",
        '{"a": 1, "a": 2}': "twice",
        "no": "is not JSON",
    }.items():
        Path("e.json").write_text(content)
        call("sign", "e.json", *words).refuses(told)
    assert not Path("e.dsse.json").exists()


def test_a_second_signer_does_not_sign_just_anything(call):
    from dpaudit.signing.statements import Statement

    other = Statement("urn:x", {"spent": 1}, []).envelope()
    Path("o.dsse.json").write_text(other.to_json())
    call("sign", "o.dsse.json", "--key", "ana.pem", "-o", "p.dsse.json").refuses(
        "signatures must be"
    )
    from dpaudit.signing.keys import load_private

    Path("o.dsse.json").write_text(other.with_signature(load_private("ben.pem", str)).to_json())
    call("sign", "o.dsse.json", "--key", "ana.pem", "-o", "p.dsse.json").refuses(
        "schema is missing"
    )
    call("verify", "o.dsse.json", "--key", "ben.pub.pem").refuses("'urn:x', not a certificate")


def test_what_goes_together_is_told(call):
    path = signed(call, "ana")
    Path("p.toml").write_text("journal = true\n")
    key = ("--key", "ana.pub.pem")
    call("verify", path).refuses("is signed; say who must have signed it, with --key PUBLIC.pem.")
    call("verify", path, "--policy", "p.toml").refuses("no key is given")
    call("verify", "c.json", "--signature", path).refuses("no key is given")
    call("verify", "c.json", *key).refuses("envelope must have payload")
    call("verify", path, "--key", "ana.pem").refuses("is not the half of a key that is needed here")
    call("verify", path, *key, "--anchor", "a").refuses("without a ledger")
    call("verify", path, *key, "--ledger", "l.jsonl").refuses("does not exist")
    call("verify", path, *key, "--policy", "none.toml").refuses("does not exist")
    call("sign", "c.json", "--key", "none.pem", "-o", "x").refuses("does not exist")
    call("sign", "c.json", "--key", "ana.pem", "-o", "no/x").refuses("cannot be written")
    call("sign", "c.json", "--key", "ana.pem", "-o", "./ana.pem").refuses("of signatures")
    call("sign", "c.json", "--key", "ana.pem", "-o", "ben.pem").refuses("of signatures")
    code, out, err = call("verify", path, *key, "--policy", "p.toml")
    assert (code, "refused" in out) == (1, True)
    assert err == "dpaudit: the closed journal of the run is missing; give it with --ledger.\n"
    answer = json.loads(call("verify", path, *key, "--policy", "p.toml", "--json")[1])
    assert (answer["valid"], answer["policy"], len(answer["lacks"])) == (False, "not met", 1)


def test_a_policy_is_met_and_grows_old(call):
    path = signed(call, "ana")
    Path("p.toml").write_text('days = 30\n[[limit]]\nunit = "response"\nepsilon = 1\n')
    code, out, _ = call("verify", path, "--key", "ana.pub.pem", "--policy", "p.toml", "--json")
    assert (code, json.loads(out)["policy"]) == (0, "met")
    both = ("--key", "ana.pub.pem", "--key", "ben.pub.pem")
    call("verify", path, *both, "--policy", "p.toml").refuses("has not signed it")
    later = datetime.now(UTC) + timedelta(days=31)
    keys, policy = [Path("ana.pub.pem")], Path("p.toml")
    found = verify_signed(Path(path), keys, policy=policy, now=later)
    assert "30 days at most" in "".join(found.lacks)
    assert call("sign", "c.json", "--key", "ana.pem", "-o", path, "--no-time")[0] == 0
    untimed = call("verify", path, "--key", "ana.pub.pem", "--policy", "p.toml")
    assert (untimed.code, "state no time" in untimed.err) == (1, True)


def test_another_library_is_asked_too(call):
    path = signed(call, "ana")
    code, out, _ = call("verify", path, "--key", "ana.pub.pem", "--second-opinion", "--json")
    assert (code, "second_opinion" in json.loads(out)) == (0, True)


def test_the_head_of_a_journal(call, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "support"))
    words = ("run", "examples:Answers", "--data", "numbers", "--no-rehearsal")
    for folder in ("one", "two"):
        more = ("--float-noise", "-o", folder, "--anchor", f"{folder}.anchor")
        assert call(*words, *more)[0] == 0
    head = signed(call, "ana", source="one/ledger.jsonl", to="head.dsse.json")
    key, ledger = ("--key", "ana.pub.pem"), ("--ledger", "one/ledger.jsonl")
    code, out, _ = call("verify", head, *key, "--json")
    answer = json.loads(out)
    assert (code, answer["kind"], answer["releases"]) == (0, "journal head", 3)
    assert call("verify", head, *key, *ledger)[0] == 0
    assert call("verify", head, *key, *ledger, "--anchor", "one.anchor")[0] == 0
    assert call("verify", "one/ledger.jsonl", "--signature", head, *key)[0] == 0
    call("verify", head, *key, "--anchor", "one.anchor").refuses("give --ledger too")
    both = ("--ledger", "two/ledger.jsonl", "--signature", head)
    call("verify", "one/ledger.jsonl", *both, *key).refuses("give it only with a certificate")
    call("verify", head, *key, "--ledger", "two/ledger.jsonl").refuses(
        "not the one that was signed"
    )
    Path("p.toml").write_text("journal = true\n")
    call("verify", head, *key, "--policy", "p.toml").refuses("journal-head:1', not a certificate")
    lines = Path("one/ledger.jsonl").read_bytes().splitlines(keepends=True)
    Path("one/ledger.jsonl").write_bytes(b"".join(lines[:-1]))
    call("verify", head, *key, *ledger).refuses("it is shorter, longer or different.")
    Path("one/ledger.jsonl").write_bytes(b"".join(lines)[:-3])
    call("sign", "one/ledger.jsonl", "--key", "ana.pem", "-o", "x").refuses("was cut off")
