"""Ed25519 keys: files of them, keys that an SSH agent holds, and what makes one fit to be believed.

An agent is asked by the client of paramiko, and the key never leaves it. No file is overwritten, a
private one can be read by its owner alone, and a key for which everybody can sign is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.optional_import import optional_import
from dpaudit.base.validate import shown

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
"""Of the curve −x² + y² = 1 + d·x²·y² over the integers modulo p (RFC 8032, section 5.1)."""
_PEM = serialization.Encoding.PEM
_SPKI = serialization.PublicFormat.SubjectPublicKeyInfo


class Signer(Protocol):
    """A private key, or what holds one."""

    def public_key(self) -> Ed25519PublicKey:
        """Return its public half."""

    def sign(self, data: bytes, /) -> bytes:
        """Return the 64 bytes of the signature of some bytes."""


def key_id(key: Ed25519PublicKey) -> str:
    """Return SHA-256 of the key's SubjectPublicKeyInfo in DER, 64 hexadecimal digits."""
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, _SPKI)).hexdigest()


def load_public(path: Path | str) -> Ed25519PublicKey:
    """Give the Ed25519 key of a PEM file (SubjectPublicKeyInfo), or of a line as OpenSSH writes it.

    Raises:
        InputError: if there is none, or everybody can sign for it, as for a point of small order.
    """
    is_line = files.read_bytes(path, what="key").startswith(b"ssh-ed25519 ")
    load = serialization.load_ssh_public_key if is_line else serialization.load_pem_public_key
    key = _loaded(load, Ed25519PublicKey, path)
    if _of_small_order(key.public_bytes_raw()):
        raise InputError(
            f"key {files.shown(path)} is a point of small order, with which everybody can "
            "sign; make a key with dpaudit keygen."
        )
    return key


def load_private(path: Path | str, password: Callable[[], str]) -> Ed25519PrivateKey:
    """Return the Ed25519 key of a PEM file (PKCS#8).

    Args:
        path: of the file.
        password: asked for it, where the key has one.

    Raises:
        InputError: if there is no such key, or the password is not its.
    """
    load = serialization.load_pem_private_key
    try:
        return _loaded(load, Ed25519PrivateKey, path, None)
    except TypeError:  # it has a password
        return _loaded(load, Ed25519PrivateKey, path, os.fsencode(password()))


def new_key(path: Path | str, password: str | None) -> tuple[Ed25519PublicKey, Path]:
    """Make a private file that its owner alone can read, and ``NAME.pub.pem`` beside it.

    Args:
        path: of the private half, PKCS#8; neither file may exist.
        password: of the private half; None for a file that is as good as the key.

    Returns:
        The public half, and its path.

    Raises:
        InputError: if a file exists or cannot be written, or there can be no such password.
    """
    key, lock, private = Ed25519PrivateKey.generate(), serialization.NoEncryption(), Path(path)
    public = key.public_key()
    try:
        if password is not None:
            lock = serialization.BestAvailableEncryption(os.fsencode(password))
        content = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, lock)
        shared = private.with_name(f"{private.name.removesuffix('.pem')}.pub.pem")
    except ValueError:
        raise InputError(
            f"key {files.shown(path)} cannot be made; it needs a name, and a password of 1 to 1023 "
            "bytes."
        ) from None
    _create(shared, public.public_bytes(_PEM, _SPKI), 0o644)
    try:
        _create(private, content, 0o600)
    except InputError:
        shared.unlink()
        raise
    return public, shared


def _create(path: Path, content: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            path.unlink()
            raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a path"
        there = isinstance(error, FileExistsError)
        wanted = (
            ("a new path, because no key is overwritten")
            if there
            else "a folder that can be written"
        )
        raise InputError(f"key {files.shown(path)} cannot be made: {why}; give {wanted}.") from None


def _loaded(load: Callable[..., Any], kind: type, path: Path | str, *password: Any) -> Any:
    """Return a key of that kind; TypeError if it has a password and none is given."""
    try:
        key = load(files.read_bytes(path, what="key"), *password)
    except (ValueError, UnsupportedAlgorithm) as error:
        if isinstance(error, InputError):
            raise
        why = (
            "has another password"
            if any(password)
            else "is not the half of a key that is needed here, in PEM"
        )
        raise InputError(
            f"key {files.shown(path)} {why}; give the file that keygen wrote."
        ) from None
    if not isinstance(key, kind):
        raise InputError(f"key {files.shown(path)} is of another kind; it must be of Ed25519.")
    return key


def _of_small_order(raw: bytes) -> bool:
    """Tell whether eight times the point is the neutral one, or its y is not below p.

    The points of order 1, 2 and 4 have y = 1, −1 and 0. Those of order 8 double to y = 0. As the
    doubled y is (y² + x²) / (1 − d·x²·y²), they have x² = −y², and by the equation of the curve
    d·y⁴ + 2·y² = 1.
    """
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    return y >= _P or y in (0, 1, _P - 1) or (_D * y**4 + 2 * y**2 - 1) % _P == 0


def signer_of(key: Path | str, password: Callable[[], str]) -> Signer:
    """Return the private key of a file, or one that an SSH agent holds.

    Args:
        key: path of a PKCS#8 file; or ``agent:`` and the comment or fingerprint of an agent's key.
        password: asked for that of a file.

    Raises:
        InputError: if there is no such key.
    """
    kind, _, name = str(key).partition(":")
    if kind != "agent":
        own: Signer = load_private(key, password)
        return own
    return agent_key(name)


@dataclass(frozen=True)
class HeldKey:
    """A key of an agent, by its public half as SSH writes it (RFC 8709, sections 4 and 6)."""

    blob: bytes

    def public_key(self) -> Ed25519PublicKey:
        """Return the public half, with which the blob ends."""
        return Ed25519PublicKey.from_public_bytes(self.blob[-32:])

    def sign(self, data: bytes, /) -> bytes:
        """Give a signature, which is checked: an agent may be anything, and its user may say no."""
        try:
            with _agent_keys() as keys:
                own = next(each for each in keys if each.asbytes() == self.blob)
                signature: bytes = own.sign_ssh_data(data)[-64:]
            self.public_key().verify(signature, data)
        except (InvalidSignature, OSError, ValueError, StopIteration):
            raise InputError("the SSH agent has not signed; is its key there, unlocked?") from None
        return signature


def agent_key(name: str) -> HeldKey:
    """Return the Ed25519 key of that comment, or fingerprint (SHA256:…), of the running agent.

    Raises:
        InputError: if there is no agent, or not one such key.
    """
    with _agent_keys() as keys:
        found = [each.asbytes() for each in keys if name in (each.comment, each.fingerprint)]
        known = ", ".join(sorted(shown(each.comment) for each in keys)) or "none"
    if len(found) != 1:
        raise InputError(
            f"the SSH agent has {len(found)} Ed25519 keys {shown(name)}; name one of its keys by "
            f"comment or fingerprint (SHA256:…): {known:.200}."
        )
    return HeldKey(found[0])


@contextmanager
def _agent_keys() -> Iterator[list[Any]]:
    """Yield the Ed25519 keys of the running agent; none where there is no agent."""
    paramiko = optional_import("sign", "paramiko", what="a key of an SSH agent")
    try:
        agent = paramiko.Agent()
    except paramiko.SSHException:
        yield []
        return
    try:
        yield [each for each in agent.get_keys() if each.get_name() == "ssh-ed25519"]
    except paramiko.SSHException as error:
        raise ConnectionError("the SSH agent does not answer") from error
    finally:
        agent.close()
