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
from functools import partial
from inspect import getfile
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from audits.opacus import loops
from audits.opacus.loops import BATCH, PASSES, SIZE, STEPS, Parts
from dpaudit import DpAuditError, Ledger, Plan, Severity, ZeroOut
from dpaudit.training.opacus import attach

_LOOPS = getfile(loops)
POISSON = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=BATCH / SIZE, epochs=PASSES)
DISJOINT = Plan.dp_sgd(
    noise_multiplier=1.0, steps=PASSES * STEPS, epochs=PASSES, batching="disjoint"
)


@dataclass(frozen=True)
class Case:
    """A training.

    Attributes:
        name: what is done.
        loop: does it.
        finds: what the ledger says: words of its refusal, or the rule of an error; empty where it
            should say nothing.
        plan: what is declared.
        settings: for ``make_private``.
        first: makes the first layer, which passes inputs on.
    """

    name: str
    loop: Callable[[Parts], None]
    finds: str = ""
    plan: Plan = POISSON
    settings: dict[str, Any] = field(default_factory=dict)
    first: Callable[[], nn.Module] = nn.Identity

    def right(self, said: str) -> bool:
        """Whether that is what the ledger should say, or is known to say."""
        return self.finds in said if self.finds not in ("", MISSED) else not said

    def look(self, seed: int) -> str:
        """What the ledger says, with the line of the loop where it refuses."""
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # opacus warns of its insecure generator
            torch.manual_seed(seed)
            training, parts = _made(self.plan, self.settings, self.first())
            try:
                self.loop(parts)
                certificate = training.certificate(1e-5)
            except DpAuditError as error:
                own = [each for each in traceback.extract_tb(error.__traceback__) if _here(each)]
                return f"{f'line {own[-1].lineno}' if own else 'at the end'}: {error}"
        errors = {each.rule for each in certificate.findings if each.severity is Severity.ERROR}
        return "; ".join(sorted(errors))


def _here(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is a line of a loop itself."""
    return frame.filename == _LOOPS and frame.name not in ("step", "passes")


def _made(plan: Plan, settings: dict[str, Any], first: nn.Module) -> tuple[Any, Parts]:
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(SIZE, 4, generator=generator), torch.arange(SIZE) % 2
    model = nn.Sequential(first, nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
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

TRAININGS: tuple[Case, ...] = (
    Case("honest", loops.honest),
    Case("honest, virtual steps", loops.virtual),
    Case(
        "honest, by layer",
        loops.honest,
        settings={"clipping": "per_layer", "max_grad_norm": [0.5] * 4},
    ),
    Case("honest, ghost clipping", loops.honest, settings=GHOST),
    Case("honest, ghost clipping, virtual steps", loops.virtual, settings=GHOST),
    Case("honest, adaptive clipping", loops.honest, settings=ADAPTIVE),
    Case("honest, disjoint batches", loops.honest, plan=DISJOINT, settings=SHUFFLED),
    Case("honest, a buffer that counts steps", loops.honest, first=loops.Steps),
    Case("one pass more than declared", loops.one_more, "charged that often"),
    Case("one pass less than declared", loops.fewer, "declared 18 times and ran 12 times"),
    Case("less noise than declared", loops.less_noise, "another sigma ran"),
    Case("a larger clip norm than declared", loops.larger_norm, "clip norm"),
    Case("parts of a step clipped otherwise", loops.norm_between_parts, "clip norm"),
    Case("noise drawn past the ledger", loops.past_the_ledger, "without noise"),
    Case("no noise", loops.no_noise, "without noise"),
    Case("a step of the wrapped optimizer", loops.each(loops.wrapped), "without noise"),
    Case("another optimizer beside it", loops.other_optimizer, "parameters-written-elsewhere"),
    Case("a step for every micro-batch", loops.each(loops.micro_batches), "charged that often"),
    Case("copies of a batch", loops.each(loops.copies), "batch-not-fresh"),
    Case("the first batch of a pass again", loops.first_again, "batch-not-fresh"),
    Case("the same, disjoint batches", loops.first_again, "batch-not-fresh", DISJOINT, SHUFFLED),
    Case("large batches alone", loops.largest, "batches-left-out"),
    Case("batches with a certain row", loops.with_the_first, "batches-left-out"),
    Case("passes that end at a small batch", loops.stop_at_small, "passes-cut-unevenly"),
    Case("the same noise at every step", loops.each(loops.noise_again), "noise-repeated"),
    Case("the same batches in every pass", loops.same_passes, "batches-repeated"),
    Case("a larger sample rate, set later", loops.rate_later, "loader-changed"),
    Case("a larger sample rate than declared", loops.honest, "sample-rate-differs", RATED),
    Case("batches padded to one size", loops.equal_batches, "batch-not-fresh"),
    Case("shuffled, declared as sampled", loops.honest, "loader-not-poisson", ZEROED, SHUFFLED),
    Case("sampled, declared as disjoint", loops.honest, "loader-not-disjoint", DISJOINT),
    Case("the divisor of each batch", loops.each(loops.divisor), "leave it"),
    Case("ghost clipping, the usual loss", loops.each(loops.usual_loss), NOT_GHOST, settings=GHOST),
    Case("ghost clipping and a penalty", loops.each(loops.penalty), NOT_GHOST, settings=GHOST),
    Case(
        "ghost clipping, penalty in the loss",
        loops.each(loops.weights_in_the_loss),
        "outside its layer",
        settings=GHOST,
    ),
    Case("a step by the exact sums", loops.each(loops.ascent), "parameters-written-elsewhere"),
    Case("exact gradients put back", loops.restored, "changed after their noise"),
    Case("ghost clipping, scaled gradients", loops.each(loops.scaled), NOT_GHOST, settings=GHOST),
    Case("ghost clipping, other coefficients", loops.coefficients, NOT_GHOST, settings=GHOST),
    Case("ghost clipping to another norm", loops.model_norm, "clip norm", settings=GHOST),
    Case(
        "a running mean that is a new buffer each time",
        loops.honest,
        "parameters-written-elsewhere",
        first=partial(loops.Held, as_state=False),
    ),
    Case(
        "a state beside the buffers that keeps data",
        loops.honest,
        "parameters-written-elsewhere",
        first=partial(loops.Held, as_state=True),
    ),
    Case("inputs normalised by the data", loops.statistics, MISSED),
    Case("gradients of rows made of all rows", loops.blended, MISSED),
)
"""``MISSED`` is wrong, and not found by the ledger: a rehearsal compares the values."""


def run_trainings(only: str = "", seed: int = 0) -> Iterator[tuple[Case, str, float]]:
    """Every training with what was said of it, and its seconds."""
    for each in TRAININGS:
        if only in each.name:
            begin = time.perf_counter()
            yield each, each.look(seed), time.perf_counter() - begin
