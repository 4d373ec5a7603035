"""The defects, each with every method that could find it, and unchanged opacus as a control.

The attacks are on its loader without sampling, and on its expected batch size: each run is one
training step of opacus itself, as ``PrivacyEngine.make_private`` sets it up, and the adversary sees
the noisy gradient. The claim is that of the whole training, of which one step is enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import PrivacyEngine
from opacus.accountants import GaussianAccountant
from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise, _mark_as_processed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from audits.opacus import loops
from audits.opacus.trainings import DIVISOR, POISSON, SHUFFLED, ZEROED, Check, case
from dpaudit import (
    AddRemove,
    AuditPair,
    AuditRecord,
    Claim,
    Ledger,
    Plan,
    Relation,
    ZeroOut,
    guarantee,
)
from dpaudit.accounting.pld.accountant import PLDAccountant
from dpaudit.auditing import audit_release
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.certificate import SubjectRecord, certify
from dpaudit.training.opacus import attach

__all__ = ["DIMENSION", "NEIGHBOURS", "Training", "routine"]

DIMENSION = 12
STEPS = 3
BATCH = 8
MICRO_BATCHES = 4
NOISE, NORM = 1.0, 0.5


class ShareOnEveryMicroBatch(DPOptimizer):
    """Noise zC/m on each of m micro-batches: zC/√m on their sum."""

    def add_noise(self) -> None:
        _add_noise(self, self.noise_multiplier * self.max_grad_norm / MICRO_BATCHES, MICRO_BATCHES)


class NoiseOnEveryMicroBatch(DPOptimizer):
    """Noise zC on each of m micro-batches: √m times what is declared on their sum."""

    def add_noise(self) -> None:
        _add_noise(self, self.noise_multiplier * self.max_grad_norm, MICRO_BATCHES)


class NoiseOfTheMean(DPOptimizer):
    """Noise zC/B, right for the mean, on the sum."""

    def add_noise(self) -> None:
        _add_noise(self, self.noise_multiplier * self.max_grad_norm / BATCH, 1)


class ClipAfterAveraging(DPOptimizer):
    """The mean gradient is clipped to C, and then counts for the whole batch."""

    def clip_and_accumulate(self) -> None:
        sums = [g.sum(dim=0) for g in self.grad_samples]
        size = max(1, len(self.grad_samples[0]))
        norm = torch.sqrt(sum(((g / size) ** 2).sum() for g in sums))
        factor = (self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
        for p, total in zip(self.params, sums, strict=True):
            p.summed_grad = factor * total
            _mark_as_processed(p.grad_sample)


class SensitivityOfTheMean(DPOptimizer):
    """Clips to C, though the noise is that of a sum which one unit moves by C/B."""

    def clip_and_accumulate(self) -> None:
        declared = self.max_grad_norm
        self.max_grad_norm = declared * BATCH
        try:
            super().clip_and_accumulate()
        finally:
            self.max_grad_norm = declared


def _add_noise(optimizer: DPOptimizer, deviation: float, times: int) -> None:
    for p in optimizer.params:
        noise = sum(
            _generate_noise(deviation, p.summed_grad, optimizer.generator) for _ in range(times)
        )
        p.grad = (p.summed_grad + noise).view_as(p)
        _mark_as_processed(p.summed_grad)


@dataclass(frozen=True)
class Training:
    """A few DP-SGD steps of a linear model, with an optimizer that may be wrong.

    Rows are (features, target, weight). Weight 0 takes a row's gradient out and leaves all else as
    it is: neighbours under zero-out. Batches are Poisson samples drawn from the generator.

    Attributes:
        optimizer: class of the optimizer.
    """

    optimizer: type[DPOptimizer]

    def __call__(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> list[float]:
        """Train on rows, shape (n, DIMENSION + 2); the weights of the model."""
        rows = torch.tensor(np.asarray(data, dtype=np.float64))
        model = nn.Linear(DIMENSION, 1, bias=False, dtype=torch.float64)
        nn.init.zeros_(model.weight)
        sampled = GradSampleModule(model, loss_reduction="sum")
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        optimizer = self.optimizer(
            torch.optim.SGD(sampled.parameters(), lr=0.1),
            noise_multiplier=NOISE,
            max_grad_norm=NORM,
            expected_batch_size=BATCH,
            generator=generator,
        )
        attach(optimizer, ledger)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of inputs that need no gradient
            for _ in range(STEPS):
                batch = rows[rng.random(len(rows)) < BATCH / len(rows)]
                optimizer.zero_grad()
                x, y, weight = batch[:, :DIMENSION], batch[:, DIMENSION], batch[:, DIMENSION + 1]
                (weight * (sampled(x).squeeze(1) - y) ** 2).sum().backward()
                optimizer.step()
        return [float(w) for w in model.weight.detach().ravel()]


def routine(optimizer: type[DPOptimizer]) -> Routine:
    """The training with its plan, for replay and conformance."""
    plan = Plan.dp_sgd(
        noise_multiplier=NOISE,
        max_grad_norm=NORM,
        sample_rate=BATCH / _ROWS,
        steps=STEPS,
        relation=ZeroOut(),
    )
    function: Callable[..., Any] = Training(optimizer)
    return Routine(plan, function)


_ROWS = 16


def _neighbours() -> AuditPair:
    """Rows that pull a little to one side, and one that outweighs them on the other."""
    rows = np.zeros((_ROWS, DIMENSION + 2))
    rows[:, 0], rows[:, DIMENSION], rows[:, DIMENSION + 1] = 1.0, -1.0, 1.0
    rows[0, DIMENSION] = 1000.0
    without: NDArray[np.float64] = rows.copy()
    without[0, DIMENSION + 1] = 0.0
    return AuditPair(rows.tolist(), without.tolist(), "one large gradient against all others")


NEIGHBOURS = _neighbours()


DELTA = 1e-5
BATCHES = 50
WIDE = 2000
"""Parameters of the model whose noise is measured: its scale shows within 1/√(2·2000) = 1.6 %."""

Gradient = NDArray[np.float64]


def first_batch_audit(poisson: bool, *, runs: int, seed: int) -> AuditRecord:
    """Whether the first row of the data shows in the first batch.

    Args:
        poisson: whether ``make_private`` puts Poisson sampling in place of a loader that reads the
            rows in their order. The claim is amplified either way.
        runs: runs on each side.
        seed: of the audit.
    """
    without = np.zeros((BATCHES, 1))
    canary = without.copy()
    canary[0] = 1.0
    pair = AuditPair(canary.tolist(), without.tolist(), "the first row's gradient is 1 or 0")
    epsilon = _claimed(1.0, BATCHES, ZeroOut())

    def release(data: Any, size: int, rng: np.random.Generator) -> Gradient:
        gradients = _gradients(data, 1, 1.0, size, rng, poisson_sampling=poisson)
        return np.array([float(gradient[0]) for gradient in gradients])

    return audit_release(release, pair, epsilon=epsilon, delta=DELTA, runs=runs, seed=seed)


def expected_batch_audit(public: bool, *, runs: int, seed: int) -> AuditRecord:
    """Whether the divisor of the noisy sum tells 20 rows from 19 (opacus issues 571 and 819).

    With batches of 5 both have 4 batches; opacus divides by ⌊20/4⌋ = 5 or by ⌊19/4⌋ = 4, so the
    scale of the noise differs by a quarter, in every parameter.

    Args:
        public: whether the divisor is 5 for both.
        runs: runs on each side.
        seed: of the audit.
    """
    rows = np.zeros((20, 1))
    pair = AuditPair(rows.tolist(), rows[:-1].tolist(), "one row more or less, no gradient at all")
    epsilon = _claimed(2.0, 4, AddRemove())
    divisor = 5 if public else None

    def release(data: Any, size: int, rng: np.random.Generator) -> Gradient:
        gradients = _gradients(data, 5, 2.0, size, rng, divisor=divisor, width=WIDE)
        return np.array([float(np.sqrt(np.mean(gradient**2))) for gradient in gradients])

    return audit_release(release, pair, epsilon=epsilon, delta=DELTA, runs=runs, seed=seed)


def _claimed(noise: float, batches: int, relation: Relation) -> float:
    """ε of one epoch of Poisson batches."""
    plan = Plan.dp_sgd(noise_multiplier=noise, sample_rate=1 / batches, epochs=1, relation=relation)
    return guarantee(plan, DELTA).epsilon


def _gradients(
    data: Any,
    batch_size: int,
    noise: float,
    size: int,
    rng: np.random.Generator,
    *,
    width: int = 1,
    divisor: float | None = None,
    **settings: Any,
) -> list[Gradient]:
    """``size`` times the gradient of a first step, shape (width,), each with a fresh sample."""
    rows = torch.tensor(np.asarray(data, dtype=np.float64))
    generator = torch.Generator()
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # opacus warns of its insecure generator
        module, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
            **_parts(rows, batch_size, width),
            noise_multiplier=noise,
            max_grad_norm=1.0,
            noise_generator=generator,
            **settings,
        )
        if divisor is not None:
            optimizer.expected_batch_size = divisor
        step = _stepper(module, optimizer, width)
        found = []
        for run_seed in rng.integers(2**62, size=size):
            torch.manual_seed(int(run_seed))
            generator.manual_seed(int(run_seed) ^ 1)
            found.append(step(next(iter(loader))[0].to(torch.float64)))
    return found


def _parts(rows: torch.Tensor, batch_size: int, width: int) -> dict[str, Any]:
    module = nn.Linear(1, width, bias=False, dtype=torch.float64)
    return {
        "module": module,
        "optimizer": torch.optim.SGD(module.parameters(), lr=0.0),
        "data_loader": DataLoader(TensorDataset(rows), batch_size=batch_size),
    }


def _stepper(module: Any, optimizer: Any, width: int) -> Callable[[torch.Tensor], Gradient]:
    """One step on a batch of rows x, whose loss has the gradient x/√width in every parameter."""

    def step(batch: torch.Tensor) -> Gradient:
        optimizer.zero_grad()
        # opacus undoes the mean over the batch, so that a row's gradient is x itself.
        (module(batch).sum() / (max(1, len(batch)) * width**0.5)).backward()
        optimizer.step()
        (parameter,) = module.parameters()
        return np.asarray(parameter.grad.detach().numpy().ravel(), dtype=np.float64).copy()

    return step


# -- every method on every subject -----------------------------------------------------------------


CONFORMANCE_RUNS = 50
ATTACK_RUNS = 800
GDP = {"noise": 1.0, "rate": 0.01, "steps": 10_000}
MOVED, OTHER_NOISE = "sensitivity-understated", "not-the-declared-noise"
_MICRO = loops.each(loops.micro_batches)


def _replay(optimizer: type[DPOptimizer], seed: int) -> str:
    report = replay(routine(optimizer), NEIGHBOURS.x, NEIGHBOURS.x_prime, seed)
    most = max((each.observed / each.declared for each in report.comparisons), default=0.0)
    return "; ".join(f"{each.rule} (moved by {most:.3g} times)" for each in report.findings)


def _conformance(optimizer: type[DPOptimizer], seed: int) -> str:
    report = conformance(
        routine(optimizer), NEIGHBOURS.x, seed=seed, runs=CONFORMANCE_RUNS, error_rate=1e-6
    )
    spread = report.tested[0].ratio or 0.0
    return "; ".join(f"{each.rule} ({spread:.3g} of it)" for each in report.findings)


def _attack(audit: Callable[..., AuditRecord], runs: int, right: bool, seed: int) -> str:
    record = audit(right, runs=runs, seed=seed)
    said = f"refuted: ε ≥ {record.epsilon_lower:.3g} > {record.claim_epsilon:.3g}"
    return said if record.refuted else ""


def _gdp_number(_: int) -> str:
    """The claim that opacus' GDP accountant makes, against the plan's own guarantee."""
    plan = Plan.dp_sgd(
        noise_multiplier=GDP["noise"], sample_rate=GDP["rate"], steps=int(GDP["steps"])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # opacus says itself that the number may be too low
        accountant = GaussianAccountant()
    accountant.history = [(GDP["noise"], GDP["rate"], int(GDP["steps"]))]
    claim = Claim(float(accountant.get_epsilon(DELTA)), DELTA, "opacus' GDP accountant")
    certificate = certify(plan, subject=SubjectRecord("opacus GDP"), claim=claim)
    least = PLDAccountant().compose(plan.invocations).epsilon(DELTA).lower or 0.0
    wrong = certificate.claim_exceeded and least > claim.epsilon
    return f"claim-exceeded: {claim.epsilon:.4g} < {least:.4g} ≤ ε" if wrong else ""


def _checks() -> Iterator[Check]:
    """Every method that could find a defect, defect by defect."""
    right, sampling = "opacus as it is", "loader without Poisson sampling"
    divisor = "expected batch from the data size (571, 819)"
    public = "the same with a public divisor"
    for name, optimizer, replayed, noise in (
        (right, DPOptimizer, "", ""),
        ("noise zC/m on each micro-batch", ShareOnEveryMicroBatch, "", OTHER_NOISE),
        ("noise zC on each micro-batch", NoiseOnEveryMicroBatch, "", OTHER_NOISE),
        ("clip after averaging", ClipAfterAveraging, MOVED, ""),
        ("noise of the mean on the sum", NoiseOfTheMean, "", OTHER_NOISE),
        ("sensitivity C/B of the sum", SensitivityOfTheMean, MOVED, ""),
    ):
        yield Check(name, "replay", replayed, partial(_replay, optimizer), 3)
        tested = partial(_conformance, optimizer)
        yield Check(name, "conformance", noise, tested, CONFORMANCE_RUNS)
    for name, loop, found, plan, settings, size in (
        (right, loops.honest, "", ZEROED, {}, None),
        ("a noisy step for each micro-batch", _MICRO, "that often", POISSON, {}, None),
        (sampling, loops.honest, "loader-not-poisson", ZEROED, SHUFFLED, None),
        (divisor, loops.honest, DIVISOR, POISSON, {}, None),
        (public, loops.honest, "", POISSON, {}, loops.BATCH),
    ):
        yield case(name, loop, found, plan, settings, method="ledger", divisor=size)
    for name, method, audit, runs, private in (
        (right, "attack, first batch", first_batch_audit, ATTACK_RUNS, True),
        (sampling, "attack, first batch", first_batch_audit, ATTACK_RUNS, False),
        (divisor, "attack, scale", expected_batch_audit, ATTACK_RUNS // 4, False),
        (public, "attack, scale", expected_batch_audit, ATTACK_RUNS // 4, True),
    ):
        found = "" if private else "refuted"
        yield Check(name, method, found, partial(_attack, audit, runs, private), 2 * runs)
    yield Check("opacus' GDP number", "accounting", "claim-exceeded", _gdp_number, 0)


_EVERY = tuple(_checks())
_SUBJECTS = list(dict.fromkeys(check.subject for check in _EVERY))
CHECKS = tuple(sorted(_EVERY, key=lambda check: _SUBJECTS.index(check.subject)))
