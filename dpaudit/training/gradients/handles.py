"""Trainings in the code of a sealed run, which holds handles, parameters and noisy gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from dpaudit.base.errors import InputError
from dpaudit.sealed.handles import SealedLedger, Vectors
from dpaudit.training.declared import Adaptive
from dpaudit.training.gradients.graphs import bytes_of, tensor_of
from dpaudit.training.gradients.tracing import traced
from dpaudit.training.gradients.trainer import trained
from dpaudit.training.gradients.trial import Loss


class SealedTrainer:
    """The steps of a training in a sealed run, each a dict of noisy mean gradients by name.

    The loss leaves as a graph of what it calls of torch on an example of zeros. Another process
    samples units, computes their gradients, clips, adds and releases.

    Args:
        loss: of parameters by name and one example, as for :class:`Trainer`.
        parameters: a module, or a mapping of tensors, that are changed in place by an optimizer.
        data: vectors of the same rows, or a tuple, a list or a dict of them; whole numbers are
            integers. Of a unit with several rows the gradients are averaged.
        ledger: of the run.
        divisor: a public number of units, that noisy sums are divided by.
        at: label of the plan's invocations.
        adaptive: how the clip norm follows.
        clip_norm: to begin with, where it follows.

    Attributes:
        parameters: by name, those that are trained.
        taken: steps so far.

    Raises:
        InputError: if an argument is wrong.
        UnsupportedError: if the loss calls what no sealed run computes.
        PlanMismatchError: if the plan declares no such training.
    """

    exceeded = False

    def __init__(
        self,
        loss: Loss,
        parameters: nn.Module | Mapping[str, Any],
        data: Any,
        ledger: SealedLedger,
        *,
        divisor: float,
        at: str = "gradient",
        adaptive: Adaptive | None = None,
        clip_norm: float | None = None,
    ) -> None:
        self.ledger, self.parameters, self.taken = ledger, trained(parameters), 0
        leaves, form = tree_flatten(data)
        if not all(isinstance(each, Vectors) for each in leaves):
            raise InputError("data must be vectors of rows, or a tuple, a list or a dict of them.")
        first = next(iter(self.parameters.values()), None)
        if first is None:
            raise InputError("no parameter is trained; give at least one that is.")
        zeros = [
            torch.zeros(each.shape, dtype=torch.int64 if each.step == 1 else first.dtype)
            for each in leaves
        ]
        graph = traced(loss, self.parameters, zeros, lambda parts: tree_unflatten(parts, form))
        self._number = ledger.asked(
            "training",
            of=[each.number for each in leaves],
            loss=graph,
            type=str(first.dtype).removeprefix("torch."),
            parameters=[[name, list(each.shape)] for name, each in self.parameters.items()],
            divisor=divisor,
            at=at,
            adaptive=None if adaptive is None else asdict(adaptive),
            clip_norm=clip_norm,
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        """One step, by the parameters as they are now.

        Raises:
            InputError: if a parameter is not finite.
        """
        flat = torch.cat([each.detach().reshape(-1) for each in self.parameters.values()])
        given = bytes_of(flat)
        data = self.ledger.asked("gradients", training=self._number, parameters=given)
        if data is None:
            raise StopIteration
        mean = tensor_of(given | {"data": data})
        parts = mean.split([each.numel() for each in self.parameters.values()])
        found = {}
        for (name, each), part in zip(self.parameters.items(), parts, strict=True):
            found[name] = part.view_as(each)
            if each.is_leaf:
                each.grad = found[name]
        self.taken += 1
        return found
