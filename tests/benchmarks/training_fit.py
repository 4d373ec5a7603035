"""What a training on losses of one example costs, beside plain torch.func and opacus.

Run ``python -m tests.benchmarks.training_fit [overhead] [opacus] [accuracy] [layers] [seeds]``; all
of them without a word.

*overhead*: a certified step beside the same loop in plain ``torch.func``, with samples and noise of
the same generator, and no ledger. Both take a step in turn, in one process; told is the median of
the differences, and of the ratios, of the thread's own time. *opacus*: the same models with opacus
alone, flat and ghost clipping, steps in turn. *accuracy*: on the digits at ε = 2 and 8. *layers*:
which layers ``vmap`` takes.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import FloatNoise, Ledger, Plan, guarantee
from dpaudit.training import Trainer, fit

RATE, NOISE, DELTA, CHUNK, TURN = 1 / 28, 1.1, 1e-5, 80, 8
X, Y = load_digits(return_X_y=True)
IMAGES, LABELS = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(Y)


class Convolutions(nn.Module):
    """A small CNN on 8 × 8 pixels."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Unflatten(-1, (1, 8, 8)),
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(-3),
            nn.Linear(32 * width, 10),
        )

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(x)


class Attention(nn.Module):
    """A layer of attention over the rows of a picture, of linear layers that opacus takes too."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(8, width), nn.Linear(8 * width, 10)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.norm, self.wide = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> Any:
        h = self.into(x.unflatten(-1, (8, 8)))
        scores = self.q(h) @ self.k(h).transpose(-1, -2) / h.shape[-1] ** 0.5
        h = self.norm(h + scores.softmax(-1) @ self.v(h))
        return self.out(torch.relu(self.wide(h)).flatten(-2))


def dense(hidden: int) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "dense, 32 hidden": dense(32),
    "dense, 256 hidden": dense(256),
    "dense, 1024 hidden": dense(1024),
    "convolutions": Convolutions,
    "attention": Attention,
}


def loss_of(model: nn.Module) -> Callable[[Mapping[str, Any], Any], Any]:
    def loss(parameters: Mapping[str, Any], example: Any) -> Any:
        x, y = example
        return cross_entropy(functional_call(model, parameters, (x,)), y)

    return loss


# -- overhead --------------------------------------------------------------------------------------


def plain(model: nn.Module, steps: int) -> Iterator[None]:
    """DP-SGD as an author writes it in plain torch.func, with chunks of the same size."""
    rng, optimizer = np.random.default_rng(), torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = vmap(grad(loss_of(model)), in_dims=(None, 0), randomness="different")
    parameters = dict(model.named_parameters())
    sizes = [p.numel() for p in parameters.values()]
    for _ in range(steps):
        drawn = np.flatnonzero(rng.random(len(IMAGES)) < RATE)
        total = np.zeros(sum(sizes))
        for start in range(0, len(drawn), CHUNK):
            here = drawn[start : start + CHUNK]
            rows = torch.from_numpy(np.resize(here, CHUNK))
            held = {name: p.detach() for name, p in parameters.items()}
            made = gradients(held, (IMAGES[rows], LABELS[rows]))
            flat = [each.reshape(CHUNK, -1) for each in made.values()]
            parts = torch.stack([torch.linalg.vector_norm(each, dim=1) for each in flat])
            factors = (1 / torch.linalg.vector_norm(parts, dim=0)).clamp_(max=1)
            factors[len(here) :] = 0
            total += torch.cat([factors @ each for each in flat]).numpy()
        total += rng.normal(scale=NOISE, size=len(total))
        noisy = torch.from_numpy(total / 64).to(torch.float32)
        for p, part in zip(parameters.values(), noisy.split(sizes), strict=True):
            p.grad = part.view_as(p)
        optimizer.step()
        yield


def certified(model: nn.Module, steps: int, journal: Path | None = None) -> Iterator[None]:
    plan = Plan.dp_sgd(noise_multiplier=NOISE, sample_rate=RATE, steps=steps)
    ledger = Ledger(plan, noise=FloatNoise(), journal=journal)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = IMAGES, LABELS
    for _ in Trainer(loss_of(model), model, data, ledger, divisor=64, chunk=CHUNK):
        optimizer.step()
        yield


def with_opacus(model: nn.Module, steps: int, **settings: Any) -> Iterator[None]:
    engine = PrivacyEngine(accountant="rdp")
    loader: Any = DataLoader(TensorDataset(IMAGES, LABELS), batch_size=65)  # 28 batches
    criterion: Any = nn.CrossEntropyLoss()
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        **settings,
    )
    model, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if len(made) == 4 else criterion
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            yield


def in_turn(arms: list[Iterator[None]], turns: int) -> list[list[float]]:
    """Seconds of a step of each arm: the shortest of a few, turn by turn.

    What others do on the machine makes some of them long, and it comes in waves.
    """
    own: list[list[float]] = [[] for _ in arms]
    for turn in range(turns):
        for place in range(len(arms)):
            which = (place + turn) % len(arms)
            times = sorted(_timed(arms[which]) for _ in range(TURN))
            own[which].append(times[0])
    return own


def _timed(steps: Iterator[None]) -> float:
    begin = time.thread_time()
    next(steps)
    return time.thread_time() - begin


def show_overhead(turns: int) -> None:
    print("a certified step beside plain torch.func, noise and samples of numpy in both")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MODELS.items():
            journal = Path(folder) / f"{name}.jsonl"
            steps = turns * TURN
            arms = [
                plain(make(), steps),
                certified(make(), steps),
                certified(make(), steps, journal),
            ]
            own = in_turn(arms, turns)
            said = []
            for each in own[1:]:
                more = median(a - b for a, b in zip(each, own[0], strict=True))
                ratio = median(a / b for a, b in zip(each, own[0], strict=True))
                said.append(f"{1e6 * more:+5.0f} us ({100 * (ratio - 1):+.1f} %)")
            print(
                f"  {name:20} {1e3 * median(own[0]):6.2f} ms: {said[0]}, with a journal {said[1]}"
            )


def main(words: list[str]) -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("opacus").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    show_overhead(20)


if __name__ == "__main__":
    main(sys.argv[1:])
