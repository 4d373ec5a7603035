"""Trainings of several processes: process 0 holds the ledger, and the others ask it.

Every process has a shard of the units and its own batches; process 0 alone adds noise, to its own
part of a sum that is formed afterwards. So a step is one release of the whole, if all processes
clip to the same norm and no unit is in two shards. Before each step all processes say what they are
about to do; one that refuses stops them all, before noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import torch
from torch import distributed

from dpaudit.base.errors import DpAuditError, InputError, PlanMismatchError
from dpaudit.ledger import Entry
from dpaudit.plan import Plan
from dpaudit.training.opacus.optimizer import ObservedOptimizer, Ready


def is_follower() -> bool:
    """Whether this is a process of several, and not the one that holds the ledger."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return False
    return int(distributed.get_rank()) > 0


def from_first(value: Any) -> Any:
    """What process 0 gives; for all processes together."""
    held = [value]
    distributed.broadcast_object_list(held, src=0)
    return held[0]


def from_all(value: Any) -> list[Any]:
    """What each process gives, by rank; for all processes together."""
    held = [None] * distributed.get_world_size()
    distributed.all_gather_object(held, value)
    return held


class RemoteLedger:
    """Stands for the ledger of process 0 in another process.

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

    def check(self) -> None:
        """What ran is compared with the plan where the ledger is."""

    def left(self) -> Iterator[str]:
        """What ran less often than declared: known where the ledger is."""
        return iter(())

    def spent(self) -> NoReturn:
        """Known where the ledger is, and refused here."""
        raise InputError("the ledger is that of process 0; ask there what was spent.")


class SharedOptimizer(ObservedOptimizer):
    """One process's part of an optimizer of several."""

    def _noisy(self) -> None:
        refused = None
        try:
            ready = self._prepared()
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
            raise PlanMismatchError(
                "another process refused this step, so that no process takes it."
            )
        if not all(torch.equal(each, mine) for each in all_told):
            raise PlanMismatchError(
                "the processes differ in noise multiplier, clip norm, divisor, data size, seed or "
                "epoch of the shards; give all of them the same."
            )
        self._passed(ready)

    def _numbers(self, ready: Ready) -> tuple[float, ...]:
        """What all processes must have alike: numbers of the step, and how units are shared out."""
        optimizer = self._optimizer
        divisor = float(optimizer.expected_batch_size) if self.divides else 0.0
        shards = (0.0, 0.0, 0.0) if self.stream is None else self.stream.shards()
        return float(optimizer.noise_multiplier), ready.norm, divisor, *shards

    def _passed(self, ready: Ready) -> None:
        """The ledger's answer, for all."""
        if distributed.get_rank() == 0:
            try:
                super()._passed(ready)
            except BaseException:
                from_first(False)
                raise
            from_first(True)
            return
        if not from_first(None):
            raise PlanMismatchError("process 0 refused this step; its own error says why.")
        self._noise.draw()
        self._note(ready)
