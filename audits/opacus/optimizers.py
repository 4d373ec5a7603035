"""Optimizers with one mistake each, and a training step that lets audits look at them.

All of them declare, and would be accounted for, as noise zC on a sum of gradients of norm C.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise, _mark_as_processed
from torch import nn

from dpaudit import AuditPair, Ledger, Plan, ZeroOut
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.training.opacus import attach

__all__ = ["DIMENSION", "NEIGHBOURS", "Training", "routine"]

DIMENSION = 12
STEPS = 3
BATCH = 8
MICRO_BATCHES = 4
NOISE, NORM = 1.0, 0.5


class ShareOnEveryMicroBatch(DPOptimizer):
    """Noise zC/m on each of m micro-batches: zC/√m on their sum."""

    def add_noise(self) -> None:
        _add_noise(self, self.noise_multiplier * self.max_grad_norm / MICRO_BATCHES, MICRO_BATCHES)


class NoiseOnEveryMicroBatch(DPOptimizer):
    """Noise zC on each of m micro-batches: √m times what is declared on their sum."""

    def add_noise(self) -> None:
        _add_noise(self, self.noise_multiplier * self.max_grad_norm, MICRO_BATCHES)


class NoiseOfTheMean(DPOptimizer):
    """Noise zC/B, right for the mean, on the sum."""

    def add_noise(self) -> None:
        _add_noise(self, self.noise_multiplier * self.max_grad_norm / BATCH, 1)


class ClipAfterAveraging(DPOptimizer):
    """The mean gradient is clipped to C, and then counts for the whole batch."""

    def clip_and_accumulate(self) -> None:
        sums = [g.sum(dim=0) for g in self.grad_samples]
        size = max(1, len(self.grad_samples[0]))
        norm = torch.sqrt(sum(((g / size) ** 2).sum() for g in sums))
        factor = (self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
        for p, total in zip(self.params, sums, strict=True):
            p.summed_grad = factor * total
            _mark_as_processed(p.grad_sample)


class SensitivityOfTheMean(DPOptimizer):
    """Clips to C, though the noise is that of a sum which one unit moves by C/B."""

    def clip_and_accumulate(self) -> None:
        declared = self.max_grad_norm
        self.max_grad_norm = declared * BATCH
        try:
            super().clip_and_accumulate()
        finally:
            self.max_grad_norm = declared


def _add_noise(optimizer: DPOptimizer, deviation: float, times: int) -> None:
    for p in optimizer.params:
        noise = sum(
            _generate_noise(deviation, p.summed_grad, optimizer.generator) for _ in range(times)
        )
        p.grad = (p.summed_grad + noise).view_as(p)
        _mark_as_processed(p.summed_grad)


@dataclass(frozen=True)
class Training:
    """A few DP-SGD steps of a linear model, with an optimizer that may be wrong.

    Rows are (features, target, weight). Weight 0 takes a row's gradient out and leaves all else as
    it is: neighbours under zero-out. Batches are Poisson samples drawn from the generator.

    Attributes:
        optimizer: class of the optimizer.
    """

    optimizer: type[DPOptimizer]

    def __call__(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> list[float]:
        """Train on rows, shape (n, DIMENSION + 2); the weights of the model."""
        rows = torch.tensor(np.asarray(data, dtype=np.float64))
        model = nn.Linear(DIMENSION, 1, bias=False, dtype=torch.float64)
        nn.init.zeros_(model.weight)
        sampled = GradSampleModule(model, loss_reduction="sum")
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        optimizer = self.optimizer(
            torch.optim.SGD(sampled.parameters(), lr=0.1),
            noise_multiplier=NOISE,
            max_grad_norm=NORM,
            expected_batch_size=BATCH,
            generator=generator,
        )
        attach(optimizer, ledger)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of inputs that need no gradient
            for _ in range(STEPS):
                batch = rows[rng.random(len(rows)) < BATCH / len(rows)]
                optimizer.zero_grad()
                x, y, weight = batch[:, :DIMENSION], batch[:, DIMENSION], batch[:, DIMENSION + 1]
                (weight * (sampled(x).squeeze(1) - y) ** 2).sum().backward()
                optimizer.step()
        return [float(w) for w in model.weight.detach().ravel()]


def routine(optimizer: type[DPOptimizer]) -> Routine:
    """The training with its plan, for replay and conformance."""
    plan = Plan.dp_sgd(
        noise_multiplier=NOISE,
        max_grad_norm=NORM,
        sample_rate=BATCH / _ROWS,
        steps=STEPS,
        relation=ZeroOut(),
    )
    function: Callable[..., Any] = Training(optimizer)
    return Routine(plan, function)


_ROWS = 16


def _neighbours() -> AuditPair:
    """Rows that pull a little to one side, and one that outweighs them on the other."""
    rows = np.zeros((_ROWS, DIMENSION + 2))
    rows[:, 0], rows[:, DIMENSION], rows[:, DIMENSION + 1] = 1.0, -1.0, 1.0
    rows[0, DIMENSION] = 1000.0
    without: NDArray[np.float64] = rows.copy()
    without[0, DIMENSION + 1] = 0.0
    return AuditPair(rows.tolist(), without.tolist(), "one large gradient against all others")


NEIGHBOURS = _neighbours()
