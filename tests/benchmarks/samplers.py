"""Samplers beside dp-accounting, simulation and attacks; ``python -m tests.benchmarks.samplers``.

Of sampled Gaussian noise, noise 4, rate 0.01, 1000 steps, δ = 1e-5: ε of both, and how many times
as long dp-accounting takes. Times are of the processor, the best of three, in one process. Then one
epoch of 100 steps: random allocation beside what is simulated; a shuffled pass, whose bound is that
of a batch that is known, beside what tells it apart and beside Poisson samples; and shuffled
reports beside what some data set costs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation
from scipy.stats import binom, norm

from audits.catalogue.entry import Entry
from audits.catalogue.measuring import audit_entry
from dpaudit import (
    AddRemove,
    Claim,
    Gaussian,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.accounting import compose
from dpaudit.accounting.pld.allocation import allocated
from dpaudit.auditing.distinguishing.scores import FixedScore
from dpaudit.mechanisms import Shuffled
from dpaudit.plan import RandomAllocation, Sampling, TruncatedPoissonSampling

_REPLACE = NeighboringRelation.REPLACE_ONE


def _rows(rows: int) -> Callable[[], Any]:
    j = range(rows + 1)
    return lambda: pld.from_mixture_gaussian_mechanism(4.0, list(j), binom.pmf(j, rows, 0.01))


def _cut(**facts: Any) -> Callable[[], Any]:
    return lambda: pld.from_truncated_subsampled_gaussian_mechanism(10**4, 0.01, 130, 4.0, **facts)


CASES: dict[str, tuple[Sampling, bool, Callable[[], Any] | None]] = {
    "2 rows": (PoissonSampling(0.01, rows=2), False, _rows(2)),
    "5 rows": (PoissonSampling(0.01, rows=5), False, _rows(5)),
    "replaced": (
        PoissonSampling(0.01, contribution=1.0),
        True,
        lambda: pld.from_gaussian_mechanism(4.0, sampling_prob=0.01, neighboring_relation=_REPLACE),
    ),
    "truncated": (TruncatedPoissonSampling(0.01, 130, 10**4), False, _cut()),
    "truncated, replaced": (
        TruncatedPoissonSampling(0.01, 130, 10**4, 1.0),
        True,
        _cut(neighboring_relation=_REPLACE),
    ),
    "allocated, 1 of 100": (RandomAllocation(100), False, None),
    "allocated, 5 of 500": (RandomAllocation(500, 5), False, None),
    "poisson": (PoissonSampling(0.01), False, None),
}


STEPS, DELTA, DRAWS = 100, 1e-5, 400_000
EPSILONS = np.linspace(0.0, 12.0, 1201)


def _epoch(sigma: float, sampling: Sampling | None) -> float:
    """ε of one epoch: of all steps where they are sampled, else of the one of a known batch."""
    count = 1 if sampling is None else STEPS
    about = (PrivacyUnit("row"), ZeroOut(), TrustModel.CENTRAL)
    one = Invocation(Gaussian(sigma), 1.0, *about, count=count, sampling=sampling)
    return compose(Plan.of(one), "pld").epsilon(DELTA).upper


def simulated(sigma: float, epsilon: float, seed: int = 0) -> tuple[float, float]:
    """δ(ε) of one of so many steps, of a unit that leaves, and its standard error."""
    rng, mu = np.random.default_rng(seed), 1 / sigma
    parts = []
    for _ in range(20):
        noise = rng.standard_normal((DRAWS // 20, STEPS))
        noise[:, 0] += mu  # of P, whichever it is
        parts.append(np.exp(mu * noise - mu * mu / 2).mean(axis=1))
    lost = np.maximum(-np.expm1(epsilon - np.log(np.concatenate(parts))), 0.0)
    return float(lost.mean()), float(lost.std() / math.sqrt(DRAWS))


def passed(sigma: float) -> float:
    """ε that a shuffled pass has at least: all others add −1, the unit 1 or nothing.

    So its batch stands out by 2 or by 1, and the event is that any step is above a threshold
    (Chua et al. 2024, *How private are DP-SGD implementations?*), the best of all.
    """
    level = np.linspace(-3 * sigma, 12 * sigma + 4, 2000)
    others = (STEPS - 1) * norm.logcdf(level / sigma)
    p = -np.expm1(norm.logcdf((level - 2) / sigma) + others)
    q = -np.expm1(norm.logcdf((level - 1) / sigma) + others)
    gains = (p - np.exp(EPSILONS)[:, None] * q).max(axis=1)
    return float(EPSILONS[gains > DELTA].max(initial=0.0))


def attacked(sigma: float, proved: float, seed: int = 1) -> float:
    """What an audit of the same pair proves of the pass by samples, at 95 %."""

    def release(added: Any, size: int, rng: np.random.Generator) -> Any:
        steps = rng.normal(scale=sigma, size=(size, STEPS))
        steps[np.arange(size), rng.integers(STEPS, size=size)] += added
        return steps

    score = FixedScore(lambda steps: np.asarray(steps.max(axis=1)))
    claim = Claim(proved, DELTA)
    entry = Entry("shuffled pass", True, claim, 2.0, 1.0, proved, 20_000, release, None, score)
    return audit_entry(entry, seed).epsilon_lower


def reports(users: int, local: float) -> tuple[float, float]:
    """ε of shuffled binary responses at 1e-6: of equal others, which cost some; as proved."""
    lie = 1 / (math.exp(local) + 1)
    others = binom.pmf(np.arange(users), users - 1, lie)
    zero, one = np.append(others, 0.0), np.append(0.0, others)
    p, q = (1 - lie) * one + lie * zero, (1 - lie) * zero + lie * one
    grid = np.linspace(0.0, local, 8001)
    told = [e for e in grid if max(np.maximum(p - math.exp(e) * q, 0).sum(),
                                   np.maximum(q - math.exp(e) * p, 0).sum()) > 1e-6]  # fmt: skip
    mechanism = Shuffled(RandomizedResponse.calibrated(epsilon=local), users)
    about = (PrivacyUnit("user"), ReplaceOne(), TrustModel.CENTRAL)
    proved = compose(Plan.of(Invocation(mechanism, 1.0, *about))).epsilon(1e-6).upper
    return float(max(told, default=0.0)), proved


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    times, found = [], None
    for _ in range(3):
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    return min(times), found


def main() -> None:
    """Print a line for each scheme."""
    for name, (sampling, replaced, theirs) in CASES.items():
        relation = ReplaceOne() if replaced else AddRemove()
        shift, about = (2.0 if replaced else 1.0), (PrivacyUnit("row"), relation)
        one = Invocation(
            Gaussian(4.0), shift, *about, TrustModel.CENTRAL, count=1000, sampling=sampling
        )
        plan = Plan.of(one)
        compose(plan, "pld").epsilon(1e-5)  # what is imported, and tables
        seconds, own = _seconds(lambda plan=plan: compose(plan, "pld").epsilon(1e-5))
        line = f"{name:20} {own.lower or 0:.6f} to {own.upper:.6f}"
        if theirs is not None:
            slow, other = _seconds(
                lambda law=theirs: law().self_compose(1000).get_epsilon_for_delta(1e-5)
            )
            line += f"; dp-accounting {other:.6f}, {slow / seconds:.1f} times as long"
        print(line)
    print()
    for sigma, epsilon in ((1.0, 0.2), (2.0, 0.05), (4.0, 0.02)):
        pair = allocated(Gaussian(sigma).pair(1.0), STEPS)
        assert pair is not None
        upper, (mean, error) = float(pair[0].delta(epsilon)), simulated(sigma, epsilon)
        print(f"allocated 1 of {STEPS}, noise {sigma:g}: δ({epsilon:g}) ≤ {upper:.6f};", end=" ")
        wide = f"{upper / mean - 1:+.2%} ± {error / mean:.2%}"
        print(f"simulated {mean:.6f} ± {error:.6f}: {wide}")
    for sigma in (0.7, 1.0, 2.0):
        whole, poisson = _epoch(sigma, None), _epoch(sigma, PoissonSampling(1 / STEPS))
        drawn, event, audit = (
            _epoch(sigma, RandomAllocation(STEPS)),
            passed(sigma),
            attacked(sigma, whole),
        )
        print(f"shuffled pass of {STEPS}, noise {sigma:g}: ε ≤ {whole:.3f} (batch known);", end=" ")
        print(f"≥ {event:.3f} (an event), ≥ {audit:.3f} (an audit);", end=" ")
        print(f"Poisson ≤ {poisson:.3f}, allocated ≤ {drawn:.3f}")
    for users, local in ((10**4, 2.0), (1000, 1.0), (100, 1.0)):
        least, most = reports(users, local)
        print(f"{users} shuffled responses of ε₀ = {local:g}: ε from {least:.4f} to {most:.4f}")


if __name__ == "__main__":
    main()
