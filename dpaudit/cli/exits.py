"""Exit codes."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit.certificate import Certificate, SecondOpinion


class Exit(IntEnum):
    """The answer of a command to pipelines."""

    CERTIFIED = 0
    REFUTED = 1
    UNPROVEN = 2
    INPUT = 3
    INTERRUPTED = 130


class InterruptedRunError(Exception):
    """Ctrl-C, with what it leaves."""


def exit_of(certificate: Certificate) -> Exit:
    """The exit code of a certificate: the worst that it says."""
    from dpaudit.certificate import Verdict  # takes half a second, which --help need not wait for

    if certificate.verdict is Verdict.REFUTED or certificate.claim_exceeded:
        return Exit.REFUTED
    if certificate.verdict is Verdict.UNPROVEN:
        return Exit.UNPROVEN
    return Exit.CERTIFIED


def exit_of_opinion(opinion: SecondOpinion | None) -> Exit:
    """The exit code of a verified certificate: what another library contradicts is open."""
    return Exit.UNPROVEN if opinion is not None and opinion.contradicts else Exit.CERTIFIED
