"""What the checker proves of random plans: how many, how near to the engine, how long it takes.

Run ``python -m tests.benchmarks.checker [--plans 300] [--seed 0]``: the plans of
``tests.benchmarks.soundness`` for which the engine proves a finite ε. Each proof is
compared with the oracle of that benchmark, which knows neither the engine nor the checker.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import random
import time
import warnings
from dataclasses import dataclass

from dpaudit import checker
from dpaudit.accounting import guarantee
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate.checking import witness_of
from tests.benchmarks.soundness.judging import TooLongError, time_limit
from tests.benchmarks.soundness.oracle.truth import truth
from tests.benchmarks.soundness.plans import case
from tests.benchmarks.soundness.uses import Case, declared


@dataclass(frozen=True)
class Row:
    """One plan: its kind, the engine's ε and the checker's, sizes and processor seconds."""

    number: int
    name: str
    engine: float
    proved: float
    reason: str
    size: int
    writing: float
    checking: float
    below: bool = False
    """Whether an oracle finds δ larger than stated at the proved ε."""

    @property
    def excess(self) -> float:
        """Relative excess over the engine's ε; two that are both tiny count as equal."""
        if self.proved <= self.engine + 1e-9:
            return 0.0
        return self.proved / self.engine - 1 if self.engine > 0 else math.inf


def row(seed: int, number: int) -> Row | None:
    """Plan ``number``, or None where the engine proves nothing finite in time."""
    one = case(random.Random(f"{seed}/{number}"))
    try:
        with time_limit(60):
            plan = declared(one)
            whole = guarantee(plan, one.delta)
    except (InputError, UnsupportedError, TooLongError):
        return None
    if not math.isfinite(whole.epsilon):
        return None
    start = time.process_time()
    try:
        with time_limit(120):
            witness = witness_of(plan, whole)
    except TooLongError:
        witness = None
    written = time.process_time()
    record = {"plan": plan.to_dict(), "guarantee": {"delta": one.delta}, "witness": witness}
    record = json.loads(json.dumps(record))
    proof = checker.prove(record)
    proved = math.inf if proof.epsilon is None else float(proof.epsilon)
    return Row(
        number,
        one.name,
        whole.epsilon,
        proved,
        proof.reason,
        len(json.dumps(witness)) if witness else 0,
        written - start,
        time.process_time() - written,
        _is_below(one, proved),
    )


def _is_below(one: Case, proved: float) -> bool:
    if not math.isfinite(proved):
        return False
    try:
        with time_limit(30):
            curve = truth(one, one.delta, deep=False)
            return curve is not None and curve.lower(proved * (1 + 1e-12)) > one.delta
    except Exception:  # noqa: BLE001  # of the oracle, which then says nothing
        return False


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plans", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    rows = []
    for number in range(arguments.first, arguments.first + arguments.plans):
        found = row(arguments.seed, number)
        if found is None:
            continue
        rows.append(found)
        if found.below:
            print(f"{found.number} {found.name}: {found.proved!r} IS BELOW THE TRUTH", flush=True)
        if found.excess > 0.01 or found.checking > 10:
            print(
                f"{found.number} {found.name}: engine {found.engine:.6g}, proved "
                f"{found.proved:.6g}, {found.writing:.1f} s, {found.checking:.1f} s {found.reason}",
                flush=True,
            )
    kinds = collections.defaultdict(list)
    for each in rows:
        kinds[each.name].append(each)
    print(f"{'kind':28} plans covered within 1 %")
    for name, group in sorted(kinds.items()):
        covered = sum(math.isfinite(each.proved) for each in group)
        near = sum(each.excess <= 0.01 for each in group)
        print(f"{name:28} {len(group):5} {covered:7} {near:11}")
    covered = [each for each in rows if math.isfinite(each.proved)]
    near = sum(each.excess <= 0.01 for each in covered)
    print(
        f"covered {len(covered)}/{len(rows)} = {len(covered) / len(rows):.1%}, "
        f"{sum(each.below for each in rows)} below the truth; within 1 %: {near} = "
        f"{near / len(covered):.1%}; largest witness {max(each.size for each in rows)} bytes; "
        f"checking at most {max(each.checking for each in rows):.1f} s, "
        f"{sum(each.checking for each in rows):.0f} s in all"
    )


if __name__ == "__main__":
    main()
