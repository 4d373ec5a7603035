"""What a training on losses of one example costs, beside plain torch.func and opacus.

Run ``python -m tests.benchmarks.training_fit [overhead] [sealed] [opacus] [accuracy] [layers]
[turns]``; all of them without a word.

*overhead*: a certified step beside the same loop in plain ``torch.func``, with samples and noise of
the same generator, and no ledger. Both take a step in turn, in one process; told is the median of
the differences, and of the ratios, of the thread's own time. *sealed*: seconds of a step of a
sealed run, by runs of few and of many steps, beside a step with a journal in one process.
*opacus*: the same models beside opacus alone, flat and ghost clipping, steps in turn.
*accuracy*: on the digits at ε = 2 and 8. *layers*: which layers ``vmap`` takes.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
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

from dpaudit import (
    ContinualGaussian,
    DpAuditError,
    FloatNoise,
    Invocation,
    Ledger,
    Plan,
    PrivacyUnit,
    TrustModel,
    ZeroOut,
    guarantee,
)
from dpaudit.mechanisms import BandedToeplitz
from dpaudit.training import Trainer, fit
from dpaudit.workflow.running import run_subject

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


# -- sealed ----------------------------------------------------------------------------------------

SEALED = """
from dataclasses import dataclass

import torch
from torch import nn
from torch.func import functional_call

from dpaudit import Claim, Plan, RunResult, SealedSubject, Table
from dpaudit.training import SealedTrainer

PIXELS = [f"p{n}" for n in range(64)]


@dataclass(frozen=True)
class Digits(SealedSubject):
    hidden: int = 32
    steps: int = 10

    def table(self):
        pixels = {name: {"type": "integer", "range": [0, 16]} for name in PIXELS}
        label = {"type": "integer", "range": [0, 9]}
        return Table("digits.csv", "who", {**pixels, "label": label})

    def plan(self):
        return Plan.dp_sgd(noise_multiplier=NOISE, sample_rate=RATE, steps=self.steps, unit="who")

    def claim(self):
        return Claim(100.0, 1e-5)

    def run(self, data, ledger, rng):
        model = nn.Sequential(nn.Linear(64, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 10))

        def loss(parameters, example):
            x, y = example
            return nn.functional.cross_entropy(functional_call(model, parameters, (x / 16,)), y)

        rows = data.group_rows(1)
        examples = rows.vector(PIXELS), rows.vector("label")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in SealedTrainer(loss, model, examples, ledger, divisor=64):
            optimizer.step()
        return RunResult({})
"""


def show_sealed(turns: int) -> None:
    print("a step of a sealed run, noise of numpy, beside one with a journal in one process")
    few, many, folder = 20, 420, Path.cwd()
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        known = {"NOISE": NOISE, "RATE": RATE}
        code = "".join(f"{name} = {value}\n" for name, value in known.items())
        Path("digits.py").write_text(code + SEALED)
        names = ["who", *(f"p{n}" for n in range(64)), "label"]
        rows = [[f"w{n}", *map(int, x), y] for n, (x, y) in enumerate(zip(X, Y, strict=True))]
        lines = [",".join(map(str, each)) for each in [names, *rows]]
        Path("digits.csv").write_text("\n".join(lines))
        for hidden in (32, 256, 1024):
            steps = certified(dense(hidden)(), 10 + many, Path(f"own-{hidden}.jsonl"))
            spent = [_wall(partial(next, steps)) for _ in range(many)]
            found = []
            for turn in range(turns):
                times = [
                    _wall(partial(_sealed, hidden, number, Path(f"{hidden}-{number}-{turn}")))
                    for number in (few, many)
                ]
                found.append((times[1] - times[0]) / (many - few))
            own, sealed = 1e3 * median(spent), 1e3 * median(found)
            print(
                f"  dense, {hidden:4} hidden {own:6.2f} ms: {sealed:6.2f} ms, {sealed - own:+.2f}"
            )
        os.chdir(folder)


def _wall(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _sealed(hidden: int, steps: int, folder: Path) -> None:
    settings = [f"hidden={hidden}", f"steps={steps}"]
    run_subject("digits.py:Digits", settings, None, None, folder, float_noise=True, sealed=True)


# -- beside opacus ---------------------------------------------------------------------------------

WAYS: dict[str, Callable[[nn.Module, int], Iterator[None]]] = {
    "fit": certified,
    "opacus": with_opacus,
    "opacus, ghost": partial(with_opacus, grad_sample_mode="ghost"),
}


def show_opacus(turns: int) -> None:
    print("a step in times of one of opacus, steps in turn, and its peak of memory in MiB")
    for name, make in MODELS.items():
        arms = [way(make(), turns * TURN) for way in WAYS.values()]
        own = dict(zip(WAYS, in_turn(arms, turns), strict=True))
        said = [
            f"{each} {median(a / b for a, b in zip(times, own['opacus'], strict=True)):.2f}, "
            f"{_memory(name, each):.0f} MiB"
            for each, times in own.items()
        ]
        print(f"  {name:20} {'; '.join(said)}")


def _memory(model: str, way: str) -> float:
    """Of a process of its own that takes ten steps."""
    words = [sys.executable, "-m", __spec__.name, "memory", model, way]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def tell_memory(model: str, way: str) -> None:
    """The peak of ten steps beyond what the process holds after one of a small model."""
    next(WAYS[way](dense(8)(), 1))  # loads what the libraries need when they are first used
    steps, own = WAYS[way](MODELS[model](), 10), Path("/proc/self")
    (own / "clear_refs").write_text("5")  # the peak begins anew
    before = _held(own, "VmRSS")
    for _ in range(10):
        next(steps)
    print((_held(own, "VmHWM") - before) / 1024)


def _held(own: Path, what: str) -> int:
    lines = (own / "status").read_text("utf-8").splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith(what))


# -- accuracy --------------------------------------------------------------------------------------

TESTED, BATCHES, PASSES, RATES = 297, 10, 10, (0.5, 1.0, 2.0)
SIZE = len(X) - TESTED


def least_noise(plan: Callable[[float], Plan], epsilon: float) -> float:
    """σ by bisection, to a thousandth; the guarantee is at most ε."""
    low, high = 0.1, 1000.0
    while high > low * 1.001:
        middle = (low * high) ** 0.5
        found = guarantee(plan(middle), DELTA).epsilon
        low, high = (middle, high) if found > epsilon else (low, middle)
    return high


def sampled(sigma: float) -> Plan:
    return Plan.dp_sgd(
        noise_multiplier=sigma, sample_rate=1 / BATCHES, epochs=PASSES, relation=ZeroOut()
    )


def of_writers(sigma: float) -> Plan:
    """Users of three rows each."""
    return Plan.dp_sgd(
        noise_multiplier=sigma,
        sample_rate=1 / BATCHES,
        epochs=PASSES,
        unit="user",
        relation=ZeroOut(),
    )


def correlated(sigma: float) -> Plan:
    law = ContinualGaussian(
        sigma=sigma,
        factorization=BandedToeplitz(BATCHES * PASSES, BATCHES),
        participations=PASSES,
        min_separation=BATCHES,
        fixed_steps=True,
        cyclic=True,
    )
    about = PrivacyUnit("example"), ZeroOut(), TrustModel.CENTRAL
    return Plan.of(Invocation(law, 1.0, *about, at="gradient"))


def right(model: Any) -> float:
    with torch.no_grad():
        return float((model(IMAGES[SIZE:]).argmax(1) == LABELS[SIZE:]).double().mean())


def by_fit(plan: Plan, rate: float, seed: int, **settings: Any) -> float:
    torch.manual_seed(seed)
    model = dense(32)()
    ledger = Ledger(plan, noise=FloatNoise())
    data = IMAGES[:SIZE], LABELS[:SIZE]
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    fit(loss_of(model), model, data, ledger, optimizer=optimizer, **settings)
    return right(model)


def by_opacus(sigma: float, rate: float, seed: int) -> float:
    torch.manual_seed(seed)
    model: Any = dense(32)()
    data = TensorDataset(IMAGES[:SIZE], LABELS[:SIZE])
    loader: Any = DataLoader(data, batch_size=SIZE // BATCHES)
    model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        data_loader=loader,
        noise_multiplier=sigma,
        max_grad_norm=1.0,
    )
    for _ in range(PASSES):
        for x, y in loader:
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
    return right(model)


def show_accuracy(seeds: int) -> None:
    print(f"digits, {SIZE} rows, {PASSES} passes of {BATCHES} batches, δ = {DELTA}; {seeds} seeds")
    writers = {"users": [row // 3 for row in range(SIZE)], "most_rows": 3}
    for epsilon in (2.0, 8.0):
        sigma = least_noise(sampled, epsilon)
        others = least_noise(correlated, epsilon)
        ways: dict[str, Callable[[float, int], float]] = {
            f"fit, σ {sigma:.3f}": partial(by_fit, sampled(sigma)),
            f"opacus, σ {sigma:.3f}": partial(by_opacus, sigma),
            "fit, users of 3 rows": partial(by_fit, of_writers(sigma), **writers),
            f"fit, ten bands, σ {others:.3f}": partial(by_fit, correlated(others)),
        }
        for name, way in ways.items():
            rows = {rate: [way(rate, seed) for seed in range(seeds)] for rate in RATES}
            best = max(rows, key=lambda each: mean(rows[each]))
            error = 100 * stdev(rows[best]) / seeds**0.5
            said = f"{100 * mean(rows[best]):.1f} ± {error:.1f} % at rate {best} of {RATES}"
            print(f"  ε = {epsilon:g}  {name:24} {said}")


# -- layers ----------------------------------------------------------------------------------------


class First(nn.Module):
    """The first of what a layer returns."""

    def __init__(self, inner: nn.Module, times: int = 1) -> None:
        super().__init__()
        self.inner, self.times = inner, times

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(*[x] * self.times)[0]


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "Linear": lambda: nn.Linear(4, 3),
    "Conv1d": lambda: nn.Conv1d(5, 3, 2),
    "Conv2d": lambda: nn.Sequential(nn.Unflatten(0, (1, 5)), nn.Conv2d(1, 3, 2)),
    "ConvTranspose1d": lambda: nn.ConvTranspose1d(5, 3, 2),
    "Embedding": lambda: nn.Embedding(4, 3),
    "LayerNorm": lambda: nn.LayerNorm(4),
    "RMSNorm": lambda: nn.RMSNorm(4),
    "GroupNorm": lambda: nn.Sequential(nn.Unflatten(0, (1, 5)), nn.GroupNorm(1, 5)),
    "InstanceNorm1d": lambda: nn.InstanceNorm1d(5, affine=True),
    "BatchNorm1d, training": lambda: nn.Sequential(nn.Unflatten(0, (1, 5)), nn.BatchNorm1d(5)),
    "BatchNorm1d, evaluating": lambda: nn.BatchNorm1d(4).eval(),
    "Dropout": lambda: nn.Sequential(nn.Linear(4, 3), nn.Dropout()),
    "PReLU": nn.PReLU,
    "MultiheadAttention": lambda: First(nn.MultiheadAttention(4, 2, batch_first=True), 3),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
    "LSTM": lambda: First(nn.LSTM(4, 3, batch_first=True)),
    "LSTM, 64 bits": lambda: First(nn.LSTM(4, 3, batch_first=True)).double(),
    "GRU": lambda: First(nn.GRU(4, 3, batch_first=True)),
    "RNN": lambda: First(nn.RNN(4, 3, batch_first=True)),
    "LSTMCell": lambda: First(nn.LSTMCell(4, 3)),
    "GRUCell": lambda: nn.GRUCell(4, 3),
    "weight_norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)),
}
"""On examples of five rows of four numbers."""


def show_layers() -> None:
    print("layers that vmap takes")
    plan = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=1, relation=ZeroOut())
    for name, make in LAYERS.items():
        model = make()
        kind = next(model.parameters()).dtype

        def loss(parameters: Any, example: Any, model: nn.Module = model) -> Any:
            return functional_call(model, parameters, (example,)).sum()

        data = torch.randint(0, 4, (6, 5)) if name == "Embedding" else torch.randn(6, 5, 4).to(kind)
        try:
            next(Trainer(loss, model, data, Ledger(plan, noise=FloatNoise())))
        except DpAuditError as error:
            print(f"  {name:26} no: {error!s:.110}")
        else:
            print(f"  {name:26} yes")


def main(words: list[str]) -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("opacus").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if words[:1] == ["memory"]:
        tell_memory(*words[1:])
        return
    number = int(words.pop()) if words and words[-1].isdigit() else 20
    parts: dict[str, Callable[[], None]] = {
        "overhead": partial(show_overhead, number),
        "sealed": partial(show_sealed, max(1, number // 8)),
        "opacus": partial(show_opacus, number),
        "accuracy": partial(show_accuracy, max(2, number // 3)),
        "layers": show_layers,
    }
    for name in words or parts:
        parts[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
