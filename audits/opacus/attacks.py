"""Attacks on what opacus does: its loader without sampling, and its expected batch size.

Each run is one training step of opacus itself, as ``PrivacyEngine.make_private`` sets it up; the
adversary sees the noisy gradient. The claim is that of the whole training, of which one step is
enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import AddRemove, AuditPair, AuditRecord, Plan, Relation, ZeroOut, guarantee
from dpaudit.auditing import audit_release

__all__ = ["DELTA", "expected_batch_audit", "first_batch_audit"]

DELTA = 1e-5
BATCHES = 50
WIDE = 2000
"""Parameters of the model whose noise is measured: its scale shows within 1/√(2·2000) = 1.6 %."""

Gradient = NDArray[np.float64]


def first_batch_audit(*, poisson: bool, runs: int, seed: int) -> AuditRecord:
    """Whether the first row of the data shows in the first batch.

    Args:
        poisson: whether ``make_private`` puts Poisson sampling in place of a loader that reads the
            rows in their order. The claim is amplified either way.
        runs: runs on each side.
        seed: of the audit.
    """
    without = np.zeros((BATCHES, 1))
    canary = without.copy()
    canary[0] = 1.0
    pair = AuditPair(canary.tolist(), without.tolist(), "the first row's gradient is 1 or 0")
    epsilon = _claimed(1.0, BATCHES, ZeroOut())

    def release(data: Any, size: int, rng: np.random.Generator) -> Gradient:
        gradients = _gradients(data, 1, 1.0, size, rng, poisson_sampling=poisson)
        return np.array([float(gradient[0]) for gradient in gradients])

    return audit_release(release, pair, epsilon=epsilon, delta=DELTA, runs=runs, seed=seed)


def expected_batch_audit(*, public: bool, runs: int, seed: int) -> AuditRecord:
    """Whether the divisor of the noisy sum tells 20 rows from 19 (opacus issues 571 and 819).

    With batches of 5 both have 4 batches; opacus divides by ⌊20/4⌋ = 5 or by ⌊19/4⌋ = 4, so the
    scale of the noise differs by a quarter, in every parameter.

    Args:
        public: whether the divisor is 5 for both.
        runs: runs on each side.
        seed: of the audit.
    """
    rows = np.zeros((20, 1))
    pair = AuditPair(rows.tolist(), rows[:-1].tolist(), "one row more or less, no gradient at all")
    epsilon = _claimed(2.0, 4, AddRemove())
    divisor = 5 if public else None

    def release(data: Any, size: int, rng: np.random.Generator) -> Gradient:
        gradients = _gradients(data, 5, 2.0, size, rng, divisor=divisor, width=WIDE)
        return np.array([float(np.sqrt(np.mean(gradient**2))) for gradient in gradients])

    return audit_release(release, pair, epsilon=epsilon, delta=DELTA, runs=runs, seed=seed)


def _claimed(noise: float, batches: int, relation: Relation) -> float:
    """ε of one epoch of Poisson batches."""
    plan = Plan.dp_sgd(noise_multiplier=noise, sample_rate=1 / batches, epochs=1, relation=relation)
    return guarantee(plan, DELTA).epsilon


def _gradients(
    data: Any,
    batch_size: int,
    noise: float,
    size: int,
    rng: np.random.Generator,
    *,
    width: int = 1,
    divisor: float | None = None,
    **settings: Any,
) -> list[Gradient]:
    """``size`` times the gradient of a first step, shape (width,), each with a fresh sample."""
    rows = torch.tensor(np.asarray(data, dtype=np.float64))
    generator = torch.Generator()
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # opacus warns of its insecure generator
        module, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
            **_parts(rows, batch_size, width),
            noise_multiplier=noise,
            max_grad_norm=1.0,
            noise_generator=generator,
            **settings,
        )
        if divisor is not None:
            optimizer.expected_batch_size = divisor
        step = _stepper(module, optimizer, width)
        found = []
        for run_seed in rng.integers(2**62, size=size):
            torch.manual_seed(int(run_seed))
            generator.manual_seed(int(run_seed) ^ 1)
            found.append(step(next(iter(loader))[0].to(torch.float64)))
    return found


def _parts(rows: torch.Tensor, batch_size: int, width: int) -> dict[str, Any]:
    module = nn.Linear(1, width, bias=False, dtype=torch.float64)
    return {
        "module": module,
        "optimizer": torch.optim.SGD(module.parameters(), lr=0.0),
        "data_loader": DataLoader(TensorDataset(rows), batch_size=batch_size),
    }


def _stepper(module: Any, optimizer: Any, width: int) -> Callable[[torch.Tensor], Gradient]:
    """One step on a batch of rows x, whose loss has the gradient x/√width in every parameter."""

    def step(batch: torch.Tensor) -> Gradient:
        optimizer.zero_grad()
        # opacus undoes the mean over the batch, so that a row's gradient is x itself.
        (module(batch).sum() / (max(1, len(batch)) * width**0.5)).backward()
        optimizer.step()
        (parameter,) = module.parameters()
        return np.asarray(parameter.grad.detach().numpy().ravel(), dtype=np.float64).copy()

    return step
