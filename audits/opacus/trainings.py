"""Wrong trainings, as people write them, and what the ledger says of each.

Every training is a loop over what ``make_private`` returned. A wrong one is refused at its line, or
its certificate has an error; what the ledger is known to miss stands here too, as such.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpaudit import DpAuditError, Ledger, Plan, Severity, ZeroOut
from dpaudit.integrations.opacus import attach

SIZE, BATCH, PASSES = 60, 10, 3
STEPS = SIZE // BATCH
POISSON = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, epochs=PASSES)
DISJOINT = Plan.dp_sgd(
    noise_multiplier=1.0, steps=PASSES * STEPS, epochs=PASSES, batching="disjoint"
)


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


@dataclass(frozen=True)
class Trained:
    """A training.

    Attributes:
        name: what is done.
        loop: does it.
        finds: what the ledger says: words of its refusal, or the rule of an error; empty where it
            should say nothing.
        plan: what is declared.
        settings: for ``make_private``.
    """

    name: str
    loop: Callable[[Parts], None]
    finds: str = ""
    plan: Plan = POISSON
    settings: dict[str, Any] = field(default_factory=dict)

    def right(self, said: str) -> bool:
        """Whether that is what the ledger should say, or is known to say."""
        return self.finds in said if self.finds not in ("", MISSED) else not said

    def look(self, seed: int) -> str:
        """What the ledger says, with the line of the loop where it refuses."""
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # opacus warns of its insecure generator
            torch.manual_seed(seed)
            training, parts = _made(self.plan, self.settings)
            try:
                self.loop(parts)
                certificate = training.certificate(1e-5)
            except DpAuditError as error:
                own = [each for each in traceback.extract_tb(error.__traceback__) if _here(each)]
                return f"{f'line {own[-1].lineno}' if own else 'at the end'}: {error}"
        errors = {each.rule for each in certificate.findings if each.severity is Severity.ERROR}
        return "; ".join(sorted(errors))


def _here(frame: traceback.FrameSummary) -> bool:
    return frame.filename == __file__ and frame.name not in ("look", "step", "passes")


def _made(plan: Plan, settings: dict[str, Any]) -> tuple[Any, Parts]:
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(SIZE, 4, generator=generator), torch.arange(SIZE) % 2
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    engine = PrivacyEngine(accountant="rdp")
    training = attach(engine, Ledger(plan), expected_batch_size=BATCH)
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=BATCH),
        **{"noise_multiplier": 1.0, "max_grad_norm": 1.0} | settings,
    )
    criterion = made[2] if len(made) == 4 else nn.CrossEntropyLoss()
    return training, Parts(made[0], made[1], made[-1], criterion)


def _each(act: Callable[[Parts, Any, Any], None]) -> Callable[[Parts], None]:
    """A loop that does something else with every batch."""

    def loop(parts: Parts) -> None:
        for _ in range(PASSES):
            for x, y in parts.loader:
                act(parts, x, y)

    return loop


def _honest(parts: Parts) -> None:
    parts.passes()


def _virtual(parts: Parts) -> None:
    with BatchMemoryManager(
        data_loader=parts.loader, max_physical_batch_size=4, optimizer=parts.optimizer
    ) as loader:
        Parts(parts.model, parts.optimizer, loader, parts.criterion).passes()


def _one_more(parts: Parts) -> None:
    parts.passes(PASSES + 1)


def _fewer(parts: Parts) -> None:
    parts.passes(PASSES - 1)


def _less_noise(parts: Parts) -> None:
    parts.optimizer.noise_multiplier = 0.9
    parts.passes()


def _larger_norm(parts: Parts) -> None:
    parts.optimizer.max_grad_norm = 2.0
    parts.passes()


def _norm_between_parts(parts: Parts) -> None:
    x, y = next(iter(parts.loader))
    for norm, skipped in ((100.0, True), (1.0, False)):
        parts.optimizer.max_grad_norm = norm
        parts.optimizer.signal_skip_step(do_skip=skipped)
        parts.step(x, y)


def _past_the_ledger(parts: Parts) -> None:
    parts.optimizer.add_noise = lambda: DPOptimizer.add_noise(parts.optimizer)
    parts.passes()


def _no_noise(parts: Parts) -> None:
    def bare() -> None:
        for p in parts.optimizer.params:
            p.grad = p.summed_grad.view_as(p)

    parts.optimizer.add_noise = bare
    parts.passes()


def _wrapped(parts: Parts, x: Any, y: Any) -> None:
    parts.step(x, y)
    parts.optimizer.original_optimizer.step()


def _other_optimizer(parts: Parts) -> None:
    other = torch.optim.SGD(parts.model.parameters(), lr=0.1)
    for _ in range(PASSES):
        for x, y in parts.loader:
            parts.step(x, y)
            parts.model.disable_hooks()
            other.zero_grad()
            parts.criterion(parts.model(x), y).backward()
            other.step()
            parts.model.enable_hooks()


def _micro_batches(parts: Parts, x: Any, y: Any) -> None:
    for part in torch.arange(len(x)).split(4):
        parts.step(x[part], y[part])


def _copies(parts: Parts, x: Any, y: Any) -> None:
    parts.step(torch.cat([x] * 3), torch.cat([y] * 3))


def _first_again(parts: Parts) -> None:
    for _ in range(PASSES):
        batches = list(parts.loader)
        for _ in batches:
            parts.step(*batches[0])


def _largest(parts: Parts) -> None:
    done = 0
    while done < PASSES * STEPS:
        for x, y in parts.loader:
            if len(x) >= BATCH and done < PASSES * STEPS:
                parts.step(x, y)
                done += 1


def _with_the_first(parts: Parts) -> None:
    done, row = 0, parts.loader.dataset.tensors[0][0]
    while done < PASSES * STEPS:
        for x, y in parts.loader:
            if (x == row).all(1).any() and done < PASSES * STEPS:
                parts.step(x, y)
                done += 1


def _stop_at_small(parts: Parts) -> None:
    """A pass ends where a batch is small, and another begins."""
    done = 0
    while done < PASSES * STEPS:
        for x, y in parts.loader:
            if len(x) < 7 or done == PASSES * STEPS:
                break
            parts.step(x, y)
            done += 1


def _noise_again(parts: Parts, x: Any, y: Any) -> None:
    torch.manual_seed(0)
    parts.step(x, y)


def _same_passes(parts: Parts) -> None:
    for _ in range(PASSES):
        torch.manual_seed(0)
        parts.passes(1)


def _rate_later(parts: Parts) -> None:
    parts.loader.batch_sampler.sample_rate = 0.9
    parts.passes()


def _equal_batches(parts: Parts) -> None:
    sampler = parts.loader.batch_sampler
    fixed = type(sampler).__iter__

    def cut(self: Any) -> Any:
        for batch in fixed(self):
            yield (batch * BATCH)[:BATCH] if batch else list(range(BATCH))

    type(sampler).__iter__ = cut
    parts.passes()


def _divisor(parts: Parts, x: Any, y: Any) -> None:
    parts.optimizer.expected_batch_size = max(1, len(x))
    parts.step(x, y)


def _usual_loss(parts: Parts, x: Any, y: Any) -> None:
    parts.optimizer.zero_grad()
    nn.functional.cross_entropy(parts.model(x), y).backward()
    parts.optimizer.step()


def _penalty(parts: Parts, x: Any, y: Any) -> None:
    parts.optimizer.zero_grad()
    parts.criterion(parts.model(x), y).backward()
    (0.1 * sum(p.square().sum() for p in parts.model.parameters())).backward()
    parts.optimizer.step()


def _weights_in_the_loss(parts: Parts, x: Any, y: Any) -> None:
    parts.optimizer.zero_grad()
    penalty = 0.1 * sum(p.square().sum() for p in parts.model.parameters())
    (parts.criterion(parts.model(x), y) + penalty).backward()
    parts.optimizer.step()


def _ascent(parts: Parts, x: Any, y: Any) -> None:
    parts.step(x, y)
    for p in parts.model.parameters():
        p.data -= 0.1 * p.summed_grad


def _restored(parts: Parts) -> None:
    def exact(optimizer: Any) -> None:
        for p in optimizer.params:
            p.grad = p.summed_grad.clone()

    parts.optimizer.attach_step_hook(exact)
    parts.passes()


def _scaled(parts: Parts, x: Any, y: Any) -> None:
    parts.optimizer.zero_grad()
    parts.criterion(parts.model(x), y).backward()
    for p in parts.optimizer.params:
        p.grad *= 10
    parts.optimizer.step()


def _coefficients(parts: Parts) -> None:
    parts.model.get_clipping_coef = lambda: torch.ones_like(parts.model.get_norm_sample())
    parts.passes()


def _model_norm(parts: Parts) -> None:
    parts.model.max_grad_norm = 2.0
    parts.passes()


def _statistics(parts: Parts) -> None:
    """Inputs are normalised by what the data say, which no step sees."""
    data = parts.loader.dataset.tensors[0]
    mean = data.mean(0)
    for _ in range(PASSES):
        for x, y in parts.loader:
            parts.step(x - mean, y)


GHOST = {"grad_sample_mode": "ghost"}
ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.01,
    "unclipped_num_std": 2.0,
}
SHUFFLED = {"poisson_sampling": False}
RATED = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.01, steps=PASSES * STEPS)
ZEROED = Plan.dp_sgd(
    noise_multiplier=1.0, sample_rate=BATCH / SIZE, epochs=PASSES, relation=ZeroOut()
)
MISSED = "missed"
NOT_GHOST = "not those that ghost clipping summed"

TRAININGS: tuple[Trained, ...] = (
    Trained("honest", _honest),
    Trained("honest, virtual steps", _virtual),
    Trained(
        "honest, by layer", _honest, settings={"clipping": "per_layer", "max_grad_norm": [0.5] * 4}
    ),
    Trained("honest, ghost clipping", _honest, settings=GHOST),
    Trained("honest, ghost clipping, virtual steps", _virtual, settings=GHOST),
    Trained("honest, adaptive clipping", _honest, settings=ADAPTIVE),
    Trained("honest, disjoint batches", _honest, plan=DISJOINT, settings=SHUFFLED),
    Trained("one pass more than declared", _one_more, "charged that often"),
    Trained("one pass less than declared", _fewer, "declared 18 times and ran 12 times"),
    Trained("less noise than declared", _less_noise, "but Gaussian"),
    Trained("a larger clip norm than declared", _larger_norm, "clip norm"),
    Trained("parts of a step clipped otherwise", _norm_between_parts, "clip norm"),
    Trained("noise drawn past the ledger", _past_the_ledger, "without noise"),
    Trained("no noise", _no_noise, "without noise"),
    Trained("a step of the wrapped optimizer", _each(_wrapped), "without noise"),
    Trained("another optimizer beside it", _other_optimizer, "parameters-written-elsewhere"),
    Trained("a step for every micro-batch", _each(_micro_batches), "charged that often"),
    Trained("copies of a batch", _each(_copies), "batch-not-fresh"),
    Trained("the first batch of a pass again", _first_again, "batch-not-fresh"),
    Trained("the same, disjoint batches", _first_again, "batch-not-fresh", DISJOINT, SHUFFLED),
    Trained("large batches alone", _largest, "batches-left-out"),
    Trained("batches with a certain row", _with_the_first, "batches-left-out"),
    Trained("passes that end at a small batch", _stop_at_small, "passes-cut-unevenly"),
    Trained("the same noise at every step", _each(_noise_again), "noise-repeated"),
    Trained("the same batches in every pass", _same_passes, "batches-repeated"),
    Trained("a larger sample rate, set later", _rate_later, "loader-changed"),
    Trained("a larger sample rate than declared", _honest, "sample-rate-differs", RATED),
    Trained("batches padded to one size", _equal_batches, "batch-not-fresh"),
    Trained("shuffled, declared as sampled", _honest, "loader-not-poisson", ZEROED, SHUFFLED),
    Trained("sampled, declared as disjoint", _honest, "loader-not-disjoint", DISJOINT),
    Trained("the divisor of each batch", _each(_divisor), "leave it"),
    Trained("ghost clipping, the usual loss", _each(_usual_loss), NOT_GHOST, settings=GHOST),
    Trained("ghost clipping and a penalty", _each(_penalty), NOT_GHOST, settings=GHOST),
    Trained(
        "ghost clipping, penalty in the loss",
        _each(_weights_in_the_loss),
        "outside its layer",
        settings=GHOST,
    ),
    Trained("a step by the exact sums", _each(_ascent), "parameters-written-elsewhere"),
    Trained("exact gradients put back", _restored, "changed after their noise"),
    Trained("ghost clipping, scaled gradients", _each(_scaled), NOT_GHOST, settings=GHOST),
    Trained("ghost clipping, other coefficients", _coefficients, NOT_GHOST, settings=GHOST),
    Trained("ghost clipping to another norm", _model_norm, "clip norm", settings=GHOST),
    Trained("inputs normalised by the data", _statistics, MISSED),
)
"""``MISSED`` is wrong, and not found by the ledger: a rehearsal compares the values."""


def run_trainings(only: str = "", seed: int = 0) -> Iterator[tuple[Trained, str, float]]:
    """Every training with what was said of it, and its seconds."""
    for each in TRAININGS:
        if only in each.name:
            begin = time.perf_counter()
            yield each, each.look(seed), time.perf_counter() - begin
