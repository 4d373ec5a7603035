"""Accounting side by side: time, ε and error bound, ours and the references.

Run ``python -m tests.benchmarks.accounting``; ``--slow`` adds the references that take minutes.
opacus and prv_accountant take part where they can be imported. A ratio is a reference's time over
that of our accountant of the same kind, or else of the first of ours.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from dpaudit.accounting import epsilon_after_rounds, guarantee
from dpaudit.interchange.dp_accounting import to_dp_event
from dpaudit.mechanisms import (
    BinaryTree,
    BufferedToeplitz,
    Gaussian,
    HonakerTree,
    Laplace,
    RandomizedResponse,
    SquareRootToeplitz,
)
from dpaudit.plan import (
    AddRemove,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    ReplaceOne,
    TrustModel,
)

DELTA = 1e-5
PAPER_DELTA = 200**-1.1
PAPER_CASES = ((0.15, 1.0), (0.25, 1.0), (0.5, 1.0), (0.25, 1.2), (0.25, 1.5))
HEADER = ("case", "who", "seconds", "epsilon", "error bound", "ratio")


@dataclass(frozen=True)
class Result:
    """One cell of the page."""

    epsilon: float
    error_bound: float | None = None


Task = Callable[[], Result]


@dataclass(frozen=True)
class Row:
    """One case: ours, and the references by name; those in ``slow`` take minutes."""

    case: str
    ours: dict[str, Task]
    references: dict[str, Task]
    slow: dict[str, Task]


def use(mechanism: Any, sensitivity: float = 1.0, **fields: Any) -> Invocation:
    relation: Relation = fields.pop("relation", AddRemove())
    return Invocation(
        mechanism, sensitivity, PrivacyUnit("row"), relation, TrustModel.CENTRAL, **fields
    )


def ours(plan: Plan, accountant: str = "best", delta: float = DELTA) -> Task:
    def run() -> Result:
        # The composition alone: a guarantee adds a curve of thirty points.
        from dpaudit.accounting import compose

        interval = compose(plan, accountant).epsilon(delta)
        return Result(interval.upper, interval.width)

    return run


def whole_guarantee(plan: Plan, delta: float = DELTA) -> Task:
    def run() -> Result:
        found = guarantee(plan, delta)
        return Result(found.epsilon, found.error_bound)

    return run


def reference(plan: Plan, accountant: str, delta: float = DELTA) -> Task:
    def run() -> Result:
        import dp_accounting as dp
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant

        replaces = isinstance(plan.relation, ReplaceOne)
        relation = (
            dp.NeighboringRelation.REPLACE_ONE
            if replaces
            else dp.NeighboringRelation.ADD_OR_REMOVE_ONE
        )
        accounts = (
            PLDAccountant(neighboring_relation=relation)
            if accountant == "pld"
            else RdpAccountant(neighboring_relation=relation)
        )
        accounts.compose(to_dp_event(plan))
        return Result(float(accounts.get_epsilon(delta)))

    return run


def prv(sigma: float, rate: float, steps: int) -> Task:
    def run() -> Result:
        from prv_accountant import Accountant

        accountant = Accountant(
            noise_multiplier=sigma,
            sampling_probability=rate,
            delta=DELTA,
            max_compositions=steps,
            eps_error=0.01,
        )
        low, _, high = accountant.compute_epsilon(num_compositions=steps)
        return Result(high, high - low)

    return run


def opacus(sigma: float, rate: float, steps: int) -> Task:
    def run() -> Result:
        from opacus.accountants import RDPAccountant

        accountant = RDPAccountant()
        accountant.history = [(sigma, rate, steps)]
        return Result(float(accountant.get_epsilon(delta=DELTA)))

    return run


def distinct_sampled() -> Row:
    rng = np.random.default_rng(0)
    sigmas, rates = rng.uniform(1, 3, 1000), rng.uniform(0.005, 0.02, 1000)
    plan = Plan.of(
        *(
            use(Gaussian(float(s)), sampling=PoissonSampling(float(q)))
            for s, q in zip(sigmas, rates, strict=True)
        )
    )
    return Row(
        "1000 distinct sampled Gaussians",
        {"pld": ours(plan, "pld"), "rdp": ours(plan, "rdp")},
        {},
        {"dp-accounting pld": reference(plan, "pld")},
    )


def interleaved() -> Row:
    laplace, gaussian = use(Laplace(20.0)), use(Gaussian(20.0))
    order = ([laplace] * 10 + [gaussian]) * 500
    batched = Plan.of(use(Laplace(20.0), count=5000), use(Gaussian(20.0), count=500))
    plan = Plan.of(*order)
    return Row(
        "5000 Laplace and 500 Gaussian, one by one",
        {"pld": ours(plan, "pld"), "best": ours(plan)},
        {"dp-accounting pld, batched": reference(batched, "pld")},
        {"dp-accounting pld, one by one": reference(plan, "pld")},
    )


def rounds(accountant: str, number: int, reference_rounds: int) -> Row:
    plan = Plan.of(use(Gaussian(1.0), sampling=PoissonSampling(0.01)))

    def run(until: int) -> Task:
        def task() -> Result:
            found = epsilon_after_rounds(plan, DELTA, np.arange(1, until + 1), accountant)
            return Result(float(found[-1]))

        return task

    def loop() -> Result:
        from dp_accounting import dp_event
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant

        accounts = PLDAccountant() if accountant == "pld" else RdpAccountant()
        event = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
        epsilon = math.inf
        for _ in range(reference_rounds):
            accounts.compose(event)
            epsilon = float(accounts.get_epsilon(DELTA))
        return Result(epsilon)

    return Row(
        f"epsilon after each of {number} {accountant} rounds",
        {f"{accountant}, {number // 2} rounds": run(number // 2), accountant: run(number)},
        {},
        {f"dp-accounting {accountant}, {reference_rounds} rounds": loop},
    )


def many_steps() -> Row:
    plan = Plan.of(use(Gaussian(1.0), count=10_000, sampling=PoissonSampling(0.01)))
    return Row(
        "rate .01, sigma 1, 10000 steps",
        {"pld": ours(plan, "pld"), "rdp": ours(plan, "rdp"), "guarantee": whole_guarantee(plan)},
        {
            "dp-accounting pld": reference(plan, "pld"),
            "dp-accounting rdp": reference(plan, "rdp"),
            "opacus rdp": opacus(1.0, 0.01, 10_000),
            "prv_accountant": prv(1.0, 0.01, 10_000),
        },
        {},
    )


def simple_rows() -> Iterator[Row]:
    tenth = Plan.of(use(Laplace(20.0), count=10))
    yield Row(
        "10 Laplace(0.05) at delta 0",
        {"best": ours(tenth, delta=0.0)},
        {"dp-accounting pld": reference(tenth, "pld", 0.0)},
        {},
    )
    answers = Plan.of(use(RandomizedResponse(0.5), relation=ReplaceOne(), count=100))
    yield Row(
        "100 randomised responses",
        {"best": ours(answers)},
        {"dp-accounting pld": reference(answers, "pld")},
        {},
    )
    gaussians = Plan.of(use(Gaussian(20.0), count=500))
    yield Row(
        "500 Gaussian(20)",
        {"gaussian": ours(gaussians, "gaussian")},
        {"dp-accounting pld": reference(gaussians, "pld")},
        {},
    )
    replaced = Plan.of(use(Gaussian(10.0), 2.0, relation=ReplaceOne()))
    yield Row(
        "replace-one Gaussian(10)",
        {name: ours(replaced, name) for name in ("gaussian", "zcdp", "rdp", "pld")},
        {
            "dp-accounting rdp": reference(replaced, "rdp"),
            "dp-accounting pld": reference(replaced, "pld"),
        },
        {},
    )
    for rate, sigma in PAPER_CASES:
        steps = Plan.of(use(Gaussian(sigma), count=40, sampling=PoissonSampling(rate)))
        yield Row(
            f"40 steps, q={rate}, z={sigma}",
            {name: ours(steps, name, PAPER_DELTA) for name in ("moments", "rdp", "pld")},
            {
                "dp-accounting rdp": reference(steps, "rdp", PAPER_DELTA),
                "dp-accounting pld": reference(steps, "pld", PAPER_DELTA),
            },
            {},
        )


def rows() -> Iterator[Row]:
    yield distinct_sampled()
    yield interleaved()
    yield rounds("pld", 2000, 2000)
    yield rounds("rdp", 10_000, 10_000)
    yield many_steps()
    yield from simple_rows()


def timed(task: Task) -> tuple[float, Result | str]:
    start = perf_counter()
    try:
        result: Result | str = task()
    except ImportError as error:
        result = f"not installed: {error.name}"
    except Exception as error:  # noqa: BLE001  # a reference that fails is a line of the page
        result = f"{type(error).__name__}: {str(error)[:50]}"
    return perf_counter() - start, result


def line(case: str, who: str, seconds: float, result: Result | str, ratio: float | None) -> str:
    if isinstance(result, str):
        return f"{case:44} {who:36} {result}"
    bound = "" if result.error_bound is None else f"{result.error_bound:.1e}"
    share = "" if ratio is None else f"{ratio:.1f}x"
    return f"{case:44} {who:36} {seconds:9.4f} {result.epsilon:12.6g} {bound:>11} {share:>9}"


def prefix_sums(steps: int = 1024, rho: float = 0.5) -> Iterator[str]:
    """Largest deviation of continually released prefix sums at equal ρ."""
    for name, factorization in (
        ("tree, root released (reference)", BinaryTree(steps, release_root=True)),
        ("Honaker, root released (reference)", HonakerTree(steps, release_root=True)),
        ("square root", SquareRootToeplitz(steps)),
        ("4 buffers", BufferedToeplitz.fitted(steps, buffers=4)),
    ):
        sigma = factorization.sensitivity() / math.sqrt(2 * rho)
        largest = factorization.max_error(sigma)
        yield f"{f'prefix sums T={steps}, ρ={rho:g}':44} {name:36} max std {largest:.4f}"


def main() -> None:
    """Print the page."""
    import logging

    from absl import logging as absl_logging

    logging.disable(logging.WARNING)
    absl_logging.set_verbosity(absl_logging.ERROR)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", action="store_true", help="run references that take minutes")
    parser.add_argument("--only", default="", help="cases that contain this text")
    arguments = parser.parse_args()
    print("{:44} {:36} {:>9} {:>12} {:>11} {:>9}".format(*HEADER))
    for row in rows():
        if arguments.only not in row.case:
            continue
        own: dict[str, float] = {}
        for who, task in row.ours.items():
            seconds, result = timed(task)
            own[who] = seconds
            print(line(row.case, f"dpaudit {who}", seconds, result, None), flush=True)
        others = row.references | (row.slow if arguments.slow else {})
        for who, task in others.items():
            seconds, result = timed(task)
            kind = next((name for name in own if name in who.split()), next(iter(own)))
            ratio = seconds / own[kind]
            print(line(row.case, who, seconds, result, ratio), flush=True)
    if arguments.only in "prefix sums":
        print("\n".join(prefix_sums()))


if __name__ == "__main__":
    main()
