"""What the owner of the data alone may see of a run, beside the certificate that all may see.

Running a subject through a ledger.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dpaudit.auditing import progress_bar
from dpaudit.base import files
from dpaudit.base.chain import Durability
from dpaudit.base.errors import DpAuditError, InputError, TamperedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Certificate, Finding, Severity, with_witness
from dpaudit.certificate.findings import (
    FLOAT_NOISE,
    float_samplers,
    is_drawn_exactly,
)
from dpaudit.ledger import (
    Anchor,
    Budget,
    FileAnchor,
    FloatNoise,
    Ledger,
    summarise_journal,
)
from dpaudit.plan import Plan
from dpaudit.project.foreign import foreign
from dpaudit.project.targets import Target, find_target, parse_settings
from dpaudit.reporting import render_to
from dpaudit.workflow.certifying import certified
from dpaudit.workflow.results import abridged, prepared, write_results


def with_owner(certificate: Certificate, path: Path) -> Certificate:
    """The certificate with the owner's results, for a report that is the owner's alone.

    Raises:
        InputError: if the certificate has no run, or the file is not what ``dpaudit run`` wrote.
    """
    if certificate.run is None:
        raise InputError("owner is given for a certificate without a run; leave it out.")
    record = files.load_json(path, what="owner's file")
    if not _is_record(record):
        raise InputError(
            f"owner's file {files.shown(path)} must hold a summary and series of numbers, as "
            "dpaudit run writes them."
        )
    return replace(certificate, owner=record)


def _is_record(value: object) -> bool:
    """Tell whether it is a summary beside curves of numbers."""
    if not isinstance(value, dict) or value.keys() != {"summary", "series"}:
        return False
    if not all(isinstance(part, Mapping) for part in value.values()):
        return False
    curves = value["series"].values()
    return all(isinstance(each, list) and all(map(_number, each)) for each in curves)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_found = FindingTable(__name__)

OWNER = "owner.json"
"""File of what the owner of the data alone may see."""


class Charge(Budget, Anchor, Protocol):
    """The account that admits the releases of one run, and keeps the head of its journal."""


class Charging(Protocol):
    """Where a run is charged before it begins, such as a book of budgets."""

    def begin(self, plan: Plan) -> Charge:
        """Charge a plan that is to run now; raises BudgetExceededError where it may not."""

    def ran(self, charge: Any, journal: Path, certificate: Certificate) -> None:
        """Close what was charged, with journal and certificate."""

    def failed(self, charge: Any, journal: Path) -> None:
        """Abandon it."""


def run_subject(
    name: str,
    settings: Sequence[str],
    data: str | None,
    seed: int | None,
    folder: Path,
    *,
    float_noise: bool = False,
    durability: Durability = Durability.PROCESS,
    anchor: Path | None = None,
    rehearse: bool = True,
    most: int | None = None,
    charging: Charging | None = None,
    witness: bool | None = None,
) -> tuple[Certificate, tuple[Path, ...]]:
    """Rehearse a subject, run it through a ledger, and write ledger, certificate and report.

    The rehearsal is made on the same data, and nothing of it is published. If it finds an error,
    nothing is released at all: the certificate then says what was found.

    With a seed it is an experiment, whose noise numpy draws. Without one it is a deployment, whose
    noise comes from exact samplers, or by explicit choice from numpy with the system's entropy.

    Args:
        name: ``module:Object``.
        settings: ``key=value`` texts.
        data: name or path of the data, as the subject understands it; its default for None.
        seed: of noise and algorithm; None draws fresh entropy, as a deployment must.
        folder: where the files go; made if need be.
        float_noise: draw the noise of a deployment in floating point.
        durability: what a line of the ledger survives before its noise is drawn.
        anchor: file, on another disk, that keeps the head of the ledger.
        rehearse: put the code to the test first.
        most: neighbours that are tried even where runs take long; a rehearsal's own without it.
        charging: where a deployment is charged, before it releases anything.
        witness: whether the independent checker proves it too; None where that is cheap.

    Returns:
        The certificate with the results of the run, and the files. What the owner of the data alone
        may see is in the last of them, ``owner.json``, if there is anything.

    Raises:
        InputError: if something is wrong with the input. A ledger stays if anything was released.
        BudgetExceededError: if the book has not that much left.
        UnsupportedError: if a deployment's noise has no exact sampler, or the extra is missing.
        PlanMismatchError: if the run is not what the plan declares, or releases nothing at all.
        TamperedError: if the ledger's file is not what the ledger wrote.
    """
    target = find_target(name, parse_settings(settings))
    if target.release is not None:
        raise InputError(f"{name} is a release file; run it with dpaudit release.")
    return run_target(
        target,
        name,
        data,
        seed,
        folder,
        float_noise=float_noise,
        durability=durability,
        anchor=anchor,
        rehearse=rehearse,
        most=most,
        charging=charging,
        witness=witness,
    )


def run_target(
    target: Target,
    name: str,
    data: str | None,
    seed: int | None,
    folder: Path,
    *,
    float_noise: bool = False,
    durability: Durability = Durability.PROCESS,
    anchor: Path | None = None,
    rehearse: bool = True,
    most: int | None = None,
    charging: Charging | None = None,
    witness: bool | None = None,
) -> tuple[Certificate, tuple[Path, ...]]:
    """Run a target; as :func:`run_subject`, which finds it by its name."""
    if target.subject is None:
        raise InputError(f"{name} is a plan; only a subject can be run.")
    if target.release is not None:
        prepared(folder)
    if seed is not None and float_noise:
        raise InputError("float_noise is given with a seed, which implies it; leave it out.")
    if charging is not None and (seed is not None or anchor is not None):
        raise InputError("--book goes with neither --seed nor --anchor: it is itself the anchor.")
    problem_seed, algorithm_seed, noise_seed = np.random.SeedSequence(seed).spawn(3)
    data = target.subject.default_data if data is None else data
    with foreign(name):
        problem = target.subject.load(data, np.random.default_rng(problem_seed))
    rehearsal = None
    if rehearse and target.release is None:
        # Loaded here: a release goes without the statistics of a rehearsal, which load slowly.
        from dpaudit.rehearsal.rehearse import MOST_NEIGHBOURS
        from dpaudit.workflow.rehearsing import rehearse_on

        rehearsal = rehearse_on(
            target.subject,
            name,
            problem,
            data,
            plan=target.plan,
            seed=seed or 0,
            most=MOST_NEIGHBOURS if most is None else most,
        )
        if any(finding.severity is Severity.ERROR for finding in rehearsal.findings):
            return certified(target).with_rehearsal(rehearsal.record, rehearsal.findings), ()
    journal = _new_path(folder, "ledger.jsonl")
    if charging is not None:
        certified(target)  # what stops a certificate stops the run, before it is charged
    reserved = None if charging is None else charging.begin(target.plan)
    planned = sum(each.releases for each in target.plan.invocations)
    ledger = Ledger(
        target.plan,
        rng=None if seed is None else np.random.default_rng(noise_seed),
        noise=FloatNoise() if float_noise else None,
        journal=journal,
        durability=durability,
        anchor=reserved if anchor is None else FileAnchor(anchor),
        budget=reserved,
    )
    try:
        shown = progress_bar("releases", lambda: (len(ledger), planned))
        with contextlib.closing(ledger), foreign(name), shown:
            result = target.subject.run(problem, ledger, np.random.default_rng(algorithm_seed))
            if len(ledger) == 0:
                ledger.check()
            run = _results(name, result)
    except BaseException as error:
        if charging is not None and reserved is not None:
            charging.failed(reserved, journal)
        if len(ledger) == 0:  # what was released stays on record
            journal.unlink(missing_ok=True)
        elif isinstance(error, DpAuditError):
            raise type(error)(f"{error} {_kept(ledger, journal)}") from None
        raise
    record = ledger_record(ledger, journal)
    run["summary"] = {"data": data, **run.get("summary", {}), "releases": len(ledger)}
    run.setdefault("series", {})
    # As one that stops early on what was released.
    left = (_found("less-than-declared", sentence=sentence) for sentence in ledger.left())
    made_up = target.release is not None and data != target.subject.default_data
    rows = [_found("made-up-data", data=data)] if made_up else []
    certificate = certified(target, extra=(*rows, *_noise_findings(record), *left))
    if is_drawn_exactly({"ledger": record}):
        kept = tuple(each for each in certificate.findings if each.rule != FLOAT_NOISE)
        certificate = replace(certificate, findings=kept)
    certificate = with_witness(certificate, wanted=witness)
    certificate = certificate.with_run(run | {"ledger": record}, seed)
    if rehearsal is not None:
        certificate = certificate.with_rehearsal(rehearsal.record, rehearsal.findings)
    tables: tuple[Path, ...] = ()
    if target.release is not None:
        tables = write_results(run["results"], folder, made_up=made_up)
        run["results"] = abridged(run["results"])
    written = (*tables, journal, *save(certificate, folder))
    if charging is not None and reserved is not None:
        charging.ran(reserved, journal, certificate)
    owner = getattr(result, "owner", None)  # a result may be of any class with to_dict
    if owner is None:
        return certificate, written
    private = files.pretty_json(_results(f"{name} for its owner", owner))
    if target.release is None:
        return certificate, (*written, files.write(folder / OWNER, private))
    return certificate, (*written, _kept_apart(folder / "owner", private))


def _kept_apart(folder: Path, private: str) -> Path:
    """What the owner alone may see, in a folder of its own that nobody else may open."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    path = files.write(folder / OWNER, private)
    path.chmod(0o600)
    return path


def _kept(ledger: Ledger, journal: Path) -> str:
    made = "1 release" if len(ledger) == 1 else f"{len(ledger)} releases"
    return f"Before that {made} left and stay charged: {files.shown(journal)} keeps the record."


def _results(name: str, result: Any) -> dict[str, Any]:
    """The record of a run's results, which the subject's author wrote."""
    what = f"the result of {name}, a {type(result).__name__:.40},"
    if not callable(getattr(result, "to_dict", None)):
        raise InputError(f"{what} has no to_dict; return a RunResult, or what has one.")
    with foreign(name):
        record = result.to_dict()
    summary = record.get("summary", {}) if isinstance(record, Mapping) else None
    if not isinstance(summary, Mapping):
        raise InputError(f"{what} is not written as a table, whose summary is one.")
    try:
        plain: dict[str, Any] = json.loads(files.canonical_json(dict(record)))
    except (TypeError, ValueError, RecursionError):
        raise InputError(
            f"{what} holds more than finite numbers, texts, lists and tables."
        ) from None
    return plain


def ledger_record(ledger: Ledger, path: Path) -> dict[str, Any]:
    """Return what a certificate says of a closed ledger, after its file was read back.

    The file is believed, not the program that ran: it must hold a whole chain of the same plan, as
    many releases as the ledger counted, and no more than the plan admits.

    Raises:
        TamperedError: if it does not.
        PlanMismatchError: if it charges more than the plan declares.
    """
    content = summarise_journal(path)
    if not content.closed or content.releases != len(ledger):
        raise TamperedError(
            f"the ledger's file holds {content.releases} releases and the ledger made "
            f"{len(ledger)}; somebody else wrote to one of them."
        )
    if content.plan != ledger.plan or ledger.journal is None or content.head != ledger.journal.head:
        raise TamperedError("the ledger's file is not the one that the ledger wrote.")
    return {
        "journal": content.identifier,
        "lines": content.lines,
        "head": content.head,
        "entries": content.releases,
        "samplers": dict(content.samplers),
        "seeded": ledger.seeded,
        "durability": str(ledger.journal.durability),
        **({"external": dict(content.external)} if content.external else {}),
    }


def _new_path(folder: Path, name: str) -> Path:
    """A path in the folder that does not exist yet: a ledger is never overwritten."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"output {files.shown(folder)} cannot be made: {error.strerror}."
        ) from None
    path = folder / name
    if path.exists():
        raise InputError(f"{files.shown(path)} exists already; give another folder with -o.")
    return path


def save(certificate: Certificate, folder: Path) -> tuple[Path, Path]:
    """Write a certificate and its report into a folder."""
    saved = certificate.save(folder / "certificate.json")
    return saved, render_to(certificate, folder / "report.html")


def _noise_findings(record: Mapping[str, Any]) -> Iterator[Finding]:
    """Tell how the noise of a run was drawn, where that is no deployment's way."""
    drawn = float_samplers(record)
    if record["seeded"]:
        yield _found("seeded-noise")
    elif drawn:
        yield _found("float-sampler", sampler=drawn[0])
    for sampler in record.get("external", ()):
        yield _found("noise-drawn-elsewhere", sampler=sampler)
