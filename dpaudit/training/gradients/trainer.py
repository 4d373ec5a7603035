"""Trainings that are private by construction: a loss of one example, and noisy gradients alone.

Four lines make one::

    def loss(parameters, example):                    # one example, or one row of a user
        x, y = example
        return cross_entropy(functional_call(model, parameters, (x,)), y)

    trainer = fit(loss, model, (x, y), plan, optimizer=torch.optim.SGD(model.parameters(), lr=0.5))
    certificate = trainer.certificate(delta=1e-5)

dpaudit draws who takes part, maps the loss over examples, clips and adds, lets the ledger draw the
noise, and hands out noisy means. There is no batch in the author's hands, no clip norm beside the
plan's, and no step that the plan does not declare.

What it cannot know in the process that holds the data: that the loss reads its arguments alone, and
that loop and settings follow from noisy gradients and public facts. ``docs/training.md`` says more.
"""

from __future__ import annotations

import inspect
import io
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from dpaudit.base import files, validate
from dpaudit.base.errors import (
    BudgetExceededError,
    ClosedLedgerError,
    InputError,
    UnsupportedError,
)
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Certificate, Finding, SubjectRecord
from dpaudit.ledger import FloatNoise, Ledger, SecureNoise, Stream
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import Plan, ZeroOut
from dpaudit.project.own_files import code_hash
from dpaudit.training.certifying import LedgerTraining, Wanted
from dpaudit.training.declared import Adaptive as Adaptive
from dpaudit.training.declared import invocations_at, is_correlated
from dpaudit.training.gradients.batches import (
    Batch,
    batches,
    expected_units,
    require_drawable,
    steps_of,
)
from dpaudit.training.gradients.clipped import NORMS, ClippedSums, Floats
from dpaudit.training.gradients.draws import public_seed, secret_seed
from dpaudit.training.gradients.examples import Examples, usual_chunk
from dpaudit.training.gradients.graphs import Graph
from dpaudit.training.gradients.reach import held_data
from dpaudit.training.gradients.trial import Loss

_found = FindingTable(__name__)


class Trainer(LedgerTraining):
    """The steps of a training, each a dict of noisy mean gradients by the name of a parameter.

    ``for gradients in trainer: optimizer.step()`` is a training: the gradients are with the
    parameters too. It ends with the last step that the plan declares, or the last one that the
    budget of the ledger admits. On a ledger that was resumed it goes on with the steps that are
    left.

    Args:
        loss: of parameters by name, and one example (of a user: one row); a tensor with one number.
        parameters: a module, or a mapping of tensors, that are changed in place by an optimizer.
        data: a tensor or an array with a row for each example, or a tuple, a list or a dict of
            them, or a ``TensorDataset``.
        ledger: of a plan as :meth:`Plan.dp_sgd <dpaudit.plan.Plan.dp_sgd>` makes it, or with one
            :class:`~dpaudit.ContinualGaussian`; of a plan a ledger with exact noise is made.
        at: label of the plan's invocations.
        users: whose each row is; then a user's gradient is the mean of those of its rows.
        most_rows: of a user, that count; a public number.
        divisor: a public number of units, that noisy sums are divided by; where not given, how many
            a step is to have, if the plan does not protect how many there are.
        chunk: units that are mapped at once; about a batch where not given.
        adaptive: how the clip norm follows; the plan's is then what everything is measured in.
        clip_norm: to begin with, where it follows; else that of the plan is meant.
        seed: of the order of batches that are not sampled; public.

    Attributes:
        ledger: the ledger.
        parameters: by name, those that are trained.
        divisor: of noisy sums.
        clip_norm: of the next step, where it follows; without ``adaptive`` it changes nothing.
        taken: steps of this process.
        lost: steps that are charged, and are not among those of the checkpoint that ``fit`` goes on
            from, so that the parameters have nothing of them.
        exceeded: whether the budget ended it.

    Raises:
        InputError: if an argument is wrong, or the loss is no number, or holds the data.
        PlanMismatchError: if the plan protects rows and the training clips users, or otherwise.
        UnsupportedError: if the loss cannot be mapped, or the plan declares no clipped sums.
    """

    usual_name = "training"
    not_covered = (
        "That the loss reads nothing but its parameters and its one example: it runs in the "
        "process that holds the data.",
        "Anything computed from the data beside the training, such as statistics of the inputs, a "
        "validation score on training rows, or parameters to begin with.",
        "Hyperparameters, and rates or stops during the training, that were chosen by looking at "
        "anything but noisy gradients.",
        "That a training breaks off, and how long a step takes.",
    )

    def __init__(
        self,
        loss: Loss,
        parameters: nn.Module | Mapping[str, Any],
        data: Any,
        ledger: Ledger | Plan,
        *,
        at: str = "gradient",
        users: Sequence[Any] | None = None,
        most_rows: int | None = None,
        divisor: float | None = None,
        chunk: int | None = None,
        adaptive: Adaptive | None = None,
        clip_norm: float | None = None,
        seed: int = 0,
    ) -> None:
        self.ledger = Ledger(ledger) if isinstance(ledger, Plan) else _ledger(ledger)
        self.declared = invocations_at(self.ledger, at)
        for each in self.declared:
            require_drawable(each)
            _require_norm(each.sensitivity / each.relation.contribution_factor)
        made = isinstance(data, Examples)
        examples = data if made else Examples(data, users, most=most_rows)
        examples.require_unit(self.declared[0].unit)
        # A graph holds no data; whether its constants equal them is not to be told.
        name = None if isinstance(loss, Graph) else held_data(loss, examples.leaves)
        if name is not None:
            raise InputError(
                f"loss reads the data of all units, as {name!r:.60}; let it read only its "
                "parameters and its one example, and release what it needs about others "
                "through the ledger."
            )
        self.divisor = self._public(divisor, len(examples))
        model = parameters if isinstance(parameters, nn.Module) else None
        self.parameters = trained(parameters)
        chunk = usual_chunk(self.divisor) if chunk is None else chunk
        validate.integer_at_least(1, chunk=chunk)
        self._sums = ClippedSums(loss, self.parameters, examples, chunk, model)
        self._loss, self._by_user = loss, examples.by_user
        self._adapt(adaptive, clip_norm)
        self.taken, self.lost, self.exceeded, self._broken = 0, 0, False, False
        self._stream: Stream | None = None
        self._last: Floats | float = 0.0
        seed = validate.integer_at_least(0, seed=seed)
        self._batches = batches(
            self.ledger, self.declared, examples.names, seed, by_user=examples.by_user
        )

    def _public(self, divisor: float | None, units: int) -> float:
        """The divisor, which tells nobody how many units there are where that is protected."""
        if divisor is not None:
            return validate.positive(divisor=divisor)
        expected = expected_units(self.declared[0], units)
        if expected is None:
            raise InputError(
                "divisor is missing; the number of units is protected, so give a public "
                "number of units that a step has, or 1 for sums."
            )
        return expected

    def _adapt(self, adaptive: Adaptive | None, norm: float | None) -> None:
        """Take the rule of the clip norm, and where it begins."""
        if (adaptive is None) != (norm is None):
            raise InputError(
                "clip_norm and adaptive belong together: give both, or leave both out for "
                "the clip norm of the plan."
            )
        self.adaptive, self.clip_norm = adaptive, norm
        if adaptive is None or norm is None:
            return
        validate.instance(Adaptive, adaptive=adaptive)
        self.clip_norm = _require_norm(validate.positive(clip_norm=norm))
        if is_correlated(self.declared):
            raise UnsupportedError(
                "adaptive is given, but correlated noise needs a fixed clip norm; leave it out."
            )
        if isinstance(self.declared[0].relation, ZeroOut):
            raise UnsupportedError(
                "adaptive also counts units that add no gradient; declare "
                "add-remove or replace-one."
            )

    def __len__(self) -> int:
        """How many steps are declared."""
        return sum(map(steps_of, self.declared))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        """One step: who takes part, clipped sums, noise.

        Raises:
            ClosedLedgerError: if an earlier step was cut off.
        """
        if self.exceeded:
            raise StopIteration
        if self._broken:
            raise ClosedLedgerError(
                "the training is closed, because a step was interrupted before its noise; "
                "start again, or resume the ledger from its journal."
            )
        self._sums.require_unchanged()
        norm = self._norm()
        self._broken = True
        batch = next(self._batches, None)
        if batch is not None:
            try:
                mean = self._noisy(batch, norm)
            except BudgetExceededError:
                self.exceeded = True
            else:
                self.taken, self._broken = self.taken + 1, False
                return self._handed(mean)
        self._broken = False
        raise StopIteration

    def _norm(self) -> float | None:
        """The clip norm where it follows; else that of the plan is meant, whatever is said."""
        if self.adaptive is None:
            return None
        return _require_norm(validate.positive(clip_norm=self.clip_norm))

    def _noisy(self, batch: Batch, norm: float | None) -> Floats:
        """The noisy sum of clipped gradients."""
        call, seed = batch.invocation, self._seed()
        bound = call.sensitivity / call.relation.contribution_factor
        if self.adaptive is None or norm is None:
            total, _ = self._sums.total(batch.places, bound, counted=False, seed=seed)
            return self._released(batch, total)
        total, balance = self._sums.total(batch.places, norm, seed=seed)
        of_sum = self.adaptive.of_sum * bound / norm
        signs = self.adaptive.share * bound * balance
        noisy = self._released(batch, np.append(total * of_sum, signs))
        moved = self.adaptive.moved(norm, float(noisy[-1]) / bound, self.divisor)
        self.clip_norm = min(max(moved, NORMS[0]), NORMS[1])
        return noisy[:-1] / of_sum

    def _seed(self) -> int:
        """Of what the loss draws: secret as the noise is, or repeatable as that is."""
        noise = self.ledger.noise
        own = noise is None or isinstance(noise, SecureNoise | FloatNoise)
        return secret_seed() if own and not self.ledger.seeded else public_seed()

    def _released(self, batch: Batch, value: Floats) -> Floats:
        """The value with the noise of the ledger."""
        call, law = batch.invocation, batch.invocation.mechanism
        if not isinstance(law, Continual):
            return _array(self.ledger.release(law, value, unit=batch.name, at=call.at))
        if self._stream is None:
            self._stream = self.ledger.stream(law, value.shape, at=call.at)
        total = self._stream.add(value, unit=batch.name)
        step, self._last = total - self._last, total
        return step

    def _handed(self, noisy: Floats) -> dict[str, Any]:
        """The mean by parameter; each leaf has its own as its gradient."""
        parts = self._sums.split(noisy, self.divisor)
        for name, each in self.parameters.items():
            if each.is_leaf:
                each.grad = parts[name]
        return parts

    @property
    def charged(self) -> int:
        """Steps that the ledger knows of, those of an earlier process too; a stream is one."""
        labels = {each.at for each in self.declared}
        return sum(entry.invocation.at in labels for entry in self.ledger)

    @property
    def _others(self) -> int:
        """Steps among these that this trainer did not finish."""
        return self.charged - (self.taken if self._stream is None else 1)

    def findings(self) -> tuple[Finding, ...]:
        """Return what a reader of the certificate must know of this training."""
        dtype = str(self._sums.dtype).removeprefix("torch.")
        unit = self.declared[0].unit
        found = [_found("gradients-in-floats", dtype=dtype, unit=unit, chunk=self._sums.chunk)]
        if others := self._others:
            lost = f", of which {self.lost} are not in its checkpoint" * bool(self.lost)
            found.append(_found("steps-before", earlier=others, lost=lost))
        return tuple(found)

    def _certified(self, wanted: Wanted) -> Certificate:
        if not (self.ledger.closed or self.exceeded):
            self.ledger.check()
        others = self._others
        return self.recorded(
            wanted,
            self._subject(wanted.name),
            self.findings(),
            {"noisy_steps": others + self.taken},
            () if others else [each.at for each in self.declared],
            declared=self.declared,
        )

    def _subject(self, name: str) -> SubjectRecord:
        """What was trained, in public facts, and by which code."""
        facts = {
            "loss": getattr(self._loss, "__qualname__", type(self._loss).__qualname__),
            "parameters": self._sums.size,
            "units": "users" if self._by_user else "rows",
            "divisor": float(self.divisor),
            "chunk": self._sums.chunk,
            "clipping": "fixed" if self.adaptive is None else "adaptive",
        }
        try:
            inner = inspect.unwrap(self._loss)
            file, module = Path(inspect.getsourcefile(inner) or ""), inner.__module__
            line = inspect.getsourcelines(inner)[1]
            return SubjectRecord(name, facts, code_hash(module, file), f"{file.name}:{line}")
        except (OSError, TypeError):  # typed in, or an object
            return SubjectRecord(name, facts)


def _ledger(ledger: Any) -> Ledger:
    if not isinstance(ledger, Ledger):
        raise InputError(f"ledger is a {type(ledger).__name__:.60}; it must be a Ledger or a Plan.")
    return ledger


def _array(released: Any) -> Floats:
    return np.asarray(released, dtype=np.float64)


def _require_norm(norm: float) -> float:
    """Refuse a clip norm that floats cannot measure."""
    if not NORMS[0] <= norm <= NORMS[1]:
        raise InputError(
            f"clip norm is {norm:g}; it must be between {NORMS[0]:g} and {NORMS[1]:g}."
        )
    return norm


def trained(parameters: Any) -> dict[str, Any]:
    """The parameters of a module that are trained, or a mapping as it is."""
    if isinstance(parameters, nn.Module):
        return {name: p for name, p in parameters.named_parameters() if p.requires_grad}
    if not isinstance(parameters, Mapping):
        raise InputError(
            f"parameters is a {type(parameters).__name__:.60}; it must be a module, or a mapping "
            "of tensors by name."
        )
    return dict(parameters)


def fit(
    loss: Loss,
    parameters: nn.Module | Mapping[str, Any],
    data: Any,
    ledger: Ledger | Plan,
    *,
    optimizer: Any,
    scheduler: Any = None,
    checkpoint: Path | str | None = None,
    every: int = 100,
    **settings: Any,
) -> Trainer:
    """Train by all steps that the plan declares, or that the budget of the ledger admits.

    A ledger that is made here of a plan is closed at the end, and so is one whose budget ended it.

    Args:
        loss: as of :class:`Trainer`.
        parameters: likewise.
        data: likewise.
        ledger: likewise.
        optimizer: of torch, for these parameters.
        scheduler: of its rate, asked after each step.
        checkpoint: a file that parameters, optimizer and scheduler are written to, and read from
            where it is there; for a ledger with a journal. Steps after the last one stay charged,
            and are not taken again; a warning says how many those are.
        every: steps from one checkpoint to the next.
        **settings: further ones of :class:`Trainer`.

    Returns:
        The trainer, which certifies.

    Raises:
        InputError: if the optimizer holds other parameters, or the checkpoint is none of this
            ledger's journal; else as :class:`Trainer`.
    """
    trainer = Trainer(loss, parameters, data, ledger, **settings)
    _require_optimizer(optimizer, trainer.parameters)
    _require_scheduler(scheduler)
    every = validate.integer_at_least(1, every=every)
    kept = None if checkpoint is None else _Checkpoint(checkpoint, trainer, optimizer, scheduler)
    for _ in trainer:
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        if kept is not None and trainer.taken % every == 0:
            kept.write()
    if kept is not None:
        kept.write()
    if isinstance(ledger, Plan) or trainer.exceeded:
        trainer.ledger.close()
    return trainer


class _Checkpoint:
    """A file with what a training has come to; it holds noisy results alone.

    It names the line of the journal that it was written after, so that no other ledger goes on from
    it: neither that of another training by the same plan, nor a copy that went another way. Its end
    is a checksum, as an optimizer takes any state that somebody edited, and fails after a charge.
    """

    def __init__(self, path: Any, trainer: Trainer, optimizer: Any, scheduler: Any) -> None:
        if not isinstance(path, str | Path):
            raise InputError(f"checkpoint is a {type(path).__name__:.60}; it must be a path.")
        if (journal := trainer.ledger.journal) is None:
            raise InputError(
                "checkpoint is given for a ledger without a journal, which no process could "
                "continue; give the ledger a journal."
            )
        self._path, self._trainer, self._journal = Path(path), trainer, journal
        self._states = {"optimizer": optimizer}
        if scheduler is not None:
            self._states["scheduler"] = scheduler
        self._before = 0  # steps that the parameters have of earlier trainers
        if _is_there(self._path):
            self._read()
        elif trainer.charged:
            raise InputError(
                f"checkpoint {files.shown(self._path)} does not exist, but {trainer.charged} steps "
                "are charged already; give the file that was written with them, or leave it out."
            )
        else:
            self.write()  # what fails does so before a step is charged

    def write(self) -> None:
        """Write it whole or not at all.

        Raises:
            InputError: if it cannot be written, or holds what nobody could read again.
        """
        trainer, content = self._trainer, io.BytesIO()
        held = {name: each.state_dict() for name, each in self._states.items()}
        held["parameters"] = {name: each.detach() for name, each in trainer.parameters.items()}
        held["after"], held["clip_norm"] = self._journal.head, trainer.clip_norm
        held["steps"] = self._before + trainer.taken
        held["labels"] = [each.at for each in trainer.declared]
        try:
            torch.save(held, content)
            content.seek(0)
            with _without_values():
                torch.load(content, weights_only=True)
        except Exception as error:  # noqa: BLE001  # of what a state holds
            raise InputError(
                f"checkpoint {files.shown(self._path)} cannot hold the state of this optimizer or "
                f"scheduler ({type(error).__name__}); this state may hold only tensors, and "
                "numbers and texts of Python."
            ) from None
        content.seek(0, io.SEEK_END)
        content.write(_checksum(content.getbuffer()))
        files.write(self._path, content.getvalue())

    def _read(self) -> None:
        try:
            written = memoryview(self._path.read_bytes())
        except OSError as error:
            raise self._foreign(error) from None
        body = written[:-_SUM]
        if written[-_SUM:] != _checksum(body):
            raise InputError(
                f"checkpoint {files.shown(self._path)} is not as fit wrote it; restore the file, "
                "or give another one."
            )
        try:
            held = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
            after, norm = held["after"], held["clip_norm"]
            own = {name: (each.shape, each.dtype) for name, each in held["parameters"].items()}
            states = {name: dict(held[name]) for name in self._states}
        except Exception as error:  # noqa: BLE001  # of another torch, or without a scheduler
            raise self._foreign(error) from None
        trainer = self._trainer
        if not self._journal.has(after):
            raise InputError(
                f"checkpoint {files.shown(self._path)} belongs to another journal, or the end of "
                "this one is missing; resume the ledger from the journal that was beside it, or "
                "give another checkpoint file."
            )
        labels = [each.at for each in trainer.declared]
        if held.get("labels", labels) != labels:
            raise InputError(
                f"checkpoint {files.shown(self._path)} is of another label; give another file."
            )
        if own != {name: (each.shape, each.dtype) for name, each in trainer.parameters.items()}:
            raise InputError(
                f"checkpoint {files.shown(self._path)} holds other parameters; give another file."
            )
        if (norm is None) != (trainer.adaptive is None):
            follows = "one that stays" if norm is None else "one that follows"
            raise InputError(
                f"checkpoint {files.shown(self._path)} is of a training with another clip norm, "
                f"{follows}; give adaptive and clip_norm as that training had them."
            )
        if norm is not None:
            trainer.clip_norm = norm
        # Those of the scheduler are among them.
        own_keys = [set(group) for group in self._states["optimizer"].param_groups]
        try:
            for name, each in self._states.items():
                each.load_state_dict(states[name])
        except Exception as error:  # noqa: BLE001  # of an optimizer of whatever kind
            raise self._foreign(error) from None
        # Torch takes the state of another kind, and fails by what it lacks later.
        for keys, group in zip(own_keys, self._states["optimizer"].param_groups, strict=True):
            if lacking := sorted(keys - group.keys()):
                raise self._foreign(KeyError(lacking[0]))
        with torch.no_grad():
            for name, parameter in trainer.parameters.items():
                parameter.copy_(held["parameters"][name])
        # One of an older version does not say how many steps it has.
        self._before = held.get("steps", trainer.charged)
        trainer.lost = trainer.charged - self._before
        if trainer.lost:
            warnings.warn(
                f"{trainer.charged} steps are charged, and {trainer.lost} of them are lost: the "
                f"checkpoint {files.shown(self._path)} does not have them; a smaller every writes "
                "it more often.",
                stacklevel=4,
            )

    def _foreign(self, error: BaseException) -> InputError:
        return InputError(
            f"checkpoint {files.shown(self._path)} does not belong to this training "
            f"({type(error).__name__}); give another file."
        )


_SUM = 8
"""Letters of a checksum."""


def _checksum(content: Any) -> bytes:
    return f"{zlib.crc32(content):0{_SUM}x}".encode()


def _without_values() -> AbstractContextManager[Any]:
    """Load what a file says of its tensors, and not what they hold, where torch can."""
    return getattr(torch.serialization, "skip_data", nullcontext)()


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # of a name that no file can have
        return False


def _require_scheduler(scheduler: Any) -> None:
    """Refuse, before a step is charged, a scheduler that cannot be asked after each of them."""
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
    if isinstance(scheduler, plateau) or not (
        scheduler is None or (hasattr(scheduler, "step") and hasattr(scheduler, "state_dict"))
    ):
        raise InputError(
            f"scheduler is a {type(scheduler).__name__:.60}; it must be one of torch.optim whose "
            "step takes no score."
        )


def _require_optimizer(optimizer: Any, parameters: Mapping[str, Any]) -> None:
    """Refuse an optimizer that would step by gradients which nobody made noisy, or by none."""
    if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, torch.optim.LBFGS):
        raise InputError(
            f"optimizer is a {type(optimizer).__name__:.60}; it must be one of torch.optim that "
            "steps without a closure."
        )
    known = {id(each) for each in parameters.values()}
    if {id(p) for group in optimizer.param_groups for p in group["params"]} != known:
        raise InputError(
            "optimizer holds other parameters than those that are trained; give it exactly those."
        )
