"""A DP-SGD model and the private search for its learning rate: one ledger, one certificate.

``python -m private_bo.local.tuned_training -o DIR`` searches on the digits of scikit-learn and
writes ``ledger.jsonl`` and ``certificate.json`` to DIR (extra ``opacus``). Ponomareva et al. 2023
("How to DP-fy ML") ask that the tuning of hyperparameters be covered by the guarantee.

Who is protected: one row of the data, under zero-out. A public rule makes a row a training row or a
validation row, for good.

* A *training row* enters every trial's DP-SGD, so the trials compose. Models are scored on other
  rows, so all that the search does with them is post-processing, including the choice of a model.
* A *validation row* is in one slice, which scores one trial. The slice's accuracy is the reward of
  LDP-TGP-UCB (Zhou and Tan 2021, Algorithm 2), whose Laplace noise covers it; of m rows, one moves
  it by at most 1/m. What is trained afterwards depends on noisy rewards only. With ``--all-rows``
  every trial is scored on all n = Tm validation rows, whose T costs add up (joint privacy): each
  moves an accuracy by 1/n, so that the same noise has the same ε, and the accuracy less error.

Given all earlier releases, a step on one kind of rows has the same law for neighbours that differ
in a row of the other kind. So the two parts compose in parallel, adaptively too: a row pays for its
own part, and the guarantee for every row is the larger of the two.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpaudit import (
    Certificate,
    Finding,
    Group,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    RunResult,
    Severity,
    Subject,
    TrustModel,
    ZeroOut,
    guarantee,
)
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Positive
from dpaudit.project import Move
from private_bo.base import load_named
from private_bo.experiments import command, made_folder
from private_bo.gp import FiniteDomain, SquaredExponential
from private_bo.gp.types import Array
from private_bo.local import LDPTGPUCB
from private_bo.local.policies import Outcome, Users
from private_bo.problems import BanditProblem, Response, RewardSource
from private_bo.problems.sources import shuffled_digits

if TYPE_CHECKING:
    from dpaudit.training.opacus import Training

TRAINING, VALIDATION = "training rows", "validation rows"
RATES = tuple(float(rate) for rate in np.geomspace(0.01, 10.0, 10))
"""Learning rates of the search, a grid on the logarithm."""

_ZEROED = -1
"""The class of a row that counts for nothing: without loss, and never classified rightly."""


@dataclass(frozen=True)
class TunedTraining(Checked, Subject):
    """The search as a subject: trials of DP-SGD, scored on slices of held-out rows.

    Attributes:
        trials: models that are trained, each with a learning rate of its own.
        epochs: of each model.
        batches: expected batches of an epoch; the sample rate is one over it.
        noise_multiplier: of DP-SGD.
        max_grad_norm: its clip norm.
        slice_size: validation rows that score one trial.
        score_epsilon: ε of one validation row.
        training_rows: how many rows train; public under zero-out.
        hidden: width of the model.
        all_rows: whether all validation rows score every trial.
    """

    default_data: ClassVar[str] = "digits"

    trials: Count = 8
    epochs: Count = 2
    batches: Count = 20
    noise_multiplier: Positive = 1.5
    max_grad_norm: Positive = 1.0
    slice_size: Count = 60
    score_epsilon: Positive = 0.25
    training_rows: Count = 1200
    hidden: Count = 16
    all_rows: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = math.ceil(self.training_rows / self._batch_size)
        if whole != self.batches or int(1 / (1 / whole)) != whole:
            raise InputError(
                f"batches is {self.batches}; {self.training_rows} training rows do not make that "
                f"many batches of {self._batch_size}, so choose a divisor."
            )

    @property
    def _batch_size(self) -> int:
        """What the loader is asked for."""
        return math.ceil(self.training_rows / self.batches)

    @cached_property
    def search(self) -> LDPTGPUCB:
        """The learner. Its reward is the accuracy less a half, in ±1/2."""
        return LDPTGPUCB(
            epsilon=self.score_epsilon * self.slice_size,
            reward_bound=0.4,
            noise_bound=0.1,
            steps=self.trials,
            width_multiplier=0.05,
        )

    @property
    def mechanism(self) -> Laplace:
        """The noise of a score: the learner's own, for a reward that may be anything in ±1/2."""
        return self.search.mechanism

    def plan(self) -> Plan:
        """Both parts: T scores, of slices that share no row or of all, and T trainings."""
        count = self.trials if self.all_rows else 1
        scores = Invocation(
            self.mechanism,
            1 / (count * self.slice_size),
            PrivacyUnit("row"),
            ZeroOut(),
            TrustModel.JOINT if self.all_rows else TrustModel.CENTRAL,
            count=count,
            total=self.trials,
            group=Group(VALIDATION),
            at="reward",
        )
        trainings = [
            replace(each, group=Group(TRAINING))
            for trial in range(1, self.trials + 1)
            for each in self._training(trial).invocations
        ]
        return Plan.of(scores, *trainings)

    def _training(self, trial: int) -> Plan:
        return Plan.dp_sgd(
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=self.max_grad_norm,
            sample_rate=1 / self.batches,
            steps=self.epochs * self.batches,
            relation=ZeroOut(),
            unit="row",
            at=f"trial {trial}",
        )

    def parts(self, delta: float) -> dict[str, float]:
        """ε of each kind of rows at one δ."""
        kinds: dict[str, list[Invocation]] = {TRAINING: [], VALIDATION: []}
        for each in self.plan().invocations:
            kinds[str(each.group)].append(each)
        return {name: guarantee(Plan.of(*own), delta).epsilon for name, own in kinds.items()}

    def not_covered(self) -> tuple[str, ...]:
        """What the guarantee leaves out."""
        return (
            "That the numbers of training and validation rows are public.",
            "The grid of learning rates and the model's shape, if they were chosen on these data.",
            "A row that is both a training and a validation row, such as a duplicate; it pays "
            "for both parts.",
        )

    def load(self, source: str, rng: np.random.Generator) -> tuple[Array, Array]:
        """Pixels in [0, 1], shape (1797, 64), and digits; in a public random order."""
        return load_named(source, {"digits": lambda: shuffled_digits(rng)})

    def neighbours(self, data: tuple[Array, Array], rng: np.random.Generator) -> Iterator[Move]:
        """One row zeroed, of those that train and of those that score; ordinary or extreme."""
        x, y = data
        needed = self.training_rows + self.trials * self.slice_size
        train, score = int(rng.integers(self.training_rows)), self.training_rows
        for row in (0, train, score, int(rng.integers(score, needed))):
            yield Move(_changed(data, row, x[row], _ZEROED), f"row {row} zeroed")
        for row in (0, train, score):
            other = _changed(data, row, 1e3 * (1 - x[row]), (int(y[row]) + 1) % 10)
            recipe = f"row {row}, with pixels far above all others, zeroed"
            yield Move(_changed(data, row, x[row], _ZEROED), recipe, extreme=True, base=other)

    def run(self, data: tuple[Array, Array], ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Search; every score and every noisy gradient goes through the ledger.

        The first ``training_rows`` train. From the generator come initial weights and batches,
        which must stay secret; the noise of gradients is opacus' own.
        """
        return self._run(data, ledger, rng)[0]

    def _run(
        self, data: tuple[Array, Array], ledger: Ledger, rng: np.random.Generator
    ) -> tuple[RunResult, Training]:
        x, y = (np.asarray(part) for part in data)
        needed = self.training_rows + self.trials * self.slice_size
        if len(x) < needed or len(x) != len(y):
            raise InputError(
                f"data has {len(x)} inputs and {len(y)} classes; it must have at least {needed} "
                "rows, training_rows and slice_size for each trial."
            )
        trials = _Trials(self, x, y, ledger)
        users = Users(_problem(trials), self.search.channel(ledger), rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of opacus: its generator and its hooks
            outcome = self.search.play(users, rng)
        assert trials.training is not None
        return _result(trials, outcome), trials.training


@dataclass(eq=False)
class _Trials(RewardSource):
    """Asked about a learning rate, trains a model with it and scores it on the next slice.

    Attributes:
        subject: the configuration.
        x: inputs, (n, d).
        y: classes, (n,).
        ledger: of both parts.
        rates: learning rate of each trial so far.
        training: what watches the trainings.
    """

    subject: TunedTraining
    x: Array
    y: Array
    ledger: Ledger
    rates: list[float] = field(default_factory=list)
    training: Training | None = None

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """The score of a fresh slice, for the search to add noise to."""
        subject, trial = self.subject, len(self.rates) + 1
        model = self._trained(RATES[index], trial, rng)
        begin, size, who = subject.training_rows, subject.slice_size, "all validation rows"
        if subject.all_rows:
            size *= subject.trials
        else:
            begin, who = begin + (trial - 1) * size, f"slice {trial}"
        rows = slice(begin, begin + size)
        self.rates.append(RATES[index])
        return Response(who, _accuracy(model, self.x[rows], self.y[rows]) - 0.5)

    def _trained(self, rate: float, trial: int, rng: np.random.Generator) -> Any:
        """One model by DP-SGD with opacus, each noisy step in the ledger."""
        import torch
        from opacus import PrivacyEngine
        from torch.nn.functional import cross_entropy
        from torch.utils.data import DataLoader, TensorDataset

        from dpaudit.training.opacus import attach

        subject, count = self.subject, self.subject.training_rows
        inputs = torch.tensor(self.x[:count], dtype=torch.float32)
        rows = TensorDataset(inputs, torch.tensor(self.y[:count], dtype=torch.int64))
        model: Any = _network(self.x.shape[1], subject.hidden, rng)
        drawn = torch.Generator().manual_seed(int(rng.integers(2**63)))
        engine = PrivacyEngine(accountant="rdp")
        self.training = attach(engine, self.ledger, at=f"trial {trial}")
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=rate),
            data_loader=DataLoader(rows, batch_size=subject._batch_size, generator=drawn),
            noise_multiplier=subject.noise_multiplier,
            max_grad_norm=subject.max_grad_norm,
        )
        for _ in range(subject.epochs):
            for x, y in loader:
                optimizer.zero_grad()
                losses = cross_entropy(model(x), y, ignore_index=_ZEROED, reduction="none")
                losses.mean().backward()
                optimizer.step()
        return model


def _changed(data: tuple[Array, Array], row: int, pixels: Array, digit: int) -> tuple[Array, Array]:
    """The data with another row."""
    x, y = data[0].copy(), data[1].copy()
    x[row], y[row] = pixels, digit
    return x, y


def _network(inputs: int, hidden: int, rng: np.random.Generator) -> Any:
    """A perceptron of ten classes, with initial weights from the generator."""
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 1 / math.sqrt(parameter.shape[-1])
            values = rng.uniform(-scale, scale, tuple(parameter.shape))
            parameter.copy_(torch.tensor(values, dtype=parameter.dtype))
    return model


def _accuracy(model: Any, x: Array, y: Array) -> float:
    """Share of rows that are classified rightly; of m rows, one moves it by 1/m."""
    import torch

    with torch.no_grad():
        found = model(torch.tensor(x, dtype=torch.float32)).argmax(dim=1).numpy()
    return float((found == y).mean())


def _problem(trials: _Trials) -> BanditProblem:
    """The rates on [0, 1] as a bandit. Its true means are unknown: zeros, which nobody reads."""
    points = np.linspace(0.0, 1.0, len(RATES))[:, None]
    return BanditProblem(
        name="learning rate",
        domain=FiniteDomain(points),
        kernel=SquaredExponential(0.3),
        f=np.zeros(len(RATES)),
        B=0.4,
        R=0.1,
        v=0.25,
        c=0.25,
        bounds_are_public=True,
        rewards=trials,
    )


def _result(trials: _Trials, outcome: Outcome) -> RunResult:
    """The learning rate that the noisy scores favour."""
    return RunResult(
        summary={
            "trials": len(trials.rates),
            "recommended learning rate": RATES[outcome.recommended],
            "estimated accuracy": float(outcome.mean[outcome.recommended]) + 0.5,
        },
        series={"learning rate": trials.rates},
    )


def tune(
    subject: TunedTraining, journal: Path | str | None = None, *, delta: float = 1e-5, seed: int = 0
) -> Certificate:
    """Search on the digits and certify search and trainings together.

    Args:
        subject: the configuration.
        journal: file of the ledger, if wanted.
        delta: δ of the guarantee.
        seed: of the order of rows; noise, batches and initial weights are never seeded.

    Returns:
        The certificate, with one (ε, δ) for every row and a finding that states its two parts.
    """
    data = subject.load("digits", np.random.default_rng(seed))
    with Ledger(subject.plan(), journal=journal) as ledger:
        result, training = subject._run(data, ledger, np.random.default_rng())
    parts = subject.parts(delta)
    stated = Finding(
        "two-parts",
        Severity.NOTE,
        f"At δ = {delta:g}: ε = {parts[TRAINING]:.6g} for {TRAINING} (trainings of "
        f"{subject.trials} models) and ε = {parts[VALIDATION]:.6g} for {VALIDATION} (noisy scores "
        "of the search). A row is in one of the two, so the larger number holds for every row.",
        "Keep the split fixed; a row in both would pay the sum.",
    )
    certificate = training.certificate(
        delta, name="private_bo.local.tuned_training:TunedTraining", findings=(stated,)
    )
    run = result.to_dict()
    run["summary"] |= {f"epsilon of {name}": epsilon for name, epsilon in parts.items()}
    limits = (*certificate.not_covered[1:], *subject.not_covered())
    return replace(certificate, run=run, not_covered=limits)


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, write ledger and certificate, and say what was proved."""
    parser = argparse.ArgumentParser(prog="python -m private_bo.local.tuned_training")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the files")
    parser.add_argument("--trials", type=int, default=TunedTraining.trials)
    parser.add_argument("--epochs", type=int, default=TunedTraining.epochs)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all-rows", action="store_true", help="all of them score every trial")
    return command(_run, parser.parse_args(arguments))


def _run(given: argparse.Namespace) -> str:
    subject = TunedTraining(trials=given.trials, epochs=given.epochs, all_rows=given.all_rows)
    folder = made_folder(given.output)
    certificate = tune(subject, folder / "ledger.jsonl", delta=given.delta, seed=given.seed)
    saved = certificate.save(folder / "certificate.json")
    proved, run = certificate.guarantee, certificate.run or {"summary": {}}
    assert proved is not None
    lines = [
        f"{saved}: {certificate.verdict}",
        f"every row: epsilon {proved.epsilon:.4f} at delta {proved.delta:g}",
        *(f"{name}: {value:.6g}" for name, value in run["summary"].items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
