"""From a name to a certificate."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.certificate import Certificate, Finding, certify
from dpaudit.project.targets import Target, find_target, parse_settings

__all__ = ["certified", "certify_target"]


def certify_target(
    name: str, settings: Sequence[str], delta: float | None, accountant: str
) -> Certificate:
    """Certify a subject or a plan file.

    Raises:
        InputError: if the name, a setting or δ is wrong.
    """
    return certified(find_target(name, parse_settings(settings)), delta, accountant)


def certified(
    target: Target,
    delta: float | None = None,
    accountant: str = "best",
    extra: Sequence[Finding] = (),
) -> Certificate:
    """The certificate of a target, with further findings."""
    return certify(
        target.plan,
        subject=target.record,
        claim=target.claim,
        delta=delta,
        accountant=accountant,
        findings=(*target.findings, *extra),
        not_covered=target.not_covered,
    )
