"""Ed25519 keys that an SSH agent holds, by the client of paramiko: the key never leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from paramiko import Agent, AgentKey, SSHException

from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown


@dataclass(frozen=True)
class HeldKey:
    """A key of an agent, by its public half as SSH writes it (RFC 8709, sections 4 and 6)."""

    blob: bytes

    def public_key(self) -> Ed25519PublicKey:
        """The public half, with which the blob ends."""
        return Ed25519PublicKey.from_public_bytes(self.blob[-32:])

    def sign(self, data: bytes, /) -> bytes:
        """A signature, which is checked: an agent may be anything, and its user may say no."""
        try:
            with _held() as keys:
                own = next(each for each in keys if each.asbytes() == self.blob)
                signature: bytes = own.sign_ssh_data(data)[-64:]
            self.public_key().verify(signature, data)
        except (SSHException, InvalidSignature, OSError, ValueError, StopIteration):
            raise InputError("the SSH agent has not signed; is its key there, unlocked?") from None
        return signature


def agent_key(name: str) -> HeldKey:
    """The Ed25519 key of that comment, or fingerprint (SHA256:…), of the running agent.

    Raises:
        InputError: if there is no agent, or not one such key.
    """
    with _held() as keys:
        found = [each.asbytes() for each in keys if name in (each.comment, each.fingerprint)]
        known = ", ".join(sorted(shown(each.comment) for each in keys)) or "none"
    if len(found) != 1:
        raise InputError(
            f"the SSH agent has {len(found)} Ed25519 keys {shown(name)}; it has {known:.200}, and "
            "one is to be named by its comment or its fingerprint (SHA256:…)."
        )
    return HeldKey(found[0])


@contextmanager
def _held() -> Iterator[list[AgentKey]]:
    try:
        agent = Agent()
    except SSHException:
        yield []
        return
    try:
        yield [each for each in agent.get_keys() if each.get_name() == "ssh-ed25519"]
    finally:
        agent.close()
