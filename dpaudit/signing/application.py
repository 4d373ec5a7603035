"""The commands ``keygen`` and ``sign``, and the options by which other commands sign and verify.

Every command loads this module, so that cryptography is imported when it is used. A password comes
from the environment or a terminal, never from a command's words, which all can see.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.base.applications import offer
from dpaudit.base.errors import InputError
from dpaudit.base.optional_import import require
from dpaudit.cli.options import AllowWork, option, without_password

if TYPE_CHECKING:
    from dpaudit.signing.keys import Signer
    from dpaudit.workflow.verifying import Verification

PASSWORD = "DPAUDIT_KEY_PASSWORD"
"""Variable of the environment; a password is never among a command's words, which all can see."""


def keygen(
    key: Annotated[Path, typer.Argument(metavar="KEY.pem", help="The private key; a new file.")],
    no_password: Annotated[
        bool,
        typer.Option(
            "--no-password", help="Store the key without a password: whoever has the file can sign."
        ),
    ] = False,
) -> None:
    """Make an Ed25519 key, and KEY.pub.pem beside it; prints the key's id.

    The password is asked for, or taken from DPAUDIT_KEY_PASSWORD.
    """
    from dpaudit.cli import show
    from dpaudit.signing.keys import key_id, new_key

    public, path = new_key(key, None if no_password else _password(twice=True))
    show.written(key, path, id=key_id(public))
    show.say(f"id {key_id(public)}", soft_wrap=True)


def sign(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A certificate or a ledger.")],
    key: Annotated[
        str, option("--key", "KEY.pem|agent:NAME", "The private key, or an SSH agent's.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE.dsse.json", help="File to write.")
    ],
    no_time: Annotated[bool, typer.Option("--no-time", help="Do not state the time.")] = False,
    book: Annotated[
        str | None,
        option(
            "--book", "URL", "The book whose log an export must match.", callback=without_password
        ),
    ] = None,
    allow_work: AllowWork = False,
) -> None:
    """Verify a certificate or a ledger, and sign it; FILE.dsse.json gets one more signature."""
    from dpaudit.cli import show
    from dpaudit.signing.signed_files import sign_file

    path = sign_file(
        file, key, output, ask_password, timed=not no_time, book=book, allow_work=allow_work
    )
    show.written(path)


def signer_of_export(
    sign: Annotated[
        str | None, option("--sign", "KEY.pem", "Key that signs the export; adds FILE.dsse.json.")
    ] = None,
    no_time: Annotated[bool, typer.Option("--no-time", help="Do not state the time.")] = False,
) -> Callable[[], tuple[Signer, datetime | None]] | None:
    """Make what signs an export, and say when; options of ``dpaudit book export``."""
    if sign is None:
        return None

    def signer() -> tuple[Signer, datetime | None]:
        require("sign", "cryptography", what="a signature")
        from dpaudit.signing.keys import signer_of

        return signer_of(sign, ask_password), None if no_time else datetime.now(UTC)

    return signer


def verification_of(
    key: Annotated[
        list[Path] | None,
        option("--key", "PUBLIC.pem", "Public key of somebody who must have signed FILE."),
    ] = None,
    policy: Annotated[
        Path | None, option("--policy", "policy.toml", "Policy: what a signed FILE must state.")
    ] = None,
    signature: Annotated[
        Path | None,
        option("--signature", "FILE.dsse.json", "The envelope, if FILE is what it signs."),
    ] = None,
    book: Annotated[
        str | None,
        option("--book", "URL", "The book that the export comes from.", callback=without_password),
    ] = None,
) -> Callable[..., Verification] | None:
    """Make what verifies a signed file; options of ``dpaudit verify``."""
    if not (key or policy or signature):
        if book is not None:
            raise typer.BadParameter(
                "--book is given without --key; only a signed export is accepted"
            )
        return None
    from dpaudit.signing.signed_files import verify_signed

    return partial(verify_signed, keys=key or (), policy=policy, signature=signature, book=book)


def ask_password() -> str:
    """Take the password of a key from the environment, or ask for it."""
    return _password(twice=False)


def _password(*, twice: bool) -> str:
    given = os.environ.get(PASSWORD)
    if given is None and sys.stdin.isatty():
        given = typer.prompt("password", hide_input=True, confirmation_prompt=twice, err=True)
    if not given:
        raise InputError(f"the key's password is missing; give it in {PASSWORD}.")
    return given


offer("command", "keygen", keygen)
offer("command", "sign", sign)
offer("options of book export", "signing", signer_of_export)
offer("options of verify", "signed", verification_of)
