"""Trainings whose noise is correlated over their steps: DP-FTRL and matrix factorisation.

Kairouz et al. 2021 (DP-FTRL) and Choquette-Choo et al. 2023 (banded factorisations, several
passes): what is released are the noisy prefix sums of clipped gradients, and each step takes their
difference. The noise is the ledger's own. A unit takes part once a pass, always in the same batch.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.ledger import Stream
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import Invocation
from dpaudit.training.opacus.batches import BatchStream
from dpaudit.training.opacus.copies import content
from dpaudit.training.opacus.fixed_batches import FixedBatches
from dpaudit.training.opacus.optimizer import ObservedOptimizer, Ready
from dpaudit.training.opacus.step import clip_norm


class CorrelatedOptimizer(ObservedOptimizer):
    """An optimizer that takes differences of noisy prefix sums; opacus draws no noise for it."""

    sampler = None  # the ledger itself

    def __init__(self, loader: Any, *given: Any) -> None:
        super().__init__(*given)
        self._loader = loader
        self._sums: Stream | None = None
        self._last: Any = 0.0
        self._used: int | None = None
        self._places: dict[int | None, int] = {}  # of batches in their pass, by digest
        if len(self.declared) > 1 or self._adaptive or not _fixed(self.stream):
            raise InputError(
                f"at is {self.label!r}, a continual release; it takes one invocation, one clip "
                "norm, and a loader with batch_sampler=FixedBatches(...)."
            )

    def charged(self, charges: Counter[str]) -> int:
        """The whole stream is one charge, of however many steps."""
        return len(self.steps)

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

    def _passed(self, ready: Ready) -> None:
        stream, invocation = self.stream, ready.invocation
        assert stream is not None
        strays = stream.strays
        self._used = stream.use(self._units, self._batches)
        here = stream.position
        seen = None if self._inputs is None else self._inputs.last
        place = here if seen is None else self._places.setdefault(seen, here)
        if stream.strays > strays or (place != here and self._rows(place) != self._rows(here)):
            raise PlanMismatchError(
                f"{invocation.describe()} sums what its loader draws, each batch once a pass; this "
                "step has another one."
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

    def _use(self) -> int | None:
        return self._used

    def _rows(self, place: int) -> Any:
        """The rows of a batch, by its place; two batches may well have the same ones."""
        rows = [self._loader.dataset[row] for row in self._loader.batch_sampler.batches[place]]
        return content(self._loader.collate_fn(rows))


def _fixed(stream: BatchStream | None) -> bool:
    return stream is not None and isinstance(stream.sampler, FixedBatches)


def is_correlated(declared: tuple[Invocation, ...]) -> bool:
    """Whether noise is declared that is correlated over the steps."""
    return isinstance(declared[0].mechanism, Continual)
