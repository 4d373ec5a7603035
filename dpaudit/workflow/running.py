"""Running a subject through a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpaudit.certificate import Certificate, Finding, Severity
from dpaudit.certificate.findings import FLOAT_NOISE
from dpaudit.errors import InputError
from dpaudit.ledger import Ledger, SecureNoise
from dpaudit.project.targets import find_target, parse_settings
from dpaudit.workflow.certifying import certified

__all__ = ["run_subject", "save"]


def run_subject(
    name: str,
    settings: Sequence[str],
    data: str | None,
    seed: int | None,
    folder: Path,
    *,
    secure: bool = False,
) -> tuple[Certificate, tuple[Path, ...]]:
    """Run a subject through a ledger; write ledger, certificate and report.

    Args:
        name: ``module:Object``.
        settings: ``key=value`` texts.
        data: name or path of the data, as the subject understands it; its default for None.
        seed: of noise and algorithm; None draws fresh entropy, as a deployment must.
        folder: where the files go; made if need be.
        secure: draw the noise from exact samplers (extra ``secure``), which take no seed.

    Returns:
        The certificate with the results of the run, and the files.

    Raises:
        InputError: if something is wrong with the input. A ledger stays if anything was released.
        PlanMismatchError: if the run is not what the plan declares.
    """
    target = find_target(name, parse_settings(settings))
    if target.subject is None:
        raise InputError(f"{name} is a plan; only a subject can be run.")
    problem_seed, algorithm_seed, noise_seed = np.random.SeedSequence(seed).spawn(3)
    data = target.subject.default_data if data is None else data
    problem = target.subject.load(data, np.random.default_rng(problem_seed))
    certificate = certified(target, extra=() if secure else _seed_finding(seed))
    if secure:
        kept = tuple(each for each in certificate.findings if each.rule != FLOAT_NOISE)
        certificate = replace(certificate, findings=kept)
    journal = _fresh(folder, "ledger.jsonl")
    ledger = Ledger(
        target.plan,
        rng=None if secure or seed is None else np.random.default_rng(noise_seed),
        journal=journal,
        noise=SecureNoise() if secure else None,
    )
    try:
        with ledger:
            result = target.subject.run(problem, ledger, np.random.default_rng(algorithm_seed))
    except InputError:
        ledger.close()
        if len(ledger) == 0:  # what was released stays on record
            journal.unlink(missing_ok=True)
        raise
    run = result.to_dict()
    run["summary"] = {"data": data, **run["summary"], "releases": len(ledger)}
    certificate = replace(certificate, run=run, seed=seed)
    return certificate, (journal, *save(certificate, folder))


def _fresh(folder: Path, name: str) -> Path:
    """A path in the folder that does not exist yet: a ledger is never overwritten."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"output {str(folder)!r} cannot be made: {error.strerror}.") from None
    path = folder / name
    if path.exists():
        raise InputError(f"{str(path)!r} exists already; give another folder with -o.")
    return path


def save(certificate: Certificate, folder: Path) -> tuple[Path, Path]:
    """Write a certificate and its report into a folder."""
    from dpaudit.reporting import render_to

    saved = certificate.save(folder / "certificate.json")
    return saved, render_to(certificate, folder / "report.html")


def _seed_finding(seed: int | None) -> tuple[Finding, ...]:
    if seed is None:
        return ()
    return (
        Finding(
            "seeded-noise",
            Severity.WARNING,
            "The noise of this run came from a stated seed; whoever has it can undo the noise.",
            "Seed experiments only; leave the seed out where real data are released.",
        ),
    )
