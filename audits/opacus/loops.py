"""Loops of trainings, honest ones and wrong ones, over what ``make_private`` returned.

A loop is a function of the parts that a training has. Wrong loops spend more than they declare, or
let something past the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn

SIZE, BATCH, PASSES = 60, 10, 3
STEPS = SIZE // BATCH


@dataclass(frozen=True)
class Parts:
    """What a loop trains with."""

    model: Any
    optimizer: Any
    loader: Any
    criterion: Any

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """An honest step."""
        self.optimizer.zero_grad()
        self.criterion(self.model(x), y).backward()
        self.optimizer.step()

    def passes(self, times: int = PASSES) -> None:
        """Honest passes."""
        for _ in range(times):
            for x, y in self.loader:
                self.step(x, y)


def each(act: Callable[[Parts, Any, Any], None]) -> Callable[[Parts], None]:
    """A loop that does something else with every batch."""

    def loop(parts: Parts) -> None:
        for _ in range(PASSES):
            for x, y in parts.loader:
                act(parts, x, y)

    return loop


def honest(parts: Parts) -> None:
    """Honest passes."""
    parts.passes()


def virtual(parts: Parts) -> None:
    """Honest passes over parts of batches."""
    with BatchMemoryManager(
        data_loader=parts.loader, max_physical_batch_size=4, optimizer=parts.optimizer
    ) as loader:
        Parts(parts.model, parts.optimizer, loader, parts.criterion).passes()


def one_more(parts: Parts) -> None:
    """One pass more than declared."""
    parts.passes(PASSES + 1)


def fewer(parts: Parts) -> None:
    """One pass less than declared."""
    parts.passes(PASSES - 1)


def less_noise(parts: Parts) -> None:
    """Less noise than declared."""
    parts.optimizer.noise_multiplier = 0.9
    parts.passes()


def larger_norm(parts: Parts) -> None:
    """A larger clip norm than declared."""
    parts.optimizer.max_grad_norm = 2.0
    parts.passes()


def norm_between_parts(parts: Parts) -> None:
    """Parts of a step clipped otherwise."""
    x, y = next(iter(parts.loader))
    for norm, skipped in ((100.0, True), (1.0, False)):
        parts.optimizer.max_grad_norm = norm
        parts.optimizer.signal_skip_step(do_skip=skipped)
        parts.step(x, y)


def past_the_ledger(parts: Parts) -> None:
    """Noise drawn past the ledger."""
    parts.optimizer.add_noise = lambda: DPOptimizer.add_noise(parts.optimizer)
    parts.passes()


def no_noise(parts: Parts) -> None:
    """No noise."""

    def bare() -> None:
        for p in parts.optimizer.params:
            p.grad = p.summed_grad.view_as(p)

    parts.optimizer.add_noise = bare
    parts.passes()


def wrapped(parts: Parts, x: Any, y: Any) -> None:
    """A step of the wrapped optimizer."""
    parts.step(x, y)
    parts.optimizer.original_optimizer.step()


def other_optimizer(parts: Parts) -> None:
    """Another optimizer beside it."""
    other = torch.optim.SGD(parts.model.parameters(), lr=0.1)
    for _ in range(PASSES):
        for x, y in parts.loader:
            parts.step(x, y)
            parts.model.disable_hooks()
            other.zero_grad()
            parts.criterion(parts.model(x), y).backward()
            other.step()
            parts.model.enable_hooks()


def micro_batches(parts: Parts, x: Any, y: Any) -> None:
    """A step for every micro-batch."""
    for part in torch.arange(len(x)).split(4):
        parts.step(x[part], y[part])


def copies(parts: Parts, x: Any, y: Any) -> None:
    """Copies of a batch."""
    parts.step(torch.cat([x] * 3), torch.cat([y] * 3))


def first_again(parts: Parts) -> None:
    """The first batch of a pass again."""
    for _ in range(PASSES):
        batches = list(parts.loader)
        for _ in batches:
            parts.step(*batches[0])


def largest(parts: Parts) -> None:
    """Large batches alone."""
    done = 0
    while done < PASSES * STEPS:
        for x, y in parts.loader:
            if len(x) >= BATCH and done < PASSES * STEPS:
                parts.step(x, y)
                done += 1


def with_the_first(parts: Parts) -> None:
    """Batches with a certain row."""
    done, row = 0, parts.loader.dataset.tensors[0][0]
    while done < PASSES * STEPS:
        for x, y in parts.loader:
            if (x == row).all(1).any() and done < PASSES * STEPS:
                parts.step(x, y)
                done += 1


def stop_at_small(parts: Parts) -> None:
    """A pass ends where a batch is small, and another begins."""
    done = 0
    while done < PASSES * STEPS:
        for x, y in parts.loader:
            if len(x) < 7 or done == PASSES * STEPS:
                break
            parts.step(x, y)
            done += 1


def noise_again(parts: Parts, x: Any, y: Any) -> None:
    """The same noise at every step."""
    torch.manual_seed(0)
    parts.step(x, y)


def same_passes(parts: Parts) -> None:
    """The same batches in every pass."""
    for _ in range(PASSES):
        torch.manual_seed(0)
        parts.passes(1)


def rate_later(parts: Parts) -> None:
    """A larger sample rate, set later."""
    parts.loader.batch_sampler.sample_rate = 0.9
    parts.passes()


def equal_batches(parts: Parts) -> None:
    """Batches padded to one size."""
    sampler = parts.loader.batch_sampler
    fixed = type(sampler).__iter__

    def cut(self: Any) -> Any:
        for batch in fixed(self):
            yield (batch * BATCH)[:BATCH] if batch else list(range(BATCH))

    type(sampler).__iter__ = cut
    parts.passes()


def divisor(parts: Parts, x: Any, y: Any) -> None:
    """The divisor of each batch."""
    parts.optimizer.expected_batch_size = max(1, len(x))
    parts.step(x, y)


def usual_loss(parts: Parts, x: Any, y: Any) -> None:
    """Ghost clipping, the usual loss."""
    parts.optimizer.zero_grad()
    nn.functional.cross_entropy(parts.model(x), y).backward()
    parts.optimizer.step()


def penalty(parts: Parts, x: Any, y: Any) -> None:
    """Ghost clipping and a penalty."""
    parts.optimizer.zero_grad()
    parts.criterion(parts.model(x), y).backward()
    (0.1 * sum(p.square().sum() for p in parts.model.parameters())).backward()
    parts.optimizer.step()


def weights_in_the_loss(parts: Parts, x: Any, y: Any) -> None:
    """Ghost clipping, penalty in the loss."""
    parts.optimizer.zero_grad()
    penalty = 0.1 * sum(p.square().sum() for p in parts.model.parameters())
    (parts.criterion(parts.model(x), y) + penalty).backward()
    parts.optimizer.step()


def ascent(parts: Parts, x: Any, y: Any) -> None:
    """A step by the exact sums."""
    parts.step(x, y)
    for p in parts.model.parameters():
        p.data -= 0.1 * p.summed_grad


def restored(parts: Parts) -> None:
    """Exact gradients put back."""

    def exact(optimizer: Any) -> None:
        for p in optimizer.params:
            p.grad = p.summed_grad.clone()

    parts.optimizer.attach_step_hook(exact)
    parts.passes()


def scaled(parts: Parts, x: Any, y: Any) -> None:
    """Ghost clipping, scaled gradients."""
    parts.optimizer.zero_grad()
    parts.criterion(parts.model(x), y).backward()
    for p in parts.optimizer.params:
        p.grad *= 10
    parts.optimizer.step()


def coefficients(parts: Parts) -> None:
    """Ghost clipping, other coefficients."""
    parts.model.get_clipping_coef = lambda: torch.ones_like(parts.model.get_norm_sample())
    parts.passes()


def model_norm(parts: Parts) -> None:
    """Ghost clipping to another norm."""
    parts.model.max_grad_norm = 2.0
    parts.passes()


class Held(nn.Module):
    """Passes inputs on, and keeps something of them where the state of a model is."""

    def __init__(self, as_state: bool) -> None:
        super().__init__()
        self.as_state, self.seen = as_state, torch.zeros(4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The inputs, as they are."""
        if self.as_state:
            self.seen = x.detach().sum(0)
        else:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().sum(0)
        return x

    def get_extra_state(self) -> Any:
        """What it keeps."""
        return self.seen

    def set_extra_state(self, state: Any) -> None:
        """Take it back."""
        self.seen = state


class Steps(nn.Module):
    """Passes inputs on, and counts how often."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The inputs, as they are."""
        self.steps += 1
        return x


def blended(parts: Parts, x: Any, y: Any) -> None:
    """The gradient of each row made of all of them, before it is clipped."""
    parts.optimizer.zero_grad()
    parts.criterion(parts.model(x), y).backward()
    for p in parts.optimizer.params:
        p.grad_sample = p.grad_sample + p.grad_sample.sum(0)
    parts.optimizer.step()


def statistics(parts: Parts, x: Any, y: Any) -> None:
    """Inputs are normalised by what the data say, which no step sees."""
    parts.step(x - parts.loader.dataset.tensors[0].mean(0), y)
