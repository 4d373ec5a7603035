"""Checking a file that claims something."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpaudit.accounting import require_affordable
from dpaudit.base import files
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.certificate import (
    Assumption,
    Certificate,
    SecondOpinion,
    check_of,
    lacks_check,
    load_certificate,
    verify,
)
from dpaudit.certificate.certificate import SCHEMA_VERSION
from dpaudit.certificate.records import CheckRecord
from dpaudit.ledger import FileAnchor, JournalSummary, summarise_journal
from dpaudit.ledger.journal import FORMAT as JOURNAL_FORMAT
from dpaudit.project.plan_file import is_release

Opinion = Callable[[Certificate], SecondOpinion]
"""What asks another library about a certificate."""


@dataclass(frozen=True)
class Verification:
    """The findings on a file.

    Attributes:
        kind: ``certificate``, ``ledger`` or ``book``.
        facts: what it says, JSON values.
        remarks: what a reader must know, such as a line that was cut off.
        opinion: what another library says of a certificate, if it was asked.
        lacks: what a policy demands and the file has not, one sentence each.
        unchecked: why the independent checker does not prove the claim of a certificate, or
            anything without one; empty where it does.
        assumptions: what the proof of a certificate rests on.
    """

    kind: str
    facts: Mapping[str, Any]
    remarks: tuple[str, ...] = ()
    opinion: SecondOpinion | None = None
    lacks: tuple[str, ...] = ()
    unchecked: str = ""
    assumptions: tuple[Assumption, ...] = ()


_USUAL_POINTS = 34
"""Of a curve; each further one may cost a grid of its own."""


def load_verified(path: Path | str, *, allow_work: bool = False) -> Certificate:
    """A certificate whose guarantee, findings and verdict follow from its plan, claim and audits.

    Args:
        path: of the file.
        allow_work: whether its proof may take longer than :data:`dpaudit.accounting.MOST_SECONDS`.

    Raises:
        TamperedError: if they do not, or a hash does not match.
        InputError: if it is missing, does not follow the schema, or would take too long.
    """
    try:
        return verified(load_certificate(path), allow_work=allow_work)
    except TamperedError as error:
        raise TamperedError(
            f"{files.shown(path)}: {str(error).removesuffix('.')}; ask its issuer for the file, or "
            "certify again."
        ) from None
    except InputError as error:
        said, name = str(error), files.shown(path)
        named = error if name in said else type(error)(f"certificate {name}: {said}")
        raise (_other_kind(Path(path)) or named) from None


def _other_kind(path: Path) -> InputError | None:
    """What a file is in place of a certificate, and what to do, where that can be told."""
    with suppress(InputError, OSError):
        text = files.read_text(path, what="certificate", limit=files.MAX_JSON_BYTES).strip()
        name = files.shown(path)
        if path.suffix == ".toml":
            content = files.read_toml(path, what="file")
            kind, command = "a project file", "check"
            if is_release(content):
                kind, command = "a release file", "release"
            elif "plan" in content:
                kind, command = "a plan", "certify"
            does = f"dpaudit {command} {path.name} makes its certificate"
            return InputError(f"{name} is {kind}, not a certificate; {does}.")
        if not text or (text[0] == "{" and text[-1] != "}"):
            how = "is empty" if not text else "is cut off before its end"
            return InputError(f"certificate {name} {how}; copy the whole file, or certify again.")
        if files.parse_json(text, what="file").keys() == {"invocations"}:
            does = "certify its plan file, or its code, with dpaudit certify"
            return InputError(f"{name} is a plan as JSON, not a certificate; {does}.")
    return None


def verified(certificate: Certificate, *, allow_work: bool = False) -> Certificate:
    """The certificate, if all that it states follows: as for :func:`load_verified`."""
    if not allow_work:
        points = 0 if certificate.guarantee is None else len(certificate.guarantee.curve)
        require_affordable(certificate.plan, times=max(1.0, points / _USUAL_POINTS))
    verify(certificate)
    return certificate


def verify_file(
    path: Path,
    *,
    ledger: Path | None = None,
    anchor: Path | None = None,
    opinion_on: Opinion | None = None,
    allow_work: bool = False,
) -> Verification:
    """Check a certificate or a ledger. Imports and runs nothing that the file names.

    Args:
        path: of the certificate or the ledger.
        ledger: of the run that a certificate speaks of: do they belong together?
        anchor: what kept the head of the ledger: is its end missing, or is it a copy?
        opinion_on: asks another library about a certificate.
        allow_work: as for :func:`load_verified`.

    Raises:
        TamperedError: if it does not match its own hashes or its guarantee does not follow.
        InputError: if it is neither.
        PlanMismatchError: if a ledger holds more than its plan declares.
    """
    if is_journal(path):
        if ledger is not None:
            raise InputError("--ledger is given for a ledger; give it only with a certificate.")
        if opinion_on is not None:
            raise InputError(
                "--second-opinion is given for a ledger; give it only with a certificate."
            )
        return _verify_ledger(path, anchor)
    if path.name.endswith(".dsse.json"):
        raise InputError(
            f"{files.shown(path)} is signed; say who must have signed it, with --key PUBLIC.pem."
        )
    certificate = load_verified(path, allow_work=allow_work)
    require_journal(certificate, ledger, anchor)
    return verification(certificate, opinion_on=opinion_on)


def verification(certificate: Certificate, *, opinion_on: Opinion | None = None) -> Verification:
    """Return what is to be said of a verified certificate."""
    proved = certificate.guarantee
    checked = certificate.checked or check_of(certificate)
    facts = {
        "subject": certificate.subject.name,
        "verdict": str(certificate.verdict),
        "epsilon": None if proved is None or proved.epsilon == math.inf else proved.epsilon,
        "delta": None if proved is None else proved.delta,
        "checked_epsilon": checked.epsilon,
        "checked": f"independently: the checker {checked}{_without_witness(certificate, checked)}",
        "plan_hash": certificate.plan.hash,
        "audits": len(certificate.audits),
    }
    audits = len(certificate.audits)
    it = "1 audit is" if audits == 1 else f"{audits} audits are"
    remark = f"{it} taken as stated and compared with claim and proof, not re-run."
    remarks = [remark] if audits else []
    if certificate.schema != SCHEMA_VERSION:
        remarks.append(
            f"the file is of {certificate.schema}, which does not say on what each premise "
            "rests; certify again to see that."
        )
    opinion = None if opinion_on is None else opinion_on(certificate)
    if opinion is not None and opinion.contradicts:
        remarks.append(opinion.reason)
    return Verification(
        "certificate",
        facts,
        tuple(remarks),
        opinion,
        unchecked=lacks_check(certificate),
        assumptions=certificate.assumptions,
    )


def _without_witness(certificate: Certificate, checked: CheckRecord) -> str:
    """Say why the checker may prove far less than the certificate states."""
    if certificate.witness is not None or certificate.checked is not None:
        return ""
    if checked.epsilon is None:
        without = certificate.claim is not None and certificate.claim.delta == 0
        return "; state a claim with a δ above 0, and certify again" if without else ""
    return ", by its simplest rules, because this certificate holds no witness for better ones"


def is_journal(path: Path) -> bool:
    """Tell whether a file is called, or begins, as a journal does, whose keys are in order."""
    if path.suffix == ".jsonl":
        return True
    with files.opened(path, what="file") as file:
        return file.read(200).startswith(f'{{"format":"{JOURNAL_FORMAT}"'.encode())


def read_ledger(path: Path, anchor: Path | None = None) -> JournalSummary:
    """A journal that its chain, its plan and its anchor allow."""
    return summarise_journal(path, anchor=None if anchor is None else FileAnchor(anchor))


def require_journal(
    certificate: Certificate, ledger: Path | None, anchor: Path | None
) -> JournalSummary | None:
    """The journal, if there is one, of the run that a certificate speaks of.

    Raises:
        TamperedError: naming what differs.
        InputError: if the certificate speaks of none, or an anchor has no journal.
    """
    if ledger is None:
        if anchor is not None:
            raise InputError("--anchor is given without a ledger; give --ledger too.")
        return None
    content = read_ledger(ledger, anchor)
    record = (certificate.run or {}).get("ledger")
    if record is None:
        raise InputError("the certificate mentions no ledger, so it cannot be compared with one.")
    stated = {
        "plan": certificate.plan.hash,
        "head": record.get("head"),
        "entries": record["entries"],
        "samplers": record["samplers"],
        "external": record.get("external", {}),
        "journal": record.get("journal", content.identifier),
        "lines": record.get("lines", content.lines),
    }
    found = {
        "plan": content.plan.hash,
        "head": content.head,
        "entries": content.releases,
        "samplers": content.samplers,
        "external": content.external,
        "journal": content.identifier,
        "lines": content.lines,
    }
    if (filtered := certificate.filtered) is not None:
        stated |= {"filter": replace(filtered, admitted={}), "admitted": dict(filtered.admitted)}
        charged = {at: content.account.charged(at) for at in filtered.admitted}
        found |= {"filter": content.filtered, "admitted": charged}
    for name, value in stated.items():
        if value != found[name]:
            either = "the ledger is incomplete, or belongs to another run"
            raise TamperedError(f"certificate and ledger differ in {name}: {either}.")
    return content


def _verify_ledger(path: Path, anchor: Path | None) -> Verification:
    content = read_ledger(path, anchor)
    remarks = []
    if content.cut:
        remarks.append(
            "the last line was cut off while being written; all lines before it are valid."
        )
    if not content.closed:
        remarks.append("the ledger was not closed: lines at its end may be missing.")
    account = content.account
    most = {at: account.most_for_one(at) for at in account.declared}
    facts = {
        "plan_hash": content.plan.hash,
        "releases": content.releases,
        "closed": content.closed,
        "most_for_one_unit": most,
    }
    for i in content.plan.invocations:
        ran = account.charged(i.at)
        if content.closed and ran < i.releases:
            remarks.append(f"{i.describe()} ran {ran} of {i.releases} declared times.")
    return Verification("ledger", facts, tuple(remarks))
