"""Privacy loss distributions: time, ε and error bound beside dp-accounting.

python -m tests.benchmarks.accounting_pld            references that take seconds
python -m tests.benchmarks.accounting_pld --slow     all references, several minutes
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dpaudit.accounting import Interval
from dpaudit.accounting.pld.accountant import PLDAccountant
from dpaudit.accounting.pld.incremental import IncrementalPLD
from dpaudit.mechanisms import Gaussian, Laplace, Mechanism, RandomizedResponse
from dpaudit.plan import AddRemove, Invocation, PoissonSampling, PrivacyUnit, TrustModel

DELTA = 1e-5
Result = TypeVar("Result")


@dataclass(frozen=True)
class Row:
    """One case.

    Attributes:
        name: what is composed.
        invocations: the same, for this project; the whole, or one round.
        delta: δ.
        merged: whether the reference may compose counts at once.
        slow: whether the reference takes more than some seconds.
        rounds: how many rounds are wanted one by one.
    """

    name: str
    invocations: Sequence[Invocation]
    delta: float = DELTA
    merged: bool = True
    slow: bool = False
    rounds: int = 0


def use(mechanism: Mechanism, count: int = 1, rate: float | None = None) -> Invocation:
    sampling = None if rate is None else PoissonSampling(rate)
    unit, relation, trust = PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL
    return Invocation(mechanism, 1.0, unit, relation, trust, count=count, sampling=sampling)


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    sigmas, rates = rng.uniform(1, 3, 1000).tolist(), rng.uniform(0.005, 0.02, 1000).tolist()
    distinct = [use(Gaussian(s), rate=r) for s, r in zip(sigmas, rates, strict=True)]
    interleaved = ([use(Laplace(20.0))] * 10 + [use(Gaussian(20.0))]) * 500
    paper = [(0.15, 1.0), (0.25, 1.0), (0.5, 1.0), (0.25, 1.2), (0.25, 1.5)]
    return [
        Row("1000 distinct Poisson Gaussians", distinct, slow=True),
        Row("5000 Laplace, 500 Gaussian, interleaved", interleaved, merged=False, slow=True),
        Row("the same, counts merged", [use(Laplace(20.0), 5000), use(Gaussian(20.0), 500)]),
        Row("2000 rounds, ε after each", [use(Gaussian(1.0), rate=0.01)], slow=True, rounds=2000),
        Row("4000 rounds, ε after each", [use(Gaussian(1.0), rate=0.01)], slow=True, rounds=4000),
        Row("10⁴ steps, rate .01, σ 1", [use(Gaussian(1.0), 10**4, rate=0.01)]),
        Row("100 randomised responses", [use(RandomizedResponse(0.5, 2), 100)], merged=False),
        Row("500 Gaussians, σ 20", [use(Gaussian(20.0), 500)]),
        *(
            Row(f"T 40, q {q}, z {z}", [use(Gaussian(z), 40, rate=q)], delta=200**-1.1)
            for q, z in paper
        ),
        Row("10⁹ Gaussians, σ 1e5", [use(Gaussian(1e5), 10**9)], slow=True),
        Row("10⁹ Laplace, scale 1e5", [use(Laplace(1e5), 10**9)], slow=True),
        Row("10⁹ Poisson Gaussians, rate 1e-5", [use(Gaussian(1.0), 10**9, rate=1e-5)], slow=True),
        Row("1 Gaussian, σ 1e-160", [use(Gaussian(1e-160))], slow=True),
    ]


def ours(row: Row) -> Interval:
    if row.rounds:
        rounds = IncrementalPLD(row.invocations, horizon=row.rounds, delta=row.delta)
        return list(rounds)[-1]
    return PLDAccountant().compose(row.invocations).epsilon(row.delta)


def theirs(row: Row) -> float:
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    def event(one: Invocation) -> dp_event.DpEvent:
        mechanism = one.mechanism
        if isinstance(mechanism, Gaussian):
            base: dp_event.DpEvent = dp_event.GaussianDpEvent(mechanism.sigma)
        elif isinstance(mechanism, Laplace):
            base = dp_event.LaplaceDpEvent(mechanism.scale)
        elif isinstance(mechanism, RandomizedResponse):
            base = dp_event.RandomizedResponseDpEvent(mechanism.p, mechanism.k)
        else:
            raise TypeError(mechanism)
        if isinstance(one.sampling, PoissonSampling):
            return dp_event.PoissonSampledDpEvent(one.sampling.rate, base)
        return base

    def relation() -> pld_privacy_accountant.PLDAccountant:
        if isinstance(row.invocations[0].mechanism, RandomizedResponse):
            from dp_accounting import NeighboringRelation

            return pld_privacy_accountant.PLDAccountant(NeighboringRelation.REPLACE_ONE)
        return pld_privacy_accountant.PLDAccountant()

    accountant, found = relation(), 0.0
    for one in row.invocations:
        if row.merged and not row.rounds:
            accountant.compose(event(one), one.count)
            continue
        for _ in range(row.rounds or one.count):
            accountant.compose(event(one))
            if row.rounds:
                found = accountant.get_epsilon(row.delta)
    return float(found or accountant.get_epsilon(row.delta))


def timed(function: Callable[[Row], Result], row: Row) -> tuple[Result, float]:
    begin = time.perf_counter()
    found = function(row)
    return found, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slow", action="store_true", help="run the slow references too")
    slow = parser.parse_args().slow
    ours(Row("imports", [use(Gaussian(1.0), 2, rate=0.5)]))
    print(
        f"{'case':40} {'ε ≤':>12} {'error bound':>12} {'s':>7} {'reference':>12} {'s':>7} {'×':>7}"
    )
    for row in rows():
        found, seconds = timed(ours, row)
        width = found.width if found.upper < np.inf else float("nan")
        line = f"{row.name:40} {found.upper:12.6g} {width:12.3g} {seconds:7.3f}"
        if slow or not row.slow:
            reference, their_seconds = timed(theirs, row)
            line += f" {reference:12.6g} {their_seconds:7.2f} {their_seconds / seconds:7.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
