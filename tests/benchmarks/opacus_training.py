"""What a ledger costs an opacus training, and what it says beside opacus' own number.

Run ``python -m tests.benchmarks.opacus_training [epochs]``. Trainings on the digits of scikit-
learn, without and with a ledger, take a few steps in turn; compared is the thread's own time for a
step, loader included, which other processes disturb least: the median difference of all turns. A
journal writes every step to its file, so that a crash forgets none.

The budget says where the time goes, in the training itself, where the gradients of rows have just
gone through the caches: Python that takes 5 us in a loop of its own takes up to 90 there.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import Ledger, Plan
from dpaudit.training.opacus import Training, attach
from dpaudit.training.opacus.optimizer import ObservedOptimizer
from dpaudit.training.opacus.side_effects import Inputs, TensorCopies, Writes

NOISE, BATCH, STEPS, DELTA = 1.1, 64, 29, 1e-5
TURN = 8
"""Steps that one arm takes before the next one."""


@dataclass(frozen=True)
class Arm:
    """One training, a step at a time."""

    engine: PrivacyEngine
    training: Training | None
    steps: Iterator[None]


def digits() -> TensorDataset:
    x, y = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))


def network(hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def arm(
    data: TensorDataset, hidden: int, epochs: int, journal: Path | None, watched: bool = True
) -> Arm:
    loader: Any = DataLoader(data, batch_size=BATCH, shuffle=True)
    engine = PrivacyEngine(accountant="rdp")
    training = None
    if watched:
        plan = Plan.dp_sgd(noise_multiplier=NOISE, sample_rate=1 / len(loader), epochs=epochs)
        training = attach(engine, Ledger(plan, journal=journal), expected_batch_size=BATCH)
    model: Any = network(hidden)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=loader,
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
    )

    def steps() -> Iterator[None]:
        for _ in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                cross_entropy(model(x), y).backward()
                optimizer.step()
                yield

    return Arm(engine, training, steps())


def overhead(data: TensorDataset, hidden: int, epochs: int, journal: Path) -> str:
    """A few steps of three arms in turn; what a step of two costs beyond that of the plain."""
    arms = [
        arm(data, hidden, epochs, None, watched=False),
        arm(data, hidden, epochs, None),
        arm(data, hidden, epochs, journal),
    ]
    own: list[list[float]] = [[], [], []]
    for turn in range(epochs * STEPS // TURN):
        for place in range(3):
            which = (place + turn) % 3
            own[which].append(lower_quartile([timed(arms[which].steps) for _ in range(TURN)]))
    plain = median(own[0])
    beyond = [
        median(with_it - without for with_it, without in zip(each, own[0], strict=True))
        for each in own[1:]
    ]
    said = [f"{1e6 * more:+.0f} us ({100 * more / plain:+.1f} %)" for more in beyond]
    return f"{said[0]}, with a journal file {said[1]}, of a step of {1e3 * plain:.2f} ms"


PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "copies": ((TensorCopies, "keep"),),
    "comparisons": ((TensorCopies, "unchanged"), (TensorCopies, "finite")),
    "digest of the inputs": ((Inputs, "_look"),),
    "the ledger's door": ((Ledger, "observe"),),
    "the rest": (
        (ObservedOptimizer, "_summed"),
        (ObservedOptimizer, "_noisy"),
        (Writes, "_require_noisy"),
        (Writes, "_after"),
    ),
    "opacus": ((DPOptimizer, "clip_and_accumulate"), (DPOptimizer, "add_noise")),
}


def budget(data: TensorDataset, hidden: int, epochs: int) -> str:
    """Where the time of a ledger goes, each part without those within it, by its first decile."""
    spent: dict[tuple[str, str], list[int]] = {}
    within: list[int] = []

    def watched(of: Callable[..., Any], key: tuple[str, str]) -> Callable[..., Any]:
        own = spent.setdefault(key, [])

        def call(*given: Any, **named: Any) -> Any:
            within.append(0)
            begin = time.thread_time_ns()
            result = of(*given, **named)
            taken = time.thread_time_ns() - begin
            own.append(taken - within.pop())
            if within:
                within[-1] += taken
            return result

        return call

    with pytest.MonkeyPatch.context() as patching:
        for name, calls in PARTS.items():
            for owner, method in calls:
                of = watched(getattr(owner, method), (name, method))
                patching.setattr(owner, method, of)
        steps = sum(1 for _ in arm(data, hidden, epochs, None).steps)
    costs = dict.fromkeys(PARTS, 0.0)
    for (name, _), times in spent.items():
        costs[name] += sorted(times)[len(times) // 10] * len(times) / steps / 1e3
    del costs["opacus"]
    parts = ", ".join(f"{name} {cost:.0f}" for name, cost in costs.items())
    return f"{sum(costs.values()):.0f} us: {parts}"


def timed(steps: Iterator[None]) -> float:
    """Seconds of one step."""
    begin = time.thread_time()
    next(steps)
    return time.thread_time() - begin


def lower_quartile(times: list[float]) -> float:
    """Of a few steps; what others do on the machine makes some of them long."""
    return sorted(times)[len(times) // 4]


def main(epochs: int) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = digits()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = arm(data, 32, 3, folder / "three.jsonl")
        assert run.training is not None
        for _ in run.steps:
            pass
        print(f"digits, 3 epochs, batch {BATCH}, noise {NOISE}, delta {DELTA:g}")
        print(f"opacus, RDP        {run.engine.get_epsilon(DELTA):.5f}")
        for accountant in ("rdp", "pld", "best"):
            certificate = run.training.certificate(DELTA, accountant=accountant)
            assert certificate.guarantee is not None
            print(f"certificate, {accountant:5} {certificate.guarantee.epsilon:.5f}")
        for hidden in (32, 256, 1024):
            cost = overhead(data, hidden, epochs, folder / f"{hidden}.jsonl")
            print(f"ledger, {hidden:4} hidden units: {cost}")
            print(f"    of these {budget(data, hidden, epochs)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
