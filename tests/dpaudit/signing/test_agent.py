"""Keys of a real SSH agent."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from dpaudit import InputError
from dpaudit.signing.keys import agent_key, key_id, load_public
from dpaudit.signing.statements import Envelope

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
    return agent_key(name)


def test_a_key_of_an_agent_signs_like_any_other(agent):
    key, public = held("office"), load_public(agent / "a.pub")
    assert key_id(key.public_key()) == key_id(public)
    envelope = Envelope(b"{}", {}).with_signature(key)
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
    with pytest.raises(InputError, match=r"has 0 Ed25519 keys 'office'; name one .*: none\."):
        held("office")
