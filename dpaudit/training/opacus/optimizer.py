"""An opacus optimizer whose noise goes through a ledger."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian, Mechanism
from dpaudit.plan import AddRemove, Invocation
from dpaudit.training.opacus.adaptive import AdaptiveNoise
from dpaudit.training.opacus.batches import BatchStream
from dpaudit.training.opacus.copies import Kept
from dpaudit.training.opacus.ghost import GhostSums
from dpaudit.training.opacus.rng_checks import Inputs, Randomness, Writes
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
    """Stands before ``add_noise`` of one optimizer.

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
        self._clipped_sums = Kept()  # of clipped gradients, as they were left
        self._ghost, self._inputs = ghost, inputs
        if ghost is None:
            self._sum, optimizer.clip_and_accumulate = optimizer.clip_and_accumulate, self._summed
        else:
            self._sum, optimizer.accumulate = optimizer.accumulate, self._summed

    @staticmethod
    def holds(optimizer: Any) -> bool:
        """Whether an optimizer is attached already."""
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

    def charged(self, charges: Counter[str]) -> int:
        """Steps that the ledger knows of, with those of an earlier process."""
        return sum(charges[each.at] for each in self.declared)

    def configuration(self) -> dict[str, Any]:
        """Public facts, as JSON values; nothing that follows from a private size."""
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
        if not self._clipped_sums.still([p.summed_grad for p in params]):
            raise PlanMismatchError(
                "the sums of clipped gradients were changed before their noise; leave them alone."
            )
        if not self._clipped_sums.finite():
            raise PlanMismatchError(
                "a sum of gradients is not finite, however they are clipped; keep the loss of "
                "every row within what floats can hold."
            )

    def _noisy(self) -> None:
        """Add noise, if the plan declares it, and record that it was added."""
        self._passed(self._prepared())

    def _prepared(self) -> Ready:
        """The step that is due, if it is what the plan declares."""
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

    def _passed(self, ready: Ready) -> None:
        """Through the ledger's door."""
        at = ready.invocation.at
        self._ledger.observe(ready.mechanism, self._noise, unit=ready.unit, at=at)
        self._note(ready)

    def _note(self, ready: Ready) -> None:
        """Keep what happened, in this process."""
        optimizer, stream, at = self._optimizer, self.stream, ready.invocation.at
        self.writes.admit()
        self.randomness.drawn(self._state)
        self._ran[at] += 1
        units = self._use()
        if stream is not None:
            self._epoch = stream.epochs
        self.steps.append(
            ObservedStep(
                at=at,
                unit=ready.unit,
                noise_multiplier=float(optimizer.noise_multiplier),
                max_grad_norm=ready.norm,
                expected_batch_size=float(optimizer.expected_batch_size) if self.divides else None,
                actual_batch_size=units,
                physical_batches=max(self._parts, self._batches),
                epoch=self._epoch,
                # The count's noise never comes from the secure mode of opacus.
                secure_mode=bool(optimizer.secure_mode) and not self._adaptive,
            )
        )

    def _use(self) -> int | None:
        """Tell the loader's stream of the batch that was used; its units, where they are known."""
        if self.stream is None:
            return self._units
        if self._inputs is None:
            return self.stream.use(self._units, self._batches)
        seen, chance = self._inputs.last, self._inputs.chance
        return self.stream.use(self._units, self._batches, seen, chance)

    def _next(self) -> tuple[Invocation, str | None]:
        """The invocation that is due and the unit it touches; where all ran, the last one."""
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
                f"{invocation.describe()} sums gradients clipped to {sorted(self._norms)} and the "
                f"clip norm is now {norm:g}; keep it for all parts of a step."
            )
        divisor = self._optimizer.expected_batch_size
        if self.public_divisor is not None and divisor != self.public_divisor:
            raise PlanMismatchError(
                f"{invocation.describe()} divides by {divisor}; attach was given the public "
                f"expected_batch_size {self.public_divisor:g}, so leave it."
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
        """The declared mechanism if the optimizer's numbers are its, else what would run."""
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


def labelled(ledger: Ledger, label: str) -> tuple[Invocation, ...]:
    """The invocations of a label: itself, or its phases or epochs in their order."""
    validate.text(at=label)
    found = tuple(
        each
        for each in ledger.plan.invocations
        if each.at == label or each.at.startswith(f"{label}, ")
    )
    if not found:
        places = ", ".join(repr(each.at) for each in ledger.plan.invocations)
        raise InputError(f"at is {label!r}; the ledger's plan declares {places}.")
    return found
