"""Wrong trainings, as people write them, in the form of a loss of one example.

Run ``python -m tests.benchmarks.wrong_trainings``. The first ones are those of ``python -m
audits.opacus``, which watches loops; then come others. What becomes of each:

* *impossible*: nothing that a training is handed can write it;
* *harmless*: what it does follows from noisy gradients;
* *refused*, or *found*: an attempt is made here, and its words are checked;
* *assumed*: the process holds the data, and no one looks; certificates name it as not covered, and
  of some a rehearsal on neighbours finds it, which is attempted too.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from dpaudit import DpAuditError, FloatNoise, Ledger, Plan, Severity, ZeroOut
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.mechanisms import BandedToeplitz, ContinualGaussian, Gaussian
from dpaudit.plan import Invocation, PrivacyUnit, TrustModel
from dpaudit.training import Trainer, fit

PLAN = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=3, relation=ZeroOut())
ROWS = 24
IMPOSSIBLE, HARMLESS, REFUSED = "impossible", "harmless", "refused"
FOUND, ASSUMED, REHEARSED = "found", "assumed", "assumed; a rehearsal finds it"


@dataclass(frozen=True)
class Case:
    """A wrong training, and what becomes of it.

    Attributes:
        name: what is done.
        becomes: of it, in one word.
        why: words of the refusal or the rule of the finding; else why, for people.
        attempt: does it, and returns what was found; None where there is nothing to write.
    """

    name: str
    becomes: str
    why: str
    attempt: Callable[[], str] | None = None

    def right(self) -> bool:
        """Whether an attempt ends as is said."""
        return self.attempt is None or self.said() == ""

    def said(self) -> str:
        """What an attempt said that it should not have; empty where all is as it should be."""
        if self.attempt is None:
            return ""
        try:
            said = self.attempt()
        except DpAuditError as error:
            said = str(error)
            if self.becomes != REFUSED:
                return f"refused: {said}"
        else:
            if self.becomes == REFUSED:
                return f"not refused, but: {said}"
        wanted = self.becomes in (REFUSED, FOUND, REHEARSED)
        return "" if (self.why in said if wanted else not said) else said or "nothing"


def rows(size: int = ROWS) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(size, 4, generator=generator), torch.arange(size) % 2


def network(first: nn.Module | None = None) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(first or nn.Identity(), nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))


def loss_of(model: nn.Module) -> Callable[..., Any]:
    def loss(parameters: Any, example: Any) -> Any:
        x, y = example
        return cross_entropy(functional_call(model, parameters, (x,)), y)

    return loss


def trained(loss: Any, model: Any, data: Any, plan: Plan = PLAN, **settings: Any) -> str:
    """A training to its end; the rules of errors and warnings of its certificate."""
    ledger = settings.pop("ledger", None) or Ledger(plan, noise=FloatNoise())
    trainer = Trainer(loss, model, data, ledger, **settings)
    optimizer = torch.optim.SGD(trainer.parameters.values(), lr=0.1)
    for _ in trainer:
        optimizer.step()
    return "; ".join(
        each.rule
        for each in trainer.certificate(1e-5).findings
        if each.severity is not Severity.NOTE
        and each.rule not in ("float-noise", "float-sampler", "zeroed-as-absent")
    )


def rehearsed(prepare: Callable[[Any, Any], Any]) -> Callable[[], str]:
    """An attempt: the training on two neighbours, of which one lacks a row that decides much."""

    def run(data: Any, ledger: Ledger, rng: Any) -> None:
        table = torch.tensor(np.array(data), dtype=torch.float32)
        x, y, weight = table[:, :4], table[:, 4].long(), table[:, 5]
        model, (x, factor) = network(), prepare(x, (y, weight))

        def loss(parameters: Any, example: Any) -> Any:
            own, label, here = example
            each = cross_entropy(functional_call(model, parameters, (own,)), label)
            return each * here

        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        fit(loss, model, (x, y, weight * factor), ledger, optimizer=optimizer)

    def attempt() -> str:
        table = np.random.default_rng(0).normal(size=(ROWS, 6)) * 0.05
        table[:, 4], table[:, 5] = np.arange(ROWS) % 8 == 0, 1.0
        table[0, :4] *= 1000
        without = table.copy()
        without[0] = 0.0
        found = replay(Routine(PLAN, run), table, without, 3).findings
        return "; ".join(each.rule for each in found)

    return attempt


class Held(nn.Module):
    """Passes inputs on, and keeps something of them."""

    def __init__(self, *, as_buffer: bool) -> None:
        super().__init__()
        self.as_buffer = as_buffer
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.as_buffer:
            self.mean = 0.9 * self.mean + 0.1 * x.detach()
        else:
            self.seen = x.detach()
        return x


def simple(loss: Callable[..., Any], **settings: Any) -> Callable[[], str]:
    return lambda: trained(loss, {"w": torch.zeros(4)}, rows()[0], **settings)


def direct(parameters: Any, example: Any) -> Any:
    return (parameters["w"] * example).sum()


def in_a_dict(layers: dict[str, nn.Module]) -> Callable[..., Any]:
    return lambda parameters, example: direct(parameters, layers["first"](example))


def usual(model: nn.Module, **settings: Any) -> str:
    return trained(loss_of(model), model, rows(), **settings)


# -- attempts --------------------------------------------------------------------------------------


def one_less() -> str:
    trainer = Trainer(direct, {"w": torch.zeros(4)}, rows()[0], Ledger(PLAN, noise=FloatNoise()))
    next(trainer)
    return str(trainer.certificate(1e-5).verdict)


def noise_again() -> str:
    """Seeds of torch, numpy and Python are set back before each step: the noise stays fresh."""
    parameters, data = {"w": torch.zeros(4)}, torch.zeros(ROWS, 4)
    seen = set()
    for _ in Trainer(direct, parameters, data, Ledger(PLAN, noise=FloatNoise())):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        seen.add(tuple(parameters["w"].grad.tolist()))
    return "" if len(seen) == 3 else "noise-repeated"


def same_batches() -> str:
    """And so do samples: of six steps on 24 rows all equal with probability 2^-120."""
    plan = Plan.dp_sgd(noise_multiplier=1e-9, sample_rate=0.5, steps=6, relation=ZeroOut())
    parameters, seen = {"w": torch.zeros(ROWS)}, set()
    ledger = Ledger(plan, noise=FloatNoise())
    for _ in Trainer(direct, parameters, torch.eye(ROWS) * 0.1, ledger):
        torch.manual_seed(0)
        seen.add(tuple((parameters["w"].grad > 1e-3).tolist()))
    return "" if len(seen) > 1 else "batches-repeated"


def held_statistic() -> str:
    x = rows()[0]
    return simple(lambda p, e: (p["w"] * (e - x.mean(0))).sum())()


def held_by_object() -> str:
    class Model:
        def __init__(self, data: Any) -> None:
            self.data = data

        def loss(self, p: Any, e: Any) -> Any:
            return (p["w"] * (e - self.data[0])).sum()

    x = rows()[0]
    return trained(Model(x).loss, {"w": torch.zeros(4)}, x)


def centres(model: nn.Module) -> Callable[..., Any]:
    """Outputs are drawn to a mean of those before."""
    held = {"mean": torch.zeros(2)}

    def loss(parameters: Any, example: Any) -> Any:
        x, y = example
        outputs = functional_call(model, parameters, (x,))
        held["mean"] = 0.9 * held["mean"] + 0.1 * outputs.detach()
        return cross_entropy(outputs, y) + (outputs - held["mean"]).square().sum()

    return loss


def annealed() -> str:
    """A loss grows with its calls, of which there are as many as chunks."""
    calls: list[int] = []

    def loss(parameters: Any, example: Any) -> Any:
        calls.append(1)
        return min(1.0, len(calls) / 10) * direct(parameters, example)

    return simple(loss)()


def seeded_within(parameters: Any, example: Any) -> Any:
    torch.manual_seed(0)
    return direct(parameters, example * torch.rand(4))


def drawn_within() -> str:
    generator = torch.Generator().manual_seed(0)
    return simple(lambda p, e: direct(p, e * torch.rand(4, generator=generator)))()


def on_devices() -> str:
    about = PrivacyUnit("row"), ZeroOut(), TrustModel.LOCAL
    return simple(direct, plan=Plan.of(Invocation(Gaussian(1.0), 1.0, *about, at="gradient")))()


def in_groups() -> str:
    about = PrivacyUnit("row"), ZeroOut(), TrustModel.CENTRAL
    uses = [
        Invocation(Gaussian(1.0), 1.0, *about, group=name, at=f"gradient, {name}") for name in "ab"
    ]
    return simple(direct, plan=Plan.of(*uses))()


def seeded() -> str:
    return simple(direct, ledger=Ledger(PLAN, rng=np.random.default_rng(0)))()


def twice() -> str:
    ledger = Ledger(PLAN, noise=FloatNoise())
    simple(direct, ledger=ledger)()
    again = list(Trainer(direct, {"w": torch.zeros(4)}, rows()[0], ledger))
    return "made a step more" if again else ""


def other_parameters() -> str:
    parameters = {"w": torch.zeros(4, requires_grad=True), "v": torch.zeros(4, requires_grad=True)}
    head = {"w": parameters["w"]}
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1)
    fit(direct, head, rows()[0], Ledger(PLAN, noise=FloatNoise()), optimizer=optimizer)
    return "stepped by exact gradients"


def beyond() -> str:
    """A step is asked for after the last one that is declared."""
    trainer = Trainer(direct, {"w": torch.zeros(4)}, rows()[0], Ledger(PLAN, noise=FloatNoise()))
    return "" if len([*trainer, *trainer]) == len(trainer.ledger) == 3 else "a step too many"


def a_row_that_is_no_number() -> str:
    x, y = rows()
    x[3] = float("nan")
    model = network()
    return trained(loss_of(model), model, (x, y))


def twice_the_stream() -> str:
    law = ContinualGaussian(
        sigma=1.0, factorization=BandedToeplitz(6, 3), participations=2, min_separation=3
    )
    about = PrivacyUnit("row"), ZeroOut(), TrustModel.CENTRAL
    ledger = Ledger(Plan.of(Invocation(law, 1.0, *about, at="gradient")), noise=FloatNoise())
    for _ in range(2):
        next(Trainer(direct, {"w": torch.zeros(4)}, rows()[0], ledger))
    return "began the stream again"


USERS = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=3, unit="user", relation=ZeroOut())
NO_SUM = "no sum of gradients is handed out, and no method that makes one is asked for"
NO_BATCH = "the loop holds no batch: the ledger draws it, and the loss sees one example"
OF_PLAN = "it is the plan's alone; there is no second place to say it"
OWN_LOOP = "whoever holds the data can compute anything of them beside the training"

OF_OPACUS = (
    Case("one pass more than declared", IMPOSSIBLE, "the steps end with the plan", beyond),
    Case("one pass less than declared", REFUSED, "declared 3 times and ran 1 times", one_less),
    Case("less noise than declared", IMPOSSIBLE, OF_PLAN),
    Case(
        "a larger clip norm than declared",
        REFUSED,
        "clip_norm and adaptive belong together",
        simple(direct, clip_norm=2.0),
    ),
    Case("parts of a step clipped otherwise", IMPOSSIBLE, NO_SUM),
    Case("noise drawn past the ledger", IMPOSSIBLE, NO_SUM),
    Case("no noise", IMPOSSIBLE, NO_SUM),
    Case("a step of the wrapped optimizer", HARMLESS, "its gradients are the noisy ones"),
    Case("another optimizer beside it", ASSUMED, OWN_LOOP),
    Case("a step for every micro-batch", IMPOSSIBLE, NO_BATCH),
    Case("copies of a batch", IMPOSSIBLE, NO_BATCH),
    Case("the first batch of a pass again", IMPOSSIBLE, NO_BATCH),
    Case("the same, disjoint batches", IMPOSSIBLE, NO_BATCH),
    Case("large batches alone", IMPOSSIBLE, NO_BATCH),
    Case("batches with a certain row", IMPOSSIBLE, NO_BATCH),
    Case("passes that end at a small batch", IMPOSSIBLE, NO_BATCH),
    Case("the same noise at every step", IMPOSSIBLE, "no seed of torch reaches it", noise_again),
    Case("the same batches in every pass", IMPOSSIBLE, "nor the samples", same_batches),
    Case("a larger sample rate, set later", IMPOSSIBLE, OF_PLAN),
    Case("a larger sample rate than declared", IMPOSSIBLE, OF_PLAN),
    Case("batches padded to one size", IMPOSSIBLE, "what fills a chunk adds exactly nothing"),
    Case("shuffled, declared as sampled", IMPOSSIBLE, OF_PLAN),
    Case("sampled, declared as disjoint", IMPOSSIBLE, OF_PLAN),
    Case("the divisor of each batch", IMPOSSIBLE, NO_BATCH),
    Case("ghost clipping, the usual loss", IMPOSSIBLE, "there is one way to clip"),
    Case("ghost clipping and a penalty", HARMLESS, "a penalty in the loss is clipped with it"),
    Case(
        "ghost clipping, penalty in the loss", HARMLESS, "a penalty in the loss is clipped with it"
    ),
    Case("a step by the exact sums", IMPOSSIBLE, NO_SUM),
    Case("exact gradients put back", ASSUMED, OWN_LOOP),
    Case("ghost clipping, scaled gradients", HARMLESS, "noisy gradients may be scaled"),
    Case("ghost clipping, other coefficients", IMPOSSIBLE, NO_SUM),
    Case("ghost clipping to another norm", IMPOSSIBLE, OF_PLAN),
    Case(
        "a running mean that is a new buffer each time",
        REFUSED,
        "the loss writes to 'mean' of a Held",
        lambda: usual(network(Held(as_buffer=True))),
    ),
    Case(
        "a state beside the buffers that keeps data",
        REFUSED,
        "the loss writes to 'seen' of a Held",
        lambda: usual(network(Held(as_buffer=False))),
    ),
    Case(
        "inputs normalised by the data",
        REHEARSED,
        "sensitivity-understated",
        rehearsed(lambda x, _: ((x - x.mean(0)) / x.std(0), 1.0)),
    ),
    Case("gradients of rows made of all rows", IMPOSSIBLE, NO_BATCH),
)
"""The 36 of ``audits/opacus/trainings.py``, in their order."""

FURTHER = (
    Case(
        "a loss that takes a mean of all rows",
        REFUSED,
        "reads the data of all units",
        held_statistic,
    ),
    Case("a model that holds the data", REFUSED, "as 'self.data'", held_by_object),
    Case(
        "classes weighed by their numbers",
        REHEARSED,
        "sensitivity-understated",
        rehearsed(lambda x, own: (x, 1 / (own[1][own[0] == own[0][0]].sum() + 0.01))),
    ),
    Case(
        "rows mixed with others beforehand",
        REHEARSED,
        "sensitivity-understated",
        rehearsed(lambda x, _: (0.5 * x + 0.5 * x.roll(1, 0), 1.0)),
    ),
    Case("a contrastive loss", IMPOSSIBLE, "the loss sees one example"),
    Case("hard examples mined within a batch", IMPOSSIBLE, NO_BATCH),
    Case(
        "batch norm that trains",
        REFUSED,
        "uses a BatchNorm1d, which cannot be mapped",
        lambda: usual(
            network(nn.Sequential(nn.Unflatten(-1, (4, 1)), nn.BatchNorm1d(4), nn.Flatten(-2)))
        ),
    ),
    Case("a loss for each token", REFUSED, "must be one number", simple(lambda p, e: p["w"] * e)),
    Case(
        "a branch on an example's value",
        REFUSED,
        "or branches on a value",
        simple(lambda p, e: direct(p, e) if e[0] > 0 else direct(p, -e)),
    ),
    Case(
        "parameters of 16 bits",
        REFUSED,
        "rounds gradients by more than",
        lambda: trained(direct, {"w": torch.zeros(4).half()}, rows()[0].half()),
    ),
    Case("a row whose loss is no number", HARMLESS, "it counts as none", a_row_that_is_no_number),
    Case("a label that no class has", ASSUMED, "that a training breaks off"),
    Case("a stop by the exact loss", ASSUMED, OWN_LOOP),
    Case("a rate that follows the exact loss", ASSUMED, OWN_LOOP),
    Case("the best of models by private rows", ASSUMED, OWN_LOOP),
    Case("parameters from an uncharged training", ASSUMED, OWN_LOOP),
    Case("a seed for the noise", FOUND, "training-seeded", seeded),
    Case("a training again on the same ledger", IMPOSSIBLE, "no step is left", twice),
    Case("a stream begun again", REFUSED, "has already begun", twice_the_stream),
    Case(
        "users declared, rows clipped",
        REFUSED,
        "draws rows and clips rows",
        simple(direct, plan=USERS),
    ),
    Case(
        "rows declared, users clipped",
        REFUSED,
        "draws users and clips users",
        simple(direct, users=["a"] * ROWS, most_rows=3),
    ),
    Case("one person under two names", ASSUMED, "units as named"),
    Case(
        "an optimizer with further parameters", REFUSED, "holds other parameters", other_parameters
    ),
    Case(
        "no divisor where numbers are protected",
        REFUSED,
        "divisor is missing",
        simple(direct, plan=Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.5, steps=3)),
    ),
    Case("a divisor that is counted by hand", ASSUMED, "public facts without these data"),
    Case("examples that the loss prints", ASSUMED, OWN_LOOP),
    Case(
        "outputs drawn to a mean of those before",
        REFUSED,
        "the loss changes 'held'",
        lambda: trained(centres(model := network()), model, rows()),
    ),
    Case(
        "a running mean in a layer that a dict holds",
        REFUSED,
        "the loss writes to 'mean' of a Held",
        simple(in_a_dict({"first": Held(as_buffer=True)})),
    ),
    Case("a loss that grows with its calls", REFUSED, "the loss changes 'calls'", annealed),
    Case(
        "a seed for torch within the loss", REFUSED, "the loss seeds torch", simple(seeded_within)
    ),
    Case("a generator within the loss", REFUSED, "the loss changes 'generator'", drawn_within),
    Case(
        "local trust, and all rows in one process",
        REFUSED,
        "a training holds the rows of all units",
        on_devices,
    ),
    Case("two groups, and steps on all rows", REFUSED, "invocations of several groups", in_groups),
    Case("gradients summed over several steps", HARMLESS, "each is noisy, and charged"),
    Case("an average of parameters over steps", HARMLESS, "they follow from noisy gradients"),
)
"""Others."""

CASES = (*OF_OPACUS, *FURTHER)


def main() -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    wrong = 0
    for title, cases in (("of audits/opacus", OF_OPACUS), ("further", FURTHER)):
        print(f"{title}: {len(cases)}")
        for each in cases:
            said = each.said()
            wrong += bool(said)
            tried = "tried" if each.attempt else ""
            print(
                f"  {each.name:46} {each.becomes:30} {tried:6} {each.why}"
                f"{f'  UNEXPECTED: {said}' if said else ''}"
            )
        print(f"  {dict(Counter(each.becomes for each in cases))}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
