"""The whole way once, on real house prices."""

from __future__ import annotations

from pathlib import Path

from dpaudit.auditing import Execution, audit_subject, progress_bar
from dpaudit.certificate import Certificate
from dpaudit.project.targets import find_subject, parse_settings
from dpaudit.reporting import render_to
from dpaudit.workflow.running import OWNER, run_subject, save, with_owner

DEMO_SUBJECT = "private_bo.local:LDPMoMAGPUCB"
"""Looked up by name: the toolkit never imports the algorithms."""

DEMO_SETTINGS = (
    "epsilon=4",
    "steps=10000",
    "reward_bound=0.7",
    "noise_bound=0.7",
    "plays_per_epoch=5",
    "width_multiplier=0.03",
)
"""Prices scaled to ±0.7 by public constants; k and the width as experiments choose them."""

FEW_NEIGHBOURS = 1
"""A demonstration is not to take long; dpaudit check tries them all."""

FOR_OWNER = "owner/for-owner.html"
"""The report with what the owner of the data alone may see, such as the regret."""


def run_demo(folder: Path, seed: int) -> tuple[Certificate, tuple[Path, ...]]:
    """Sellers report prices under local privacy; the dearest neighbourhood is sought.

    Certifies and rehearses the subject, runs it on real prices, attacks the mechanism that every
    seller's price passes, and writes ledger, certificate and report, and one more report for the
    owner of the data, whose results follow from no release.

    Raises:
        InputError: if the folder holds a ledger that is not the demo's own, or cannot be written.
    """
    for name in ("ledger.jsonl", "certificate.json", "report.html", OWNER, FOR_OWNER):
        (folder / name).unlink(missing_ok=True)
    certificate, files = run_subject(
        DEMO_SUBJECT, DEMO_SETTINGS, "taipei", seed, folder, most=FEW_NEIGHBOURS
    )
    if not files:
        return certificate, ()
    subject = find_subject(DEMO_SUBJECT, parse_settings(DEMO_SETTINGS))
    with progress_bar("attack") as progress:
        drawn = Execution(runs=10_000, seed=seed, progress=progress)
        audits = [
            audit_subject(subject, pair, claim=certificate.claim, execution=drawn)
            for pair in subject.audit_pairs()
        ]
    certificate = certificate.with_audits(audits)
    private = folder / OWNER
    report = render_to(with_owner(certificate, private), folder / FOR_OWNER)
    return certificate, (files[0], *save(certificate, folder), private, report)
