"""Running a subject through a ledger: its certificate, and what the owner of the data sees.

The certificate is for everybody, and the owner's part for the owner of the data alone.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpaudit.auditing import progress_bar
from dpaudit.base import files
from dpaudit.base.applications import closed_extensions
from dpaudit.base.chain import Durability
from dpaudit.base.errors import DpAuditError, InputError, OtherSubjectError, TamperedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.base.validate import shown
from dpaudit.certificate import Certificate, Severity, with_witness
from dpaudit.ledger import (
    Anchor,
    Budget,
    FileAnchor,
    FloatNoise,
    Ledger,
    summarise_journal,
    with_record,
)
from dpaudit.plan import Plan
from dpaudit.project.foreign import foreign, place_of
from dpaudit.project.sealed_subject import MADE_UP_ROWS, OpenSubject, on_made_up_rows
from dpaudit.project.subject import RunResult, source_of
from dpaudit.project.targets import Target, certified, find_target, parse_settings
from dpaudit.reporting import render_to
from dpaudit.reporting.text import visible
from dpaudit.sealed.table import is_made_up
from dpaudit.workflow.results import abridged, prepared, write_results
from dpaudit.workflow.sealing import NOT_SEALED, SealedRun, UnsealedError, is_sealable, sealed_run

if TYPE_CHECKING:
    from dpaudit.rehearsal.rehearse import RehearsalOutcome


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

_ANOTHER = "give another folder with -o."
OWNER = "owner/owner.json"
"""File of what the owner of the data alone may see, in a folder that nobody else may open."""


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
    sealed: bool = False,
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
        sealed: refuse what cannot be sealed, in place of running it in one process.

    Returns:
        The certificate with the results of the run, and the files. What the owner of the data alone
        may see is in the last of them, ``owner/owner.json``, which every run writes.

    Raises:
        InputError: if something is wrong with the input. A ledger stays if anything was released.
        BudgetExceededError: if the book has not that much left.
        UnsupportedError: if a deployment's noise has no exact sampler, or the extra is missing.
        PlanMismatchError: if the run is not what the plan declares, or releases nothing at all.
        TamperedError: if the ledger's file is not what the ledger wrote.
    """
    options = RunOptions(
        data, seed, float_noise, durability, anchor, rehearse, most, charging, witness
    )
    known = parse_settings(settings)
    reason = ""
    if is_sealable(name):
        try:
            return run_sealed(name, known, folder, options)
        except UnsealedError as error:
            reason = str(error)
        except OtherSubjectError:
            pass
    if sealed:
        why = (
            reason or f"{name:.80} is not a SealedSubject, and only such subjects can hold handles."
        )
        raise InputError(f"--sealed is given, but the run cannot be sealed: {why}")
    target = open_target(name, known, reason)
    if target.release is not None:
        raise InputError(f"{name} is a release file; run it with dpaudit release.")
    return run_target(target, name, folder, options)


def open_target(name: str, settings: Mapping[str, Any], reason: str = "") -> Target:
    """A target that runs in this process; a sealed subject for a reason alone, which is told.

    Raises:
        InputError: if it is a sealed subject and no reason is given.
    """
    target = find_target(name, settings)
    if not isinstance(target.subject, OpenSubject):
        return target
    if not reason:
        raise InputError(
            f"{name:.80} is a SealedSubject, but one has to run its file to see this; name "
            "SealedSubject in that file, so that its runs are sealed."
        )
    said = _found(NOT_SEALED, reason=reason)
    return replace(target, findings=(*target.findings, said))


@dataclass(frozen=True)
class RunOptions:
    """How a run is made; see :func:`run_subject`."""

    data: str | None = None
    seed: int | None = None
    float_noise: bool = False
    durability: Durability = Durability.PROCESS
    anchor: Path | None = None
    rehearse: bool = True
    most: int | None = None
    charging: Charging | None = None
    witness: bool | None = None

    def __post_init__(self) -> None:
        if self.seed is not None and self.float_noise:
            raise InputError("float_noise is given with a seed, which implies it; leave it out.")
        if self.charging is not None and (self.seed is not None or self.anchor is not None):
            raise InputError(
                "--book is given with --seed or --anchor; leave these out, because the book "
                "is the anchor and needs secret noise."
            )


@dataclass
class _Account:
    """What a run is charged to, and what keeps its head."""

    options: RunOptions
    target: Target
    journal: Path
    charge: Charge | None = None
    _certified: bool = False

    def begin(self) -> None:
        """Charge the plan, where a book keeps budgets."""
        self.require_certificate()  # what stops it stops the run, before it is charged
        charging = self.options.charging
        if charging is not None:
            self.charge = charging.begin(self.target.plan)

    def require_certificate(self) -> None:
        """Refuse a target of which no certificate can be made."""
        if not self._certified:
            certified(self.target)
            self._certified = True

    @property
    def anchor(self) -> Anchor | None:
        """What keeps the journal's head."""
        return self.charge if self.options.anchor is None else FileAnchor(self.options.anchor)

    @contextlib.contextmanager
    def unopened(self) -> Iterator[None]:
        """Give a charge back whose ledger cannot be opened; no file is removed, as it made none."""
        try:
            yield
        except BaseException:
            self._failed()
            raise

    def _failed(self) -> None:
        if self.options.charging is not None and self.charge is not None:
            self.options.charging.failed(self.charge, self.journal)

    @contextlib.contextmanager
    def kept(self, released: Callable[[], int], told: Callable[[], bool]) -> Iterator[None]:
        """Abandon the charge of a run that fails; what it had released stays on record.

        Args:
            released: how many releases it made.
            told: whether that was told by who made them: else the file can be another run's.
        """
        try:
            yield
        except BaseException as error:
            self._failed()
            made = released()
            if made == 0 and told():
                self.journal.unlink(missing_ok=True)
            elif made and isinstance(error, DpAuditError):
                raise type(error)(f"{error} {_kept(made, self.journal)}") from None
            raise

    def ran(self, certificate: Certificate) -> None:
        """Close the charge."""
        if self.options.charging is not None and self.charge is not None:
            self.options.charging.ran(self.charge, self.journal, certificate)


@dataclass(frozen=True)
class _Ran:
    """What a run left: results, the ledger's record, what was not released, the owner's file."""

    run: dict[str, Any]
    ledger: dict[str, Any]
    left: tuple[str, ...]
    owner: str
    data: str


def run_target(
    target: Target, name: str, folder: Path, options: RunOptions
) -> tuple[Certificate, tuple[Path, ...]]:
    """Run a target; as :func:`run_subject`, which finds it by its name."""
    if target.subject is None:
        raise InputError(f"{name} is a plan; only a subject can be run.")
    if target.release is not None:
        prepared(folder, made_up=options.data is not None)
    seed = options.seed
    problem_seed, algorithm_seed, noise_seed = np.random.SeedSequence(seed).spawn(3)
    data = source_of(target.subject, options.data)
    with foreign(name):
        problem = target.subject.load(data, np.random.default_rng(problem_seed))
    rehearsal = None
    if options.rehearse and target.subject.sees_rows:
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
            most=MOST_NEIGHBOURS if options.most is None else options.most,
        )
        if any(finding.severity is Severity.ERROR for finding in rehearsal.findings):
            return certified(target).with_rehearsal(rehearsal.record, rehearsal.findings), ()
    with _new_path(folder, "ledger.jsonl") as journal:
        account = _Account(options, target, journal)
        account.begin()
        planned = sum(each.releases for each in target.plan.invocations)
        with account.unopened():
            ledger = Ledger(
                target.plan,
                rng=None if seed is None else np.random.default_rng(noise_seed),
                noise=FloatNoise() if options.float_noise else None,
                journal=account.journal,
                durability=options.durability,
                anchor=account.anchor,
                budget=account.charge,
            )
        with account.kept(lambda: len(ledger), lambda: True):
            shown = progress_bar("releases", lambda: (len(ledger), planned))
            with contextlib.closing(ledger), foreign(name), shown:
                result = target.subject.run(problem, ledger, np.random.default_rng(algorithm_seed))
                if len(ledger) == 0:
                    ledger.check()
                run = _results(name, result)
        record = ledger_record(ledger, account.journal)
        ran = _Ran(run, record, tuple(ledger.left()), _for_owner(result), data)
        return _written(target, folder, account, ran, rehearsal)


@closed_extensions()
def run_sealed(
    name: str, settings: Mapping[str, Any], folder: Path, options: RunOptions
) -> tuple[Certificate, tuple[Path, ...]]:
    """Run a sealed subject whose code never holds the data; as :func:`run_subject`.

    Raises:
        UnsealedError: if this machine cannot seal it; nothing has been read then.
        OtherSubjectError: if it is no sealed subject.
    """
    made_up = options.data is not None and is_made_up(options.data)
    rows = None if options.data is None or made_up else Path(options.data).resolve()
    private = [folder.resolve(), *([] if rows is None else [rows])]
    with (
        sealed_run(name, settings, private, _say, rows, _load_renderers) as run,
        _new_path(folder, "ledger.jsonl") as journal,
    ):
        account = _Account(options, run.target, journal)
        ran = _ran_sealed(run, account, options.data if made_up else None)
        return _written(run.target, folder, account, ran, None, made_up=made_up)


def _load_renderers() -> None:
    """Import what a report is drawn by, which takes as long as the start of another process."""
    import jinja2  # noqa: F401
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401


def tried_on_made_up_rows(
    name: str, settings: Mapping[str, Any], data: str | None = None
) -> Target | None:
    """A sealed subject after a run on made-up rows, of which nothing but the seal is kept.

    Where this machine cannot seal, the run is made in this process, and a finding says so.

    Args:
        name: ``module:Object`` or ``FILE.py:Object``; of other targets None is returned.
        settings: of the subject's fields.
        data: ``synthetic N``.

    Raises:
        InputError: if data are no made-up rows, or the run does not end as it should.
    """
    if not is_sealable(name):
        return None
    options = RunOptions(MADE_UP_ROWS if data is None else data, seed=0)
    assert options.data is not None
    with tempfile.TemporaryDirectory(prefix="dpaudit-") as made:
        folder = Path(made)
        try:
            with sealed_run(name, settings, (folder,), _say) as run:
                _require_made_up(name, options.data)
                account = _Account(options, run.target, folder / "ledger.jsonl")
                ran = _ran_sealed(run, account, options.data)
        except OtherSubjectError:
            return None
        except UnsealedError as error:
            target = open_target(name, settings, str(error))
            if not isinstance(target.subject, OpenSubject):
                return None
            _require_made_up(name, options.data)
            target = replace(target, subject=on_made_up_rows(target.subject, options.data))
            run_target(target, name, folder, options)
            return target
    assert run.target.seal is not None
    left = (_found("less-than-declared", sentence=sentence) for sentence in ran.left)
    return replace(
        run.target,
        seal=replace(run.target.seal, made_up=options.data),
        findings=(*run.target.findings, *left),
    )


def _require_made_up(name: str, data: str) -> None:
    if not is_made_up(data):
        raise InputError(
            f"data is {shown(data)}, and {name:.80} is a sealed subject: it is tried only on "
            f"made-up rows, such as {MADE_UP_ROWS!r}; only dpaudit run reads its table."
        )


def _ran_sealed(run: SealedRun, account: _Account, data: str | None) -> _Ran:
    """Run the code of a sealed run that waits, and read its journal back.

    Args:
        run: that has declared its subject.
        account: what the run is charged to.
        data: ``synthetic N``; None for the table.
    """
    options, target = account.options, run.target
    run.load({"seed": options.seed, "data": data}, account.require_certificate)
    account.begin()
    order = {
        "float_noise": options.float_noise,
        "journal": str(account.journal.resolve()),
        "durability": str(options.durability),
        "account": account.anchor is not None,
        "budget": account.charge is not None,
    }
    with account.kept(lambda: _made(run, account.journal), lambda: run.releases is not None):
        said = run.go(order, account.charge or account.anchor)
    record = journal_record(
        account.journal,
        target.plan,
        releases=said["releases"],
        head=said["head"],
        seeded=said["seeded"],
        durability=options.durability,
    )
    owner = RunResult({}, owner=RunResult(said["owner"]))
    assert target.seal is not None
    source = data if data is not None else target.seal.source
    return _Ran(said["result"], record, tuple(said["left"]), _for_owner(owner), source)


def _made(run: SealedRun, journal: Path) -> int:
    """How many releases were made: as the custodian told, or else as its own journal holds."""
    if run.releases is not None:
        return run.releases
    return summarise_journal(journal).releases if run.began and journal.exists() else 0


def _say(text: str) -> None:
    """Show what the code prints: it follows from releases and public facts."""
    sys.stderr.write(visible(text))
    sys.stderr.flush()


def _written(
    target: Target,
    folder: Path,
    account: _Account,
    ran: _Ran,
    rehearsal: RehearsalOutcome | None,
    *,
    made_up: bool = False,
) -> tuple[Certificate, tuple[Path, ...]]:
    """The certificate of a run, and the files that were written."""
    run, record = ran.run, ran.ledger
    run["summary"] = {"data": ran.data, **run.get("summary", {}), "releases": record["entries"]}
    if target.seal is not None:
        run["summary"]["data"] = ran.data  # no word of the code's: it must be what the seal says
    run.pop("training", None)  # what the code says of itself lifts nothing
    subject = target.subject
    if target.release is not None and subject is not None:
        made_up = ran.data != subject.default_data
    rows = [_found("made-up-data", data=ran.data)] if made_up else []
    # As one that stops early on what was released.
    left = (_found("less-than-declared", sentence=sentence) for sentence in ran.left)
    certificate = certified(target, extra=(*rows, *left))
    certificate = with_witness(certificate, wanted=account.options.witness)
    kept_rows = {} if target.release is None else {"results": abridged(run["results"])}
    certificate = with_record(certificate, record, run | kept_rows, account.options.seed)
    if rehearsal is not None:
        certificate = certificate.with_rehearsal(rehearsal.record, rehearsal.findings)
    tables: tuple[Path, ...] = ()
    if target.release is not None:
        tables = write_results(run["results"], folder, made_up=made_up)
    written = (*tables, account.journal, *save(certificate, folder))
    account.ran(certificate)
    whole = ran.owner.encode(errors="replace")
    return certificate, (*written, files.write(folder / OWNER, whole, private=True))


def _for_owner(result: Any) -> str:
    """What the owner of the data alone may see of a result, as JSON: of any result, even of none.

    All of it may follow from private values, also which class a result has. So nothing is raised or
    printed here: what JSON cannot hold is written as text, and of what fails the kind and place.
    """
    nothing: dict[str, Any] = {"summary": {}, "series": {}}
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            owner = getattr(result, "owner", None)
            said = json.dumps({} if owner is None else owner.to_dict(), default=str)
        told = nothing | json.loads(said, parse_constant=str)
        record = told if _is_record(told) else nothing | {"summary": {"result": told}}
        return files.pretty_json(record)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # whatever foreign code raises
        said = f"{type(error).__name__}{place_of(error)}"
        return files.pretty_json(nothing | {"summary": {"error": said}})


def _kept(releases: int, journal: Path) -> str:
    kept = f"{files.shown(journal)} keeps the record."
    return f"Earlier releases stay charged (releases: {releases}): {kept}"


def _results(name: str, result: Any) -> dict[str, Any]:
    """The record of a run's results, which the subject's author wrote."""
    what = f"the result of {name}, a {type(result).__name__:.40},"
    if not callable(getattr(result, "to_dict", None)):
        raise InputError(f"{what} has no to_dict; return a RunResult, or something with to_dict.")
    with foreign(name):
        record = result.to_dict()
    summary = record.get("summary", {}) if isinstance(record, Mapping) else None
    if not isinstance(summary, Mapping):
        raise InputError(f"the to_dict of {what} must be a table, and so must its summary.")
    try:
        plain: dict[str, Any] = json.loads(files.canonical_json(dict(record)))
    except (TypeError, ValueError, RecursionError):
        raise InputError(
            f"{what} holds something other than finite numbers, texts, lists and tables."
        ) from None
    return plain


def ledger_record(ledger: Ledger, path: Path) -> dict[str, Any]:
    """Return what a certificate says of a closed ledger; as :func:`journal_record`."""
    if ledger.journal is None:
        raise TamperedError("the ledger wrote no file.")
    return journal_record(
        path,
        ledger.plan,
        releases=len(ledger),
        head=ledger.journal.head,
        seeded=ledger.seeded,
        durability=ledger.journal.durability,
    )


def journal_record(
    path: Path, plan: Plan, *, releases: int, head: str, seeded: bool, durability: Durability
) -> dict[str, Any]:
    """Return what a certificate says of a closed ledger, after its file was read back.

    The file is believed, not the program that ran: it must hold a whole chain of the same plan, as
    many releases as the ledger counted, and no more than the plan admits.

    Raises:
        TamperedError: if it does not.
        PlanMismatchError: if it charges more than the plan declares.
    """
    content = summarise_journal(path)
    if not content.closed or content.releases != releases:
        raise TamperedError(
            f"the ledger's file holds {content.releases} releases but the ledger made "
            f"{releases}; somebody else wrote to the file."
        )
    if content.plan != plan or content.head != head:
        raise TamperedError("the ledger's file was replaced by another one.")
    return {
        "journal": content.identifier,
        "lines": content.lines,
        "head": content.head,
        "entries": content.releases,
        "samplers": dict(content.samplers),
        "seeded": seeded,
        "durability": str(durability),
        **({"external": dict(content.external)} if content.external else {}),
    }


@contextlib.contextmanager
def _new_path(folder: Path, name: str) -> Iterator[Path]:
    """A path in the folder that does not exist yet: a ledger is never overwritten.

    The folder and the owner's in it are made if need be; if what is done with them fails and
    nothing is in them, they go.
    """
    path, private = folder / name, (folder / OWNER).parent
    made = [each for each in (private, folder, *folder.parents) if not each.exists()]
    try:
        _make(folder)
        if path.exists():
            raise InputError(f"{files.shown(path)} exists already; {_ANOTHER}")
        _make(private, mode=0o700)
        if private not in made and (private.is_symlink() or not _is_closed(private)):
            raise InputError(f"{files.shown(private)} exists, and is open to others; {_ANOTHER}")
        yield path
    except BaseException:
        with contextlib.suppress(OSError):  # it holds something
            for each in made:
                each.rmdir()
        raise


def _make(folder: Path, mode: int = 0o777) -> None:
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"output {files.shown(folder)} cannot be made: {error.strerror}."
        ) from None


def _is_closed(folder: Path) -> bool:
    """Whether its owner alone may open it, as far as this system tells."""
    return os.name != "posix" or not folder.stat().st_mode & 0o077


def save(certificate: Certificate, folder: Path) -> tuple[Path, Path]:
    """Write a certificate and its report into a folder."""
    saved = certificate.save(folder / "certificate.json")
    return saved, render_to(certificate, folder / "report.html")
