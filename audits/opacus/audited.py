"""Trainings that are audited: small networks, ways to train them, and canaries among the rows.

A canary is a row of its own whose gradient lies along one coordinate that nobody else's touches, as
long as the clip norm. So each canary's coordinate shows its own part of every step, and thousands
of them in one training are as many independent runs of the mechanism: each is in a step, or not, by
a coin of its own, and each coordinate has noise of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import PrivacyEngine
from opacus.layers import DPMultiheadAttention
from sklearn.datasets import load_digits
from torch import nn
from torch.func import functional_call
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import FloatNoise, Ledger, Plan, guarantee
from dpaudit.training import Trainer
from dpaudit.training.opacus import PoissonLoader, attach

PIXELS, CLASSES, ROWS = 64, 10, 600
_STEEP = 1e3
"""Slope of a canary's loss: far beyond any clip norm."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """What is declared of a training, and what that proves."""

    noise: float = 2.0
    batches: int = 4
    epochs: int = 5
    rate: float = 0.3
    delta: float = 1e-5

    @property
    def plan(self) -> Plan:
        """DP-SGD on examples."""
        rate = 1 / self.batches
        return Plan.dp_sgd(noise_multiplier=self.noise, sample_rate=rate, epochs=self.epochs)

    @cached_property
    def certified(self) -> float:
        """ε of the plan."""
        return guarantee(self.plan, self.delta).epsilon

    def likelihood(self, sums: Floats) -> Floats:
        """How much likelier a canary's part of the noisy sums (n, steps) makes it, (n,)."""
        rate = 1 / self.batches
        ratios = np.expm1((sums - 0.5) / self.noise**2)
        return np.asarray(np.log1p(rate * ratios).sum(axis=1))


class Convolutions(nn.Module):
    """A small CNN on 8 × 8 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(256, CLASSES),
        )

    def forward(self, x: torch.Tensor) -> Any:
        """Logits (n, 10) of pixels (n, 64)."""
        return self.inner(x.reshape(-1, 1, 8, 8))


class Attention(nn.Module):
    """A small transformer, whose tokens are the rows of a picture."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(8, width), nn.Linear(8 * width, CLASSES)
        self.attend = DPMultiheadAttention(width, 2, batch_first=True)
        self.norm, self.wide = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> Any:
        """Logits (n, 10) of pixels (n, 64)."""
        tokens = self.into(x.reshape(-1, 8, 8))
        tokens = self.norm(tokens + self.attend(tokens, tokens, tokens, need_weights=False)[0])
        return self.out(torch.relu(self.wide(tokens)).flatten(1))


NETWORKS: dict[str, Callable[[], nn.Module]] = {"CNN": Convolutions, "transformer": Attention}


class Marked(nn.Module):
    """A network beside a coordinate for each canary; inputs are pixels and a canary's number."""

    def __init__(self, network: nn.Module, canaries: int) -> None:
        super().__init__()
        self.network, self.marks = network, nn.Embedding(canaries + 1, 1)
        nn.init.zeros_(self.marks.weight)

    def forward(self, x: torch.Tensor) -> Any:
        """Logits, and the canary's coordinate, (n, 11)."""
        mark = self.marks(x[:, PIXELS].long())
        return torch.cat([self.network(x[:, :PIXELS]), mark], dim=1)


class Losses(nn.CrossEntropyLoss):
    """Cross-entropy of rows with a label, and the coordinate of canaries, whose label is −1."""

    def forward(self, found: torch.Tensor, labels: torch.Tensor) -> Any:
        """One loss, or one for each row."""
        each = nn.functional.cross_entropy(found[:, :-1], labels.clamp(min=0), reduction="none")
        each = torch.where(labels < 0, _STEEP * found[:, -1], each)
        return each if self.reduction == "none" else each.sum() / max(1, len(each))


@cache
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels and labels of the digits that are no canaries."""
    x, y = load_digits(return_X_y=True)
    return torch.tensor(x[:ROWS] / 16, dtype=torch.float32), torch.tensor(y[:ROWS])


def rows(x: torch.Tensor, y: torch.Tensor, members: NDArray[np.bool_]) -> TensorDataset:
    """Rows with labels, and the members among the canaries."""
    plain = torch.cat([x, torch.full((len(x), 1), float(members.size))], dim=1)
    numbers = torch.tensor(np.flatnonzero(members), dtype=torch.float32)[:, None]
    marks = torch.cat([torch.zeros(len(numbers), PIXELS), numbers], dim=1)
    labels = torch.cat([y, torch.full((len(numbers),), -1)])
    return TensorDataset(torch.cat([plain, marks]), labels)


@dataclass(frozen=True)
class Path:
    """A way to train: of opacus alone, or watched by a ledger.

    Attributes:
        name: of it.
        watched: whether a ledger takes part, and draws the batches by its own loader.
        settings: for ``make_private``.
        private: whether anything is clipped or noisy.
    """

    name: str
    watched: bool = False
    settings: tuple[tuple[str, Any], ...] = ()
    private: bool = True

    def train(
        self, setting: Setting, network: nn.Module, data: TensorDataset, canaries: int, seed: int
    ) -> tuple[nn.Module, Floats]:
        """The model, and what the canaries' coordinates moved by in every step, (canaries, steps).

        Args:
            setting: of the training.
            network: to be trained.
            data: as :func:`rows` makes them.
            canaries: how many coordinates there are.
            seed: of noise and batches.
        """
        torch.manual_seed(seed)
        model: Any = Marked(network, canaries)
        weights, expected = model.marks.weight, ROWS / setting.batches
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # opacus warns of its insecure generator
            step, loader = self._made(setting, model, data, expected)
        moved = []
        for _ in range(setting.epochs):
            for x, y in loader:
                before = weights.detach().clone()
                step(x, y)
                moved.append(((before - weights.detach()) * expected / setting.rate)[:canaries, 0])
        return model.network, torch.stack(moved, dim=1).double().numpy()

    def _made(self, setting: Setting, model: Any, data: Any, expected: float) -> tuple[Any, Any]:
        optimizer: Any = torch.optim.SGD(model.parameters(), lr=setting.rate)
        criterion: Any = Losses()
        loader: Any
        if self.watched or not self.private:
            loader = PoissonLoader(data, sample_rate=1 / setting.batches)
        else:
            loader = DataLoader(data, batch_size=-(-len(data) // setting.batches))
        if self.private:
            engine = PrivacyEngine(accountant="rdp")
            if self.watched:
                attach(engine, Ledger(setting.plan), expected_batch_size=expected)
            made: Any = engine.make_private(
                module=model,
                optimizer=optimizer,
                data_loader=loader,
                criterion=criterion,
                noise_multiplier=setting.noise,
                max_grad_norm=1.0,
                **dict(self.settings),
            )
            model, optimizer, loader = made[0], made[1], made[-1]
            optimizer.expected_batch_size = expected
            criterion = made[2] if len(made) == 4 else criterion

        def step(x: torch.Tensor, y: torch.Tensor) -> None:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

        return step, loader


class Less(FloatNoise):
    """A part of the noise."""

    part = 1.0

    def release(self, entry: Any, value: Any) -> Any:
        """The value with that part of its noise."""
        return value + self.part * (super().release(entry, value) - value)


@dataclass(frozen=True)
class Fit:
    """A training by a loss of one example.

    Attributes:
        name: of it.
        part: of the declared noise that is drawn.
    """

    name: str = "fit"
    part: float = 1.0

    def train(
        self, setting: Setting, network: Any, data: Any, canaries: int, seed: int
    ) -> tuple[Any, Any]:
        """The model, and what the canaries' coordinates moved by; as of the other paths."""
        model = Marked(network, canaries)
        expected, criterion = ROWS / setting.batches, Losses()

        def loss(parameters: Any, example: Any) -> Any:
            x, y = example
            return criterion(functional_call(model, parameters, (x[None],)), y[None])

        noise = Less(np.random.default_rng(seed))
        noise.part = self.part
        ledger = Ledger(setting.plan, noise=noise)
        moved = []
        for step in Trainer(loss, model, data.tensors, ledger, divisor=expected):
            moved.append(step["marks.weight"][:canaries, 0] * expected)
            with torch.no_grad():
                for name, each in model.named_parameters():
                    each -= setting.rate * step[name]
        return model.network, torch.stack(moved, dim=1).double().numpy()


GHOST = (("grad_sample_mode", "ghost"),)
PATHS: tuple[Path | Fit, ...] = (
    Path("opacus"),
    Path("opacus, ghost clipping", settings=GHOST),
    Path("ledger", watched=True),
    Path("ledger, ghost clipping", watched=True, settings=GHOST),
    Fit(),
)
PLAIN = Path("not private", private=False)


# -- the same training with jax-privacy ------------------------------------------------------------


@dataclass(frozen=True)
class JaxPath:
    """A linear model, or one with convolutions, beside a coordinate for each canary."""

    name: str = "jax-privacy"

    def train(
        self, setting: Setting, network: Any, data: Any, canaries: int, seed: int
    ) -> tuple[None, Floats]:
        """What the canaries' coordinates moved by, (canaries, steps); as of the other paths."""
        import jax
        import jax.numpy as jnp
        from jax_privacy import batch_selection, clipping, noise_addition

        x, y = (np.asarray(each) for each in data.tensors)
        drawing = np.random.default_rng(seed)
        weights: Any = {
            "kernel": jnp.asarray(drawing.normal(0, 0.3, (8, 1, 3, 3)), dtype=jnp.float32),
            "out": jnp.zeros((8 * PIXELS, CLASSES)),
            "marks": jnp.zeros(canaries + 1),
        }

        def loss(at: Any, pixels: Any, label: Any) -> Any:
            picture = pixels[:, :PIXELS].reshape(-1, 1, 8, 8)
            seen = jax.nn.relu(jax.lax.conv(picture, at["kernel"], (1, 1), "SAME"))
            logits = jax.nn.log_softmax(seen.reshape(len(label), -1) @ at["out"])
            usual = -jnp.take_along_axis(logits, jnp.maximum(label, 0)[:, None], 1)[:, 0]
            mark = at["marks"][pixels[:, PIXELS].astype(int)]
            return jnp.where(label < 0, 1e3 * mark, usual).mean()

        clipped = jax.jit(clipping.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2)))
        noise = noise_addition.gaussian_privatizer(stddev=setting.noise, prng_key=seed)
        state, moved = noise.init(weights), []
        steps = setting.batches * setting.epochs
        batches = batch_selection.CyclicPoissonSampling(1 / setting.batches, steps)
        expected = ROWS / setting.batches
        for drawn in batches.batch_iterator(len(x), drawing):
            # Of one size, so that the step is compiled once.
            rows = batch_selection.pad_to_multiple_of(drawn, len(x))
            sums = clipped(weights, x[rows], y[rows], is_padding_example=rows < 0)
            noisy, state = noise.update(sums, state, weights)
            moved.append(np.asarray(noisy["marks"])[:canaries])
            weights = jax.tree.map(
                lambda one, by: one - setting.rate / expected * by, weights, noisy
            )
        return None, np.stack(moved, axis=1).astype(float)
