"""Opacus optimizers whose noise goes through a ledger: of one process, of several, and correlated.

:func:`~dpaudit.training.opacus.attach` makes them. Each compares the step that is due with the plan
before its noise, and is refused by the ledger or charged before it is drawn.

*Several processes*: each has a shard of the units and its own batches; process 0 alone adds noise,
to its own part of a sum that is formed afterwards. So a step is one release of the whole, if all
processes clip to the same norm and no unit is in two shards. Before each step all processes say
what they are about to do; one that refuses stops them all, before noise.

*Correlated noise* (DP-FTRL, Kairouz et al. 2021; banded factorisations, Choquette-Choo et al.
2023): what is released are the noisy prefix sums of clipped gradients, and each step takes their
difference. The noise is the ledger's own. A unit takes part once a pass, in the same batch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed

from dpaudit.base.errors import DpAuditError, InputError, PlanMismatchError
from dpaudit.ledger import Entry, Ledger, Stream
from dpaudit.mechanisms import Gaussian, Mechanism
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import AddRemove, Invocation, Plan
from dpaudit.training.opacus.batches import BatchStream
from dpaudit.training.opacus.clipping import AdaptiveNoise, GhostSums
from dpaudit.training.opacus.loaders import FixedBatches
from dpaudit.training.opacus.side_effects import Inputs, Randomness, TensorCopies, Writes, content
from dpaudit.training.opacus.step import (
    SAMPLER,
    GradientNoise,
    ObservedStep,
    clip_norm,
    clips_adaptively,
)

_DRAWN = "_opacus_drawn"
"""Where a ledger holds the states that its noise was drawn from, whichever optimizer asked."""

_SAME = 2.0**-22
"""Relative slack of noise and clip norm: opacus keeps some of them, and draws, in 32-bit floats."""


class Ready(NamedTuple):
    """A step that was compared with the plan and is about to be charged."""

    invocation: Invocation
    unit: str | None
    mechanism: Mechanism
    norm: float


class ObservedOptimizer:
    """The guard before ``add_noise`` of one optimizer.

    Args:
        optimizer: of opacus; its methods are replaced on this one object.
        ledger: what records it.
        label: of its invocations.
        declared: the phases or epochs of the label, in their order.
        stream: of the loader, if there is one.
        divisor: a public number to divide the noisy sums by, in place of the optimizer's own.
        engine: that made the optimizer, if it is known.
        charged: what the ledger holds already, by label of the invocation.
        ghost: what the loss clipped, where the loss clips.
        inputs: what the model saw, where the batches are told apart by it.
        module: the model, where it is known.

    Attributes:
        sampler: what draws the noise.
        disjoint: whether the plan declares disjoint batches: more releases than touch one unit.
        steps: the noisy steps that happened.
        failed: how many steps were charged and failed while their noise was drawn.
        writes: who writes to the parameters.
        randomness: states of the generator that the noise comes from.
    """

    sampler: str | None = SAMPLER

    def __init__(
        self,
        optimizer: Any,
        ledger: Ledger,
        label: str,
        declared: tuple[Invocation, ...],
        stream: BatchStream | None,
        divisor: float | None,
        engine: Any,
        charged: Counter[str],
        ghost: GhostSums | None = None,
        inputs: Inputs | None = None,
        module: Any = None,
    ) -> None:
        self.label, self.declared, self.stream, self.engine = label, declared, stream, engine
        self.public_divisor = divisor
        self.steps: list[ObservedStep] = []
        self.failed = 0
        self.disjoint = any(each.releases > each.count for each in declared)
        self._optimizer, self._ledger = optimizer, ledger
        self._ran = Counter({each.at: charged[each.at] for each in declared})
        self._due = 0  # place of the phase that is running
        self._begun = sum(count > 0 for count in self._ran.values())  # epochs of disjoint batches
        self._epoch = 0  # of the loader, at the last step
        self._units = self._parts = 0  # of the batch that is being summed
        self._batches = 1  # that the loader drew for it and that accumulate
        if divisor is not None:
            optimizer.expected_batch_size = divisor
        self._norms: set[float] = set()  # that its parts were clipped to
        self._adaptive = clips_adaptively(optimizer)
        kind = AdaptiveNoise if self._adaptive else GradientNoise
        self._noise = kind(optimizer, optimizer.add_noise)
        self._checked: tuple[Any, ...] = ()  # numbers that were found to be the declared ones
        optimizer.add_noise = self._noisy
        self.writes = Writes(optimizer, ledger, module)
        self.randomness: Randomness = vars(ledger).setdefault(_DRAWN, Randomness())
        self._state: int | None = None  # of the generator, before the noise that is due
        self._clipped_sums = TensorCopies()  # of clipped gradients, as they were left
        self._ghost, self._inputs = ghost, inputs
        if ghost is None:
            self._sum, optimizer.clip_and_accumulate = optimizer.clip_and_accumulate, self._summed
        else:
            self._sum, optimizer.accumulate = optimizer.accumulate, self._summed

    @staticmethod
    def holds(optimizer: Any) -> bool:
        """Tell whether an optimizer is attached already."""
        owner = getattr(vars(optimizer).get("add_noise"), "__self__", None)
        return isinstance(owner, ObservedOptimizer)

    @property
    def size_is_public(self) -> bool:
        """Whether neighbours have equally many units."""
        return not isinstance(self.declared[0].relation, AddRemove)

    @property
    def divides(self) -> bool:
        """Whether a noisy sum, or a noisy count, is divided by an expected batch size."""
        return self._adaptive or str(self._optimizer.loss_reduction) == "mean"

    def charged(self) -> int:
        """Count the steps that the ledger knows of, with those of an earlier process."""
        labels = {each.at for each in self.declared}
        return sum(entry.invocation.at in labels for entry in self._ledger)

    def configuration(self) -> dict[str, Any]:
        """Return public facts, as JSON values; nothing that follows from a private size."""
        facts: dict[str, Any] = {
            "optimizer": type(self._optimizer.original_optimizer).__name__,
            "clipping": type(self._optimizer).__name__,
            "noise_multiplier": sorted({step.noise_multiplier for step in self.steps}),
            "max_grad_norm": sorted({step.max_grad_norm for step in self.steps}),
            "loss_reduction": str(self._optimizer.loss_reduction),
            "secure_mode": bool(self._optimizer.secure_mode),
            "noisy_steps": len(self.steps),
            "batches": str(self.stream.batching or "not recognised")
            if self.stream
            else "not observed",
            "units": "users" if self.stream is not None and self.stream.by_user else "rows",
        }
        if self.divides and (self.size_is_public or self.public_divisor is not None):
            facts["expected_batch_size"] = float(self._optimizer.expected_batch_size)
        return facts

    def _summed(self) -> None:
        """Clip and add up one physical batch, counting its units."""
        params, ghost = self._optimizer.params, self._ghost
        parameter = params[0]  # all have gradients of the same units
        if parameter.summed_grad is None:
            self._units = self._parts = 0
            self._norms.clear()
        else:
            self._require_own_sums(params)
        if ghost is None:
            held = parameter.grad_sample
            held = held if isinstance(held, list) else [held]  # one for each accumulated batch
            units, self._batches = sum(map(len, held)), len(held)
            del held  # the optimizer is about to free these gradients, which are large
            norm = clip_norm(self._optimizer)
        else:
            ghost.take()
            units, norm = ghost.units, ghost.norm
        self._norms.add(norm)
        self._sum()
        self._units += units
        self._parts += 1
        self._clipped_sums.keep([p.summed_grad for p in params])

    def _require_own_sums(self, params: list[Any]) -> None:
        """Refuse sums that are not those that were clipped, or that one row made infinite."""
        if not self._clipped_sums.unchanged([p.summed_grad for p in params]):
            raise PlanMismatchError(
                "the sums of clipped gradients were changed before their noise; leave them alone."
            )
        if not self._clipped_sums.finite():
            raise PlanMismatchError(
                "a sum of gradients is not finite, in spite of clipping; keep the loss of "
                "every row within what floats can hold."
            )

    def _noisy(self) -> None:
        """Add noise, if the plan declares it, and record that it was added."""
        self._release(self._prepare())

    def _prepare(self) -> Ready:
        """Return the step that is due, if it is what the plan declares."""
        optimizer = self._optimizer
        params = optimizer.params
        self._require_own_sums(params)
        self.writes.look(params)
        self._state = None if self.sampler is None else Randomness.state(optimizer.generator)
        invocation, unit = self._next()
        if self._batches > 1:
            self._require_one_contribution(invocation, self._batches)
        norm = clip_norm(optimizer)
        self._require_unchanged(invocation, norm)
        if getattr(optimizer, "_adjusted_noise_multiplier", None) is not None:
            raise PlanMismatchError(
                f"{invocation.describe()} would be drawn with another noise multiplier; opacus' "
                "own adaptive ghost clipping is not supported."
            )
        numbers = optimizer.noise_multiplier, optimizer.max_grad_norm, norm, invocation
        mechanism = invocation.mechanism
        if numbers != self._checked:
            mechanism = self._mechanism(invocation)
        self._checked = numbers
        return Ready(invocation, unit, mechanism, norm)

    def _release(self, ready: Ready) -> None:
        """Go through the ledger's door."""
        at, before = ready.invocation.at, len(self._ledger)
        try:
            self._ledger.observe(ready.mechanism, self._noise, unit=ready.unit, at=at)
        except BaseException:
            since = islice(self._ledger, before, None)
            self.failed += any(entry.invocation.at == at for entry in since)
            raise
        self._note(ready)

    def _note(self, ready: Ready) -> None:
        """Keep what happened, in this process."""
        optimizer, stream, at = self._optimizer, self.stream, ready.invocation.at
        self.writes.admit()
        self.randomness.note(self._state)
        self._ran[at] += 1
        if stream is not None:
            self._use(stream)
            self._epoch = stream.epochs
        self.steps.append(
            ObservedStep(
                at=at,
                unit=ready.unit,
                noise_multiplier=float(optimizer.noise_multiplier),
                max_grad_norm=ready.norm,
                expected_batch_size=float(optimizer.expected_batch_size) if self.divides else None,
                actual_batch_size=self._units,
                physical_batches=max(self._parts, self._batches),
                epoch=self._epoch,
                # The count's noise never comes from the secure mode of opacus.
                secure_mode=bool(optimizer.secure_mode) and not self._adaptive,
            )
        )

    def _use(self, stream: BatchStream) -> None:
        """Tell the loader's stream of the batch that was used."""
        seen = () if self._inputs is None else (self._inputs.last, self._inputs.chance)
        stream.use(self._units, self._batches, *seen)

    def _next(self) -> tuple[Invocation, str | None]:
        """Give the invocation that is due and the unit it touches; where all ran, the last one."""
        last = self.declared[-1]
        if self.disjoint and self.stream is not None:
            # A new pass over the loader is a new epoch, though the last one were not finished:
            # a unit may be in both.
            fresh = self.stream.epochs != self._epoch
            at = self._begun if fresh or not self._begun else self._begun - 1
            due = self.declared[min(at, len(self.declared) - 1)]
            if at >= len(self.declared):
                raise PlanMismatchError(
                    f"{last.describe()} is the last epoch that the plan declares; a new pass over "
                    "the loader began, so declare all epochs."
                )
            self._begun = at + 1
            self._epoch = self.stream.epochs
        else:
            due = self.declared[self._due]
            while due is not last and self._ran[due.at] >= due.releases:
                self._due += 1
                due = self.declared[self._due]
        # Numbered in their order, the first batch is charged in every epoch that began, so no
        # unit is charged more often than it.
        unit = f"batch {self._ran[due.at] + 1}" if due.releases > due.count else None
        return due, unit

    def _require_unchanged(self, invocation: Invocation, norm: float) -> None:
        """Refuse parts that are clipped to different norms, and another than the public divisor."""
        if self._norms - {norm}:
            raise PlanMismatchError(
                f"{invocation.describe()} sums gradients clipped to {sorted(self._norms)} but "
                f"the clip norm is now {norm:g}; keep it for all parts of a step."
            )
        divisor = self._optimizer.expected_batch_size
        if self.public_divisor is not None and divisor != self.public_divisor:
            raise PlanMismatchError(
                f"{invocation.describe()} divides by {divisor}; attach was given the public "
                f"expected_batch_size {self.public_divisor:g}; do not change the divisor."
            )

    def _require_one_contribution(self, invocation: Invocation, batches: int) -> None:
        """Refuse an accumulated step in which one unit may contribute several times."""
        stream = self.stream
        apart = self.disjoint and (stream is None or batches <= stream.drawn)
        if not apart:
            raise PlanMismatchError(
                f"{invocation.describe()} accumulates {batches} batches that may hold one "
                f"{invocation.unit} several times; accumulate disjoint batches of one epoch, or "
                "use BatchMemoryManager."
            )

    def _mechanism(self, invocation: Invocation) -> Mechanism:
        """Return the declared mechanism if the optimizer's numbers are its, else what would run."""
        noise, norm = float(self._optimizer.noise_multiplier), clip_norm(self._optimizer)
        sigma = noise * float(self._optimizer.max_grad_norm)
        if self._adaptive:  # measures its values in the clip norm, which changes
            norm, sigma = 1.0, noise
        if not (sigma > 0 and norm > 0):
            raise PlanMismatchError(
                f"{invocation.describe()} runs with noise multiplier {noise:g} and clip norm "
                f"{norm:g}; both must be above 0."
            )
        self._require_norm(invocation, norm)
        declared = invocation.mechanism
        if isinstance(declared, Gaussian) and math.isclose(sigma, declared.sigma, rel_tol=_SAME):
            return declared
        return Gaussian(sigma)

    def _require_norm(self, invocation: Invocation, norm: float) -> None:
        """Refuse a clip norm that makes another sensitivity than the declared one."""
        moved = norm * invocation.relation.contribution_factor
        if not math.isclose(moved, invocation.sensitivity, rel_tol=_SAME):
            raise PlanMismatchError(
                f"the plan declares a sensitivity of {invocation.sensitivity:g} at "
                f"{invocation.at!r}, but the clip norm {norm:g} makes it {moved:g}."
            )


class CorrelatedOptimizer(ObservedOptimizer):
    """An optimizer that takes differences of noisy prefix sums; opacus draws no noise for it."""

    sampler = None  # the ledger itself

    def __init__(self, loader: Any, *given: Any) -> None:
        super().__init__(*given)
        self._loader = loader
        self._sums: Stream | None = None
        self._last: Any = 0.0
        self._places: dict[int | None, int] = {}  # of batches in their pass, by digest
        if len(self.declared) > 1 or self._adaptive or not _fixed(self.stream):
            raise InputError(
                f"at is {self.label!r}, a continual release; it takes one invocation, one clip "
                "norm, and a loader with batch_sampler=FixedBatches(...)."
            )

    def charged(self) -> int:
        """Count its steps; a stream that only an earlier process was in counts as one."""
        return len(self.steps) or super().charged()

    def _next(self) -> tuple[Invocation, str | None]:
        return self.declared[0], None

    def _mechanism(self, invocation: Invocation) -> Mechanism:
        noise = float(self._optimizer.noise_multiplier)
        if noise:
            raise PlanMismatchError(
                f"{invocation.describe()} has noise of the ledger, and opacus would add its own of "
                f"{noise:g}; give make_private noise_multiplier=0."
            )
        self._require_norm(invocation, clip_norm(self._optimizer))
        return invocation.mechanism

    def _release(self, ready: Ready) -> None:
        stream, invocation = self.stream, ready.invocation
        assert stream is not None
        strays = stream.strays
        stream.use(self._units, self._batches)
        here = stream.position
        seen = None if self._inputs is None else self._inputs.last
        place = here if seen is None else self._places.setdefault(seen, here)
        if stream.strays > strays or (place != here and self._rows(place) != self._rows(here)):
            raise PlanMismatchError(
                f"{invocation.describe()} must use each batch of its loader once in a pass; "
                "this step has another batch."
            )
        value = self._noise.value()
        if self._sums is None:
            mechanism = ready.mechanism
            assert isinstance(mechanism, Continual)
            self._sums = self._ledger.stream(mechanism, value.shape, at=invocation.at)
        noisy = self._sums.add(value, unit=f"batch {here}")
        self._noise.impose(np.asarray(noisy - self._last))
        self._last = noisy
        self._note(ready)

    def _use(self, stream: BatchStream) -> None:
        """Do nothing: it was told before the noise."""

    def _rows(self, place: int) -> Any:
        """Return the rows of a batch, by its place; two batches may well have the same ones."""
        rows = [self._loader.dataset[row] for row in self._loader.batch_sampler.batches[place]]
        return content(self._loader.collate_fn(rows))


def _fixed(stream: BatchStream | None) -> bool:
    return stream is not None and isinstance(stream.sampler, FixedBatches)


def is_follower() -> bool:
    """Tell whether this is a process of several, and not the one that holds the ledger."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return False
    return int(distributed.get_rank()) > 0


def from_first(value: Any) -> Any:
    """Return what process 0 gives; for all processes together."""
    held = [value]
    distributed.broadcast_object_list(held, src=0)
    return held[0]


def from_all(value: Any) -> list[Any]:
    """Return what each process gives, by rank; for all processes together."""
    held = [None] * distributed.get_world_size()
    distributed.all_gather_object(held, value)
    return held


class RemoteLedger:
    """A stand-in for the ledger of process 0 in another process.

    Attributes:
        plan: that of the ledger; None before the first optimizer is attached.
    """

    closed = False

    def __init__(self) -> None:
        self.plan: Plan | None = None

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Entry]:
        return iter(())

    def left(self) -> Iterator[str]:
        """Yield what ran less often than declared: known where the ledger is."""
        return iter(())


class SharedOptimizer(ObservedOptimizer):
    """One process's part of an optimizer of several."""

    def _noisy(self) -> None:
        refused = None
        try:
            ready = self._prepare()
            told = (1.0, *self._numbers(ready))
        except DpAuditError as error:
            refused, told = error, (0.0,) * 7
        device = self._optimizer.params[0].device
        mine = torch.tensor(told, dtype=torch.float64, device=device)
        all_told = [torch.empty_like(mine) for _ in range(distributed.get_world_size())]
        distributed.all_gather(all_told, mine)
        if refused is not None:
            raise refused
        if not all(each[0] for each in all_told):
            raise PlanMismatchError("another process refused this step, so no process takes it.")
        if not all(torch.equal(each, mine) for each in all_told):
            raise PlanMismatchError(
                "the processes differ in noise multiplier, clip norm, divisor, data size, seed or "
                "epoch of the shards; give all of them the same."
            )
        self._release(ready)

    def _numbers(self, ready: Ready) -> tuple[float, ...]:
        """Return what all processes must have alike: numbers of the step, shares of units."""
        optimizer = self._optimizer
        divisor = float(optimizer.expected_batch_size) if self.divides else 0.0
        shards = (0.0, 0.0, 0.0) if self.stream is None else self.stream.shards()
        return float(optimizer.noise_multiplier), ready.norm, divisor, *shards

    def _release(self, ready: Ready) -> None:
        """Return the ledger's answer, for all."""
        if distributed.get_rank() == 0:
            try:
                super()._release(ready)
            except BaseException:
                from_first(False)
                raise
            from_first(True)
            return
        if not from_first(None):
            raise PlanMismatchError("process 0 refused this step; its own error says why.")
        self._noise.draw()
        self._note(ready)
