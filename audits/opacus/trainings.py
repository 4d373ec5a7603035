"""Wrong trainings, as people write them, and what the ledger says of each.

Every training is a loop over what ``make_private`` returned. A wrong one is refused at its line, or
its certificate has an error; what the ledger is known to miss stands here too, as such.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
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
class Check:
    """One method on one subject.

    Attributes:
        subject: the defect, or what is right.
        method: name of the method.
        finds: words of what it should say; empty where it should say nothing.
        look: what it says, given a seed.
        runs: trainings, or steps of an attack, that it takes.
    """

    subject: str
    method: str
    finds: str
    look: Callable[[int], str]
    runs: int = 1

    def right(self, said: str) -> bool:
        """Whether that is what the method should say, or is known to say."""
        return self.finds in said if self.finds not in ("", MISSED) else not said


def case(
    name: str,
    loop: Callable[[Parts], None],
    finds: str = "",
    plan: Plan = POISSON,
    settings: dict[str, Any] | None = None,
    *,
    method: str = "ledger, loop",
    first: Callable[[], nn.Module] = nn.Identity,
    divisor: float | None = BATCH,
) -> Check:
    """A training, and what the ledger should say of it.

    Args:
        name: what is done.
        loop: does it.
        finds: words of the ledger's refusal, or the rule of a finding.
        plan: what is declared.
        settings: for ``make_private``.
        method: name of the method.
        first: makes the first layer, which passes inputs on.
        divisor: expected size of a batch; None where opacus takes it from the data.
    """

    def look(seed: int) -> str:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # opacus warns of its insecure generator
            torch.manual_seed(seed)
            trained, parts = _made(plan, settings or {}, first(), divisor)
            try:
                loop(parts)
                certificate = trained.certificate(1e-5)
            except DpAuditError as error:
                own = [each for each in traceback.extract_tb(error.__traceback__) if _here(each)]
                return f"{f'line {own[-1].lineno}' if own else 'at the end'}: {error}"
        found = {(each.severity, each.rule) for each in certificate.findings}
        wrong = {rule for severity, rule in found if severity is Severity.ERROR or rule == DIVISOR}
        return "; ".join(sorted(wrong))

    return Check(name, method, finds, look)


def _here(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is a line of a loop itself."""
    return frame.filename == _LOOPS and frame.name not in ("step", "passes")


def _made(
    plan: Plan, settings: dict[str, Any], first: nn.Module, divisor: float | None
) -> tuple[Any, Parts]:
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(SIZE, 4, generator=generator), torch.arange(SIZE) % 2
    model = nn.Sequential(first, nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    engine = PrivacyEngine(accountant="rdp")
    trained = attach(engine, Ledger(plan), expected_batch_size=divisor)
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=BATCH),
        **{"noise_multiplier": 1.0, "max_grad_norm": 1.0} | settings,
    )
    criterion = made[2] if len(made) == 4 else nn.CrossEntropyLoss()
    return trained, Parts(made[0], made[1], made[-1], criterion)


ELSEWHERE = "parameters-written-elsewhere"
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
DIVISOR = "expected-batch-depends-on-data"
"""A warning, and as good as an error here."""

TRAININGS: tuple[Check, ...] = (
    case("honest", loops.honest),
    case("honest, virtual steps", loops.virtual),
    case(
        "honest, by layer",
        loops.honest,
        settings={"clipping": "per_layer", "max_grad_norm": [0.5] * 4},
    ),
    case("honest, ghost clipping", loops.honest, settings=GHOST),
    case("honest, ghost clipping, virtual steps", loops.virtual, settings=GHOST),
    case("honest, adaptive clipping", loops.honest, settings=ADAPTIVE),
    case("honest, disjoint batches", loops.honest, plan=DISJOINT, settings=SHUFFLED),
    case("honest, a buffer that counts steps", loops.honest, first=loops.Steps),
    case("one pass more than declared", loops.one_more, "charged that often"),
    case("one pass less than declared", loops.fewer, "declared 18 times and ran 12 times"),
    case("less noise than declared", loops.less_noise, "another sigma ran"),
    case("a larger clip norm than declared", loops.larger_norm, "clip norm"),
    case("parts of a step clipped otherwise", loops.norm_between_parts, "clip norm"),
    case("noise drawn past the ledger", loops.past_the_ledger, "without noise"),
    case("no noise", loops.no_noise, "without noise"),
    case("a step of the wrapped optimizer", loops.each(loops.wrapped), "without noise"),
    case("another optimizer beside it", loops.other_optimizer, ELSEWHERE),
    case("a step for every micro-batch", loops.each(loops.micro_batches), "charged that often"),
    case("copies of a batch", loops.each(loops.copies), "batch-not-fresh"),
    case("the first batch of a pass again", loops.first_again, "batch-not-fresh"),
    case("the same, disjoint batches", loops.first_again, "batch-not-fresh", DISJOINT, SHUFFLED),
    case("large batches alone", loops.largest, "batches-left-out"),
    case("batches with a certain row", loops.with_the_first, "batches-left-out"),
    case("passes that end at a small batch", loops.stop_at_small, "passes-cut-unevenly"),
    case("the same noise at every step", loops.each(loops.noise_again), "noise-repeated"),
    case("the same batches in every pass", loops.same_passes, "batches-repeated"),
    case("a larger sample rate, set later", loops.rate_later, "loader-changed"),
    case("a larger sample rate than declared", loops.honest, "sample-rate-differs", RATED),
    case("batches padded to one size", loops.equal_batches, "batch-not-fresh"),
    case("shuffled, declared as sampled", loops.honest, "loader-not-poisson", ZEROED, SHUFFLED),
    case("sampled, declared as disjoint", loops.honest, "loader-not-disjoint", DISJOINT),
    case("the divisor of each batch", loops.each(loops.divisor), "do not change"),
    case("ghost clipping, the usual loss", loops.each(loops.usual_loss), NOT_GHOST, settings=GHOST),
    case("ghost clipping and a penalty", loops.each(loops.penalty), NOT_GHOST, settings=GHOST),
    case(
        "ghost clipping, penalty in the loss",
        loops.each(loops.weights_in_the_loss),
        "outside its layer",
        settings=GHOST,
    ),
    case("a step by the exact sums", loops.each(loops.ascent), ELSEWHERE),
    case("exact gradients put back", loops.restored, "changed after their noise"),
    case("ghost clipping, scaled gradients", loops.each(loops.scaled), NOT_GHOST, settings=GHOST),
    case("ghost clipping, other coefficients", loops.coefficients, NOT_GHOST, settings=GHOST),
    case("ghost clipping to another norm", loops.model_norm, "clip norm", settings=GHOST),
    case(
        "a running mean that is a new buffer each time",
        loops.honest,
        ELSEWHERE,
        first=partial(loops.Held, as_state=False),
    ),
    case(
        "a state beside the buffers that keeps data",
        loops.honest,
        ELSEWHERE,
        first=partial(loops.Held, as_state=True),
    ),
    case("inputs normalised by the data", loops.each(loops.statistics), MISSED),
    case("gradients of rows made of all rows", loops.each(loops.blended), MISSED),
)
"""``MISSED`` is wrong, and not found by the ledger: a rehearsal compares the values."""
