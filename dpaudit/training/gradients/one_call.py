"""A whole training in one call, with a file from which it goes on where it was cut off."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpaudit.base import files, validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.plan import Plan
from dpaudit.training.gradients.clipped import Loss
from dpaudit.training.gradients.trainer import Trainer


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
            where it is there. Steps after the last one stay charged, and are not taken again.
        every: steps from one checkpoint to the next.
        **settings: further ones of :class:`Trainer`.

    Returns:
        The trainer, which certifies.

    Raises:
        InputError: if the optimizer holds other parameters, or the checkpoint is none of this
            ledger; else as :class:`Trainer`.
    """
    trainer = Trainer(loss, parameters, data, ledger, **settings)
    _require_optimizer(optimizer, trainer.parameters)
    every = validate.integer_at_least(1, every=every)
    kept = (
        None if checkpoint is None else _Checkpoint(Path(checkpoint), trainer, optimizer, scheduler)
    )
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
    """A file with what a training has come to; it holds noisy results alone."""

    def __init__(self, path: Path, trainer: Trainer, optimizer: Any, scheduler: Any) -> None:
        self._path, self._trainer = path, trainer
        self._states = {"optimizer": optimizer}
        if scheduler is not None:
            self._states["scheduler"] = scheduler
        if path.exists():
            self._read()

    def write(self) -> None:
        """Write it whole or not at all."""
        trainer = self._trainer
        held = {name: each.state_dict() for name, each in self._states.items()}
        held["parameters"] = {name: each.detach() for name, each in trainer.parameters.items()}
        held["plan"], held["steps"] = trainer.ledger.plan.hash, trainer.charged
        held["clip_norm"] = trainer.clip_norm
        content = io.BytesIO()
        torch.save(held, content)
        files.write(self._path, content.getvalue())

    def _read(self) -> None:
        try:
            held = torch.load(self._path, weights_only=True)
            plan, steps, own = held["plan"], held["steps"], held["parameters"]
            states = {name: held[name] for name in self._states}
        except Exception as error:  # noqa: BLE001  # of pickle, zip or the file system
            raise InputError(
                f"checkpoint {files.shown(self._path)} is none of this training "
                f"({type(error).__name__}); give another file."
            ) from None
        trainer = self._trainer
        known = trainer.charged
        if plan != trainer.ledger.plan.hash or steps > known:
            raise InputError(
                f"checkpoint {files.shown(self._path)} holds {steps} steps, of which the ledger "
                f"knows {known}; resume the ledger of that training from its journal."
            )
        if {name: each.shape for name, each in own.items()} != {
            name: each.shape for name, each in trainer.parameters.items()
        }:
            raise InputError(
                f"checkpoint {files.shown(self._path)} holds other parameters; give another file."
            )
        with torch.no_grad():
            for name, each in trainer.parameters.items():
                each.copy_(own[name])
        for name, each in self._states.items():
            each.load_state_dict(states[name])
        trainer.clip_norm = held["clip_norm"]


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
            "optimizer holds other parameters than those that are trained; give it these, all of "
            "them and no more."
        )
