"""Correlated beside independent noise, at one ε, on the digits of scikit-learn.

Run ``python -m tests.benchmarks.correlated_training [seeds]``. DP-SGD has Poisson batches; the
correlated trainings take fixed batches in turn, so that nothing is amplified by sampling, and each
passes through a ledger. σ of each is calibrated here to the same ε at δ = 1e-5.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import ContinualGaussian, Invocation, Ledger, Plan, PrivacyUnit, TrustModel, ZeroOut
from dpaudit import guarantee as guaranteed
from dpaudit.mechanisms import BandedToeplitz, BufferedToeplitz
from dpaudit.mechanisms.continual import Factorization
from dpaudit.training.opacus import FixedBatches, attach

EPSILON, DELTA, BATCH, PASSES, TESTED = 2.0, 1e-5, 150, 10, 297
X, Y = load_digits(return_X_y=True)
SIZE = len(X) - TESTED
ROUNDS = SIZE // BATCH
RATES = (0.25, 0.5, 1.0, 2.0)


def correlated(factorization: Factorization) -> Callable[[float], Plan]:
    def plan(sigma: float) -> Plan:
        mechanism = ContinualGaussian(
            sigma=sigma,
            factorization=factorization,
            participations=PASSES,
            min_separation=ROUNDS,
            fixed_steps=True,
            cyclic=True,
        )
        about = (PrivacyUnit("example"), ZeroOut(), TrustModel.CENTRAL)
        return Plan.of(Invocation(mechanism, 1.0, *about, at="gradient"))

    return plan


def sampled(sigma: float) -> Plan:
    return Plan.dp_sgd(
        noise_multiplier=sigma, sample_rate=1 / ROUNDS, epochs=PASSES, relation=ZeroOut()
    )


def least_noise(plan: Callable[[float], Plan]) -> float:
    """σ by bisection, to a thousandth; the guarantee is at most ε."""
    low, high = 0.1, 1000.0
    while high > low * 1.001:
        middle = (low * high) ** 0.5
        found = guaranteed(plan(middle), DELTA).epsilon
        low, high = (middle, high) if found > EPSILON else (low, middle)
    return high


def accuracy(plan: Plan, noise: float, rate: float, seed: int) -> float:
    torch.manual_seed(seed)
    x, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(Y)
    data = TensorDataset(x[:SIZE], y[:SIZE])
    loader: Any = DataLoader(data, batch_size=BATCH)
    if not noise:
        loader = DataLoader(data, batch_sampler=FixedBatches(SIZE, BATCH, seed))
    model: Any = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    engine = PrivacyEngine()
    training = attach(engine, Ledger(plan, rng=np.random.default_rng(seed)))
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=1.0,
        poisson_sampling=bool(noise),
    )
    for _ in range(PASSES):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    training.check()
    with torch.no_grad():
        return float((model(x[SIZE:]).argmax(1) == y[SIZE:]).double().mean())


def main(seeds: int) -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("opacus").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    steps = ROUNDS * PASSES
    kinds: list[tuple[str, Callable[[float], Plan]]] = [
        ("DP-SGD, Poisson batches", sampled),
        (f"banded, {ROUNDS} bands", correlated(BandedToeplitz(steps, ROUNDS))),
        ("5 buffers, fitted", correlated(BufferedToeplitz.fitted(steps, 5, PASSES, ROUNDS))),
    ]
    print(f"ε = {EPSILON}, δ = {DELTA}, {PASSES} passes of {ROUNDS} batches; {seeds} seeds")
    for name, plan in kinds:
        sigma = least_noise(plan)
        noise = sigma if plan is sampled else 0.0
        rows = {r: [accuracy(plan(sigma), noise, r, s) for s in range(seeds)] for r in RATES}
        best = max(rows, key=lambda each: mean(rows[each]))
        error = stdev(rows[best]) / seeds**0.5
        reached = f"{100 * mean(rows[best]):.1f} ± {100 * error:.1f} %"
        print(f"{name:<26} σ {sigma:7.3f}  accuracy {reached} at rate {best} of {RATES}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
