"""The defects, each with every method that could find it, and unchanged opacus as a control.

The attacks are on its loader without sampling, and on its expected batch size: each run is one
training step of opacus itself, as ``PrivacyEngine.make_private`` sets it up, and the adversary sees
the noisy gradient. The claim is that of the whole training, of which one step is enough.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from dpaudit.base.errors import PlanMismatchError
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


def first_batch_audit(*, poisson: bool, runs: int, seed: int) -> AuditRecord:
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


def expected_batch_audit(*, public: bool, runs: int, seed: int) -> AuditRecord:
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


@dataclass(frozen=True)
class Outcome:
    """What one method said.

    Attributes:
        found: what it found, or empty.
        runs: trainings, or steps of an attack, that it took.
    """

    found: str
    runs: int


@dataclass(frozen=True)
class Check:
    """One method on one subject.

    Attributes:
        subject: the defect, or what is right.
        method: name of the method.
        finds: whether it should find something.
        look: does it, given a seed.
    """

    subject: str
    method: str
    finds: bool
    look: Callable[[int], Outcome]


def _replay(optimizer: type[DPOptimizer]) -> Callable[[int], Outcome]:
    def look(seed: int) -> Outcome:
        report = replay(routine(optimizer), NEIGHBOURS.x, NEIGHBOURS.x_prime, seed)
        most = max((each.observed / each.declared for each in report.comparisons), default=0.0)
        said = [f"{each.rule} (moved by {most:.3g} times)" for each in report.findings]
        return Outcome("; ".join(said), 3)

    return look


def _conformance(optimizer: type[DPOptimizer]) -> Callable[[int], Outcome]:
    def look(seed: int) -> Outcome:
        report = conformance(
            routine(optimizer), NEIGHBOURS.x, seed=seed, runs=CONFORMANCE_RUNS, error_rate=1e-6
        )
        spread = report.tested[0].ratio or 0.0
        said = [f"{each.rule} ({spread:.3g} of it)" for each in report.findings]
        return Outcome("; ".join(said), CONFORMANCE_RUNS)

    return look


def _attack(audit: Callable[..., AuditRecord], **settings: bool) -> Callable[[int], Outcome]:
    def look(seed: int) -> Outcome:
        runs = ATTACK_RUNS if audit is first_batch_audit else ATTACK_RUNS // 4
        record = audit(runs=runs, seed=seed, **settings)
        said = f"refuted: ε ≥ {record.epsilon_lower:.3g} > {record.claim_epsilon:.3g}"
        return Outcome(said if record.refuted else "", 2 * record.runs)

    return look


def _observed(**settings: Any) -> Callable[[int], Outcome]:
    """One epoch of opacus with a ledger attached; errors and the divisor's warning count."""

    def look(seed: int) -> Outcome:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # opacus warns of its insecure generator
            torch.manual_seed(seed)
            training = _trained(**settings)
        rules = [
            each.rule
            for each in training.certificate(DELTA).findings
            if each.rule in ("expected-batch-depends-on-data", "loader-not-poisson")
        ]
        return Outcome("; ".join(rules), 1)

    return look


def _trained(
    *, poisson: bool = True, divisor: float | None = None, relation: Any = None, turns: int = 1
) -> Any:
    data = TensorDataset(torch.randn(40, 4), torch.randn(40))
    engine = PrivacyEngine(accountant="rdp")
    ledger = Ledger(Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.2, epochs=1, relation=relation))
    training = attach(engine, ledger, expected_batch_size=divisor)
    module = nn.Linear(4, 1)
    module, optimizer, loader = engine.make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=8),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=poisson,
    )
    for x, y in loader:
        for part in torch.arange(len(x)).chunk(turns):
            optimizer.zero_grad()
            ((module(x[part]).squeeze(1) - y[part]) ** 2).mean().backward()
            optimizer.step()
    return training


def _step_of_each_micro_batch(seed: int) -> Outcome:
    """A loop that calls ``step`` for every micro-batch, though the plan counts batches."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        try:
            _trained(turns=4)
        except PlanMismatchError:
            return Outcome("more noisy steps than declared", 1)
    return Outcome("", 1)


def _gdp_number(_: int) -> Outcome:
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
    said = f"claim-exceeded: {claim.epsilon:.4g} < {least:.4g} ≤ ε"
    return Outcome(said if wrong else "", 0)


def _optimizer_checks(
    name: str, optimizer: type[DPOptimizer], *, far: bool, noise: bool
) -> tuple[Check, Check]:
    return (
        Check(name, "replay", far, _replay(optimizer)),
        Check(name, "conformance", noise, _conformance(optimizer)),
    )


_NOT_SAMPLED = "loader without Poisson sampling"
_DIVISOR = "expected batch from the data size (571, 819)"
CHECKS: tuple[Check, ...] = (
    *_optimizer_checks("opacus as it is", DPOptimizer, far=False, noise=False),
    Check("opacus as it is", "ledger", False, _observed(relation=ZeroOut())),
    Check(
        "opacus as it is", "attack, first batch", False, _attack(first_batch_audit, poisson=True)
    ),
    *_optimizer_checks(
        "noise zC/m on each micro-batch", ShareOnEveryMicroBatch, far=False, noise=True
    ),
    *_optimizer_checks(
        "noise zC on each micro-batch", NoiseOnEveryMicroBatch, far=False, noise=True
    ),
    Check("a noisy step for each micro-batch", "ledger", True, _step_of_each_micro_batch),
    *_optimizer_checks("clip after averaging", ClipAfterAveraging, far=True, noise=False),
    *_optimizer_checks("noise of the mean on the sum", NoiseOfTheMean, far=False, noise=True),
    *_optimizer_checks("sensitivity C/B of the sum", SensitivityOfTheMean, far=True, noise=False),
    Check(_NOT_SAMPLED, "ledger", True, _observed(poisson=False, relation=ZeroOut())),
    Check(_NOT_SAMPLED, "attack, first batch", True, _attack(first_batch_audit, poisson=False)),
    Check(_DIVISOR, "ledger", True, _observed()),
    Check(_DIVISOR, "attack, scale", True, _attack(expected_batch_audit, public=False)),
    Check("the same with a public divisor", "ledger", False, _observed(divisor=8)),
    Check(
        "the same with a public divisor",
        "attack, scale",
        False,
        _attack(expected_batch_audit, public=True),
    ),
    Check("opacus' GDP number", "accounting", True, _gdp_number),
)


def run_checks(
    checks: tuple[Check, ...] = CHECKS, seed: int = 0
) -> Iterator[tuple[Check, Outcome, float]]:
    """Every check with its outcome and its seconds."""
    for check in checks:
        begin = time.perf_counter()
        outcome = check.look(seed)
        yield check, outcome, time.perf_counter() - begin
