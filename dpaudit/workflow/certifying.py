"""From a name to a certificate, and which files a command replaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.certificate import Certificate, with_witness
from dpaudit.certificate.certificate import SCHEMA_VERSION
from dpaudit.project.targets import certified, find_target, parse_claim, parse_settings
from dpaudit.workflow.verifying import is_journal

_KIND = SCHEMA_VERSION.partition("/")[0]
"""With which the schemas of certificates begin."""
_MOST_BYTES = 4_000_000_000


def certify_target(
    name: str,
    settings: Sequence[str],
    delta: float | None,
    accountant: str,
    *,
    rehearse: bool = False,
    data: str | None = None,
    claim: str | None = None,
    witness: bool | None = None,
) -> Certificate:
    """Certify a subject or a plan file.

    Args:
        name: ``module:Object`` or a plan file.
        settings: ``key=value`` texts.
        delta: δ of the guarantee.
        accountant: whose proof is wanted.
        rehearse: put the code to the test too; that of a sealed subject runs, sealed.
        data: what it is rehearsed on; its default data where not given.
        claim: what is stated in place of the target's own, as it is written in a plan file.
        witness: whether the independent checker proves it too; None where that is cheap.

    Raises:
        InputError: if the name, a setting or δ is wrong, or the code is to be rehearsed and there
            is none.
    """
    known = parse_settings(settings)
    tried = None
    if rehearse:
        from dpaudit.workflow.running import open_target, tried_on_made_up_rows

        tried = tried_on_made_up_rows(name, known, data)
        target = tried or open_target(name, known)
    else:
        target = find_target(name, known)
    target = replace(target, claim=parse_claim(claim) or target.claim)
    if (rehearse or data is not None) and target.subject is None and tried is None:
        raise InputError(f"{name:.80} is a plan; only the code of a subject can be rehearsed.")
    if data is not None and not rehearse:
        raise InputError("data is given without a rehearsal; add --rehearse.")
    certificate = with_witness(certified(target, delta, accountant), wanted=witness)
    if not rehearse or tried is not None:
        return certificate
    from dpaudit.workflow.rehearsing import with_rehearsal

    return with_rehearsal(certificate, target, data=data)


def replaces(output: Path, *marks: str) -> bool:
    """Tell whether a file is there that a command may replace: one that it can make again.

    Args:
        output: where the command is to write.
        marks: of which each file of the kind that it writes holds one.

    Raises:
        InputError: if a file of another kind is there, or the certificate or the ledger of a run.
    """
    if not output.is_file() or not output.stat().st_size:
        return False
    content = files.read_bytes(output, what="output", limit=_MOST_BYTES)
    if is_journal(output) or not any(each.encode() in content for each in marks):
        raise InputError(
            f"output {files.shown(output)} exists already, and this command does not write such a "
            "file; give another file with -o."
        )
    if output.suffix == ".json" and content.lstrip().startswith(b"{"):
        record = files.parse_json(content.decode(errors="replace"), what="output")
        if str(record.get("schema")).startswith(_KIND):
            _held(output)
    return True


def writer(output: Path) -> Callable[[Certificate], str]:
    """What writes a certificate, and tells which earlier one it replaced, if any.

    A certificate of a plan can be made again. That of a run cannot, and neither can a file that is
    no certificate, such as the plan.

    Raises:
        InputError: if such a file is there.
    """
    before = _held(output)

    def write(certificate: Certificate) -> str:
        certificate.save(output)
        if not before or before.get("digest") == certificate.to_dict()["digest"]:
            return ""
        subject = before.get("subject")
        name = subject.get("name") if isinstance(subject, dict) else None
        return f"{files.shown(output)} replaced an earlier certificate, of {shown(name)}."

    return write


def _held(output: Path) -> Mapping[str, Any]:
    """The record of the certificate that is to be replaced; empty where there is none."""
    if not output.is_file() or not output.stat().st_size:
        return {}
    other = "give another file with -o."
    with suppress(InputError):
        record = files.load_json(output, what="output")
        if isinstance(record, dict) and str(record.get("schema")).startswith(_KIND):
            if record.get("run") is None:
                return record
            other = f"it is the certificate of a run, which cannot be made again; {other}"
    raise InputError(f"output {files.shown(output)} exists already; {other}")
