"""The defects, each with every method that could find it, and unchanged opacus as a control."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.accountants import GaussianAccountant
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from audits.opacus.attacks import DELTA, expected_batch_audit, first_batch_audit
from audits.opacus.optimizers import (
    NEIGHBOURS,
    ClipAfterAveraging,
    NoiseOfTheMean,
    NoiseOnEveryMicroBatch,
    SensitivityOfTheMean,
    ShareOnEveryMicroBatch,
    routine,
)
from dpaudit import AuditRecord, Claim, Ledger, Plan, ZeroOut
from dpaudit.accounting.pld.accountant import PLDAccountant
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.errors import PlanMismatchError
from dpaudit.certificate import SubjectRecord, certify
from dpaudit.training.opacus import attach

__all__ = ["CHECKS", "Check", "Outcome", "run_checks"]

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
