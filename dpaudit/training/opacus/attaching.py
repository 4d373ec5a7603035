"""Trainings with opacus: every noisy step goes through a ledger and into a certificate.

Three lines beside the usual ones::

    ledger = Ledger(Plan.dp_sgd(noise_multiplier=1.1, sample_rate=1 / len(loader), epochs=3))
    training = attach(engine, ledger, expected_batch_size=64)  # before engine.make_private(...)
    ...                                        # train as always
    certificate = training.certificate(delta=1e-5)

What is recorded is the moment at which opacus adds its noise: accumulated and virtual steps count
once, skipped steps and steps that fail before the noise not at all; a step that fails while its
noise is drawn stays charged. A step that the plan does not
declare, that comes too often, or after the ledger was closed, is refused before its noise is drawn,
so the parameters stay as they were. The step hook of the optimizer stays free.

A subject that trains can be rehearsed if nothing but noise comes from torch's own generator: seed
the initial weights, and the ``generator`` of the ``DataLoader`` that draws the batches, from the
``rng`` of ``run``. Under zero-out a neighbour must hold a row that adds no gradient, so define
``neighbours``.

A training that is resumed from a checkpoint goes on with :meth:`Ledger.resume
<dpaudit.ledger.Ledger.resume>`; steps taken again count again, and how batches of earlier steps
were drawn is not known. ``docs/training.md`` says more.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

from opacus import PrivacyEngine

from dpaudit.base import validate
from dpaudit.base.errors import DpAuditError, InputError, PlanMismatchError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Certificate, Finding, Severity, SubjectRecord
from dpaudit.ledger import Ledger
from dpaudit.plan import ZeroOut
from dpaudit.project.own_files import combined_hash, is_of_author, own_files
from dpaudit.training.certifying import OF_OTHERS, LedgerTraining, Wanted
from dpaudit.training.declared import invocations_at, is_correlated, require_unit
from dpaudit.training.opacus.batches import watch
from dpaudit.training.opacus.clipping import GhostSums
from dpaudit.training.opacus.findings import (
    NOT_COVERED,
    batch_findings,
    optimizer_findings,
    without_amplification,
)
from dpaudit.training.opacus.loaders import PoissonLoader, UserSums
from dpaudit.training.opacus.optimizer import (
    CorrelatedOptimizer,
    ObservedOptimizer,
    RemoteLedger,
    SharedOptimizer,
    from_all,
    from_first,
    is_follower,
)
from dpaudit.training.opacus.side_effects import Inputs
from dpaudit.training.opacus.step import (
    ObservedStep,
    clips_adaptively,
    clips_in_the_loss,
    explain_failures,
    is_distributed,
    require_supported,
)

_HELD = "_opacus_training"
"""Where a ledger holds its training, so that no attachment is forgotten with its result."""


def attach(
    target: Any,
    ledger: Ledger | None,
    data_loader: Any = None,
    *,
    at: str | Sequence[str] = "gradient",
    expected_batch_size: float | None = None,
) -> Training:
    """Record the noisy steps of an opacus training in a ledger.

    Args:
        target: a ``PrivacyEngine`` before ``make_private``, which then attaches what it makes; or
            an optimizer that ``make_private`` returned.
        ledger: of a plan as :meth:`Plan.dp_sgd <dpaudit.plan.Plan.dp_sgd>` makes it; of several
            processes, in process 0 alone: the others give None and ask that one. All then attach,
            check and certify together.
        data_loader: the loader that the optimizer's batches come from. Without it no claim of
            sampling is proved.
        at: label of the plan's invocations; for an engine that makes several optimizers one label
            each, in their order.
        expected_batch_size: a public number to divide the noisy sums by, in place of opacus' own,
            which follows from the size of the data.

    Returns:
        The training; one and the same for all that is attached to one ledger.

    Raises:
        InputError: if the target is neither, is attached already, or the plan has no such label.
        UnsupportedError: if the optimizer is of a sharded model, clips by layer in several
            processes, or clips adaptively under zero-out.
    """
    remote = RemoteLedger() if ledger is None and is_follower() else None
    if remote is not None:
        ledger = cast(Ledger, remote)
    elif not isinstance(ledger, Ledger):
        raise InputError(f"ledger is {ledger!r:.60}; it must be a Ledger.")
    if expected_batch_size is not None:
        validate.positive(expected_batch_size=expected_batch_size)
    training = vars(ledger).get(_HELD) or Training(ledger, remote)
    if isinstance(target, PrivacyEngine):
        if data_loader is not None:
            raise InputError("data_loader is given, but the engine makes its own; leave it out.")
        training._attach_engine(target, at, expected_batch_size)
    else:
        if not isinstance(at, str):
            raise InputError(f"at is {at!r:.60}; give one label for one optimizer.")
        training._attach(target, data_loader, at, expected_batch_size)
    vars(ledger)[_HELD] = training
    return training


class Training(LedgerTraining):
    """A training that a ledger watches. Made by :func:`attach`.

    >>> from dpaudit import Ledger, Plan
    >>> plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.1, steps=5)
    >>> Training(Ledger(plan)).epsilon(1e-5)
    0.0
    """

    usual_name = "opacus training"
    not_covered = NOT_COVERED
    observes_opacus = True

    def __init__(self, ledger: Ledger, remote: RemoteLedger | None = None) -> None:
        self.ledger = ledger
        self._remote = remote  # the same, where it is that of another process
        self._optimizers: list[ObservedOptimizer] = []
        self._engines: list[tuple[PrivacyEngine, int]] = []
        self._shared = False  # among processes
        self._code = _running_code()

    @property
    def steps(self) -> tuple[ObservedStep, ...]:
        """Noisy steps of this process, optimizer by optimizer; their batch sizes are private."""
        return tuple(step for each in self._optimizers for step in each.steps)

    def check(self) -> None:
        """Compare what ran with what was declared, at most, and with what opacus counted.

        Raises:
            PlanMismatchError: naming the first difference.
        """
        if self._remote is not None:  # it is compared where the ledger is
            return
        if not self.ledger.closed:
            self.ledger.check()
        for engine, before in self._engines:
            counted = _accounted(engine) - before
            # With steps that were resumed: an engine's checkpoint brings their account along.
            recorded = self._charged(engine)
            if counted > recorded:
                raise PlanMismatchError(
                    f"opacus accounted for {counted} steps and the ledger recorded {recorded}; "
                    "let every step go through the attached optimizers."
                )

    def findings(self) -> tuple[Finding, ...]:
        """Return what a reader of the certificate must know of this training, each said once."""
        found: list[Finding] = []
        for each in self._optimizers:
            found += batch_findings(each.label, each.declared, each.stream, each.steps)
            found += optimizer_findings(each)
        return tuple(dict.fromkeys(found))

    def _charged(self, engine: Any = None) -> int:
        """Count steps in the ledger, which may hold other releases of the training too."""
        own = [each for each in self._optimizers if engine is None or each.engine is engine]
        return sum(each.charged() for each in own)

    def _certified(self, wanted: Wanted) -> Certificate:
        return self._together(wanted) if self._shared else self._made(wanted)

    def _together(self, wanted: Wanted) -> Certificate:
        """Return the certificate that process 0 makes, with what all of them found."""
        seeds = [each.stream.seed() for each in self._optimizers if each.stream is not None]
        found, drawn = zip(*from_all((self.findings(), seeds)), strict=True)
        others = [finding for each in found[1:] for finding in each]
        if any(len(set(alike)) < len(alike) for alike in zip(*drawn, strict=False)):
            others.append(FindingTable(__name__)("processes-draw-alike"))
        made: Any = None
        if not is_follower():
            try:
                made = self._made(wanted, others)
            except DpAuditError as error:
                made = error
        made = from_first(made)
        if isinstance(made, DpAuditError):
            raise made
        return cast(Certificate, made)

    def _made(self, wanted: Wanted, of_others: Sequence[Finding] = ()) -> Certificate:
        self.check()
        own = tuple(dict.fromkeys((*self.findings(), *of_others)))
        facts = {each.label: each.configuration() for each in self._optimizers}
        subject = SubjectRecord(wanted.name, facts, *self._code)
        steps = max(self._charged(), len(self.steps))
        declared = [one for each in self._optimizers for one in each.declared]
        summary = {"noisy_steps": steps}
        certificate = self.recorded(wanted, subject, own, summary, declared=declared)
        beside = any(each.rule in OF_OTHERS for each in certificate.findings)
        if beside or not any(each.severity is Severity.ERROR for each in own):
            return certificate
        instead = without_amplification(self._optimizers, certificate.guarantee)
        return replace(certificate, findings=(*certificate.findings, *instead))

    def _attach(
        self,
        optimizer: Any,
        data_loader: Any,
        label: str,
        divisor: float | None,
        engine: PrivacyEngine | None = None,
        module: Any = None,
        criterion: Any = None,
    ) -> None:
        require_supported(optimizer, module)
        several, own = is_distributed(optimizer), isinstance(data_loader, PoissonLoader)
        if several and own:
            raise UnsupportedError("a PoissonLoader draws for one process; train in one process.")
        if several:
            self._shared = True
            plan = from_first(self.ledger.plan)
            if self._remote is not None:
                self._remote.plan = plan
            elif is_follower():
                raise InputError(
                    "a second ledger is given; give None in all processes except the first."
                )
            divisor = divisor and divisor / optimizer.world_size
        if ObservedOptimizer.holds(optimizer):
            raise InputError("optimizer is already attached; attach it once, to one ledger.")
        declared = invocations_at(self.ledger, label)
        if clips_adaptively(optimizer) and isinstance(declared[0].relation, ZeroOut):
            raise UnsupportedError(
                "optimizer clips adaptively, which also counts units that add no gradient; "
                "declare add-remove or replace-one."
            )
        if any(each.label == label for each in self._optimizers):
            raise InputError(
                f"at is {label!r}, which another optimizer has; declare and name them apart."
            )
        stream = None if data_loader is None else watch(data_loader)
        drawn, by_user = stream is not None and stream.by_user, own and data_loader.by_user
        require_unit(declared[0].unit, drawn=drawn, clipped=by_user)
        charged = Counter(entry.invocation.at for entry in self.ledger)
        explain_failures(module, optimizer)
        ghost = GhostSums(module, optimizer, criterion) if clips_in_the_loss(optimizer) else None
        inputs = None if module is None or by_user else Inputs(module)
        kind: Callable[..., ObservedOptimizer] = SharedOptimizer if several else ObservedOptimizer
        if is_correlated(declared):
            if several:
                raise UnsupportedError(
                    "optimizer runs in several processes; correlated noise supports only one."
                )
            kind = partial(CorrelatedOptimizer, data_loader)
        given = optimizer, self.ledger, label, declared, stream, divisor, engine, charged
        self._optimizers.append(kind(*given, ghost, inputs, module))
        if by_user:
            UserSums(optimizer, data_loader, module)

    def _attach_engine(
        self, engine: PrivacyEngine, at: str | Sequence[str], divisor: float | None
    ) -> None:
        if "make_private" in vars(engine):
            raise InputError("engine is already attached; attach it once, to one ledger.")
        if engine.dataset is not None:
            raise InputError(
                "engine has already made something private; attach it before make_private, or "
                "attach the optimizer and its loader."
            )
        labels = [at] if isinstance(at, str) else list(at) if isinstance(at, Sequence) else []
        if not labels or len({*map(repr, labels)}) < len(labels):
            raise InputError(f"at is {at!r:.60}; it must be a label, or one for each optimizer.")
        for label in labels if self._remote is None else ():
            invocations_at(self.ledger, label)
        make_private = engine.make_private

        def attached(**settings: Any) -> Any:
            if not labels:
                raise InputError(
                    "engine makes more optimizers than it has labels; give attach one label each."
                )
            if isinstance(own := settings.get("data_loader"), PoissonLoader):
                # opacus would sample rows of its own
                made = (*make_private(**settings | {"poisson_sampling": False})[:-1], own)
            else:
                made = make_private(**settings)
            self._attach(made[1], made[-1], labels.pop(0), divisor, engine, made[0], made[2])
            return made

        engine.make_private = attached
        self._engines.append((engine, _accounted(engine)))


def _accounted(engine: PrivacyEngine) -> int:
    """Count the steps that opacus' own accountant has seen."""
    return sum(int(entry[2]) for entry in engine.accountant.history)


def _running_code() -> tuple[str | None, str]:
    """The hash of the author's files that are running, with what they import, and the line.

    Nothing is known of what was typed in.
    """
    frame: FrameType | None = sys._getframe()
    found, line = set[tuple[str, Path]](), ""
    while frame is not None:
        file, module = Path(frame.f_code.co_filename), str(frame.f_globals.get("__name__", ""))
        if is_of_author(module, file):
            line = line or f"{file.name}:{frame.f_lineno}"
            found.add((module, file))
        frame = frame.f_back
    return (_hashed(frozenset(found)), line) if found else (None, "")


@cache
def _hashed(files: frozenset[tuple[str, Path]]) -> str:
    """SHA-256 of files, and of their packages and imports, as they are when they first run."""
    every = set().union(*(own_files(*each) for each in files))
    return combined_hash(path.read_bytes() for path in sorted(every))
