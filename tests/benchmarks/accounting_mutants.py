"""The accounting, made unsound in one place at a time: does the soundness command notice?

Run ``python -m tests.benchmarks.accounting_mutants [WORD...]``. The oracle says once what some of
the plans of ``tests.benchmarks.soundness`` cost, at its default seed, and two more; then each
mutant certifies them in a process of its own, until one is certified below the truth, or none is
left. Slowness is no find. It ends with 1 if more than one mutant survives.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.soundness.__main__ import numbered
from tests.benchmarks.soundness.judging import TooLongError, time_limit
from tests.benchmarks.soundness.oracle.closed import Curve
from tests.benchmarks.soundness.oracle.truth import truth
from tests.benchmarks.soundness.uses import Case, Use

ROOT = Path(__file__).parents[2]
PLANS = (*range(303, 603, 3), *range(20, 90), 129, 137, 155, 161, 170)
"""Every scheme with many mechanisms, then some of all other kinds."""
OWN = {
    -number: Case("drawn: allocated", "add-remove", (
        Use("gaussian", {"sigma": sigma}, 1.0, 2, drawn=("allocated", 2)),
    ), 1e-5)
    for number, sigma in ((1, 8.0), (2, 1.0))
}  # fmt: skip
"""Two laws that are allocated over epochs of one length, the cheaper one first."""
MOST_SECONDS, ORACLE_SECONDS, LONGEST = 300, 6, 0.7


@dataclass(frozen=True)
class Mutant:
    """What no longer holds, in which file of the accounting, by which text in place of which."""

    name: str
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant("leaving is dropped, and joining alone composed", "pld/accountant.py",
           "return PLDComposition(remove) if symmetric else PLDComposition(remove, add)",
           "return PLDComposition(add)"),
    Mutant("all mechanisms of a class are equal", "terms.py",
           "    return invocation.mechanism, invocation.sensitivity, ",
           "    return type(invocation.mechanism), invocation.sensitivity, "),
    Mutant("sensitivities do not tell uses apart", "terms.py",
           "    return invocation.mechanism, invocation.sensitivity, ",
           "    return invocation.mechanism, 0.0, "),
    Mutant("samplings do not tell uses apart", "terms.py",
           "invocation.sensitivity, invocation.sampling, invocation.relation",
           "invocation.sensitivity, None, invocation.relation"),
    Mutant("a Rényi curve is kept for all of a class", "closed_forms/rdp.py",
           "return _curve(mechanism, sensitivity, part.amplification,",
           "return _curve(type(mechanism), 0.0, part.amplification,"),
    Mutant("an epoch is kept for all of its length", "pld/allocation.py",
           "(self.hidden and allocated(pair, self.steps))",
           "(self.hidden and allocated.__dict__.setdefault(str(self.steps), "
           "allocated(pair, self.steps)))"),
    Mutant("ε of the PLD is 1 % too small", "pld/direction.py",
           "return min(largest, max(law.epsilon_upper(delta), 0.0))",
           "return 0.99 * min(largest, max(law.epsilon_upper(delta), 0.0))"),
    Mutant("infinite loss costs nothing", "pld/bounds.py",
           "self._scaled((delta - self.budget.infinite) * (1 - 1e-12))",
           "self._scaled(delta * (1 - 1e-12))"),
    Mutant("losses are rounded down", "pld/grid.py",
           "    masses[1:] += up\n    truly", "    masses[:-1] += up\n    truly"),
    Mutant("atoms are rounded down", "pld/grid.py",
           "masses[1:] += upper[:-1]", "masses += upper"),
    Mutant("half of the Poisson rate", "amplification/poisson.py",
           "return RemovedPair(pair, self.rate), AddedPair(pair, self.rate)",
           "return RemovedPair(pair, self.rate / 2), AddedPair(pair, self.rate / 2)"),
    Mutant("moments of samples by an order too many", "closed_forms/rdp.py",
           "drawn.log_moments(pair) / (ORDERS - 1)", "drawn.log_moments(pair) / ORDERS"),
    Mutant("one use of several is not counted", "terms.py",
           "counts.get(use, 0) + invocation.count * times",
           "counts.get(use, 0) + invocation.count * times - (invocation.count > 1)"),
    Mutant("one epoch of several is not counted", "pld/allocation.py",
           "return -(-count // self.steps)", "return max(-(-count // self.steps) - 1, 1)"),
    Mutant("the slack of closed forms is dropped", "terms.py",
           "return sum((part.slack for part in parts), Fraction(0))", "return Fraction(0)"),
    Mutant("a square of μ for all uses", "closed_forms/additive.py",
           "total += part.count * Fraction(up(mu)) ** 2", "total += Fraction(up(mu)) ** 2"),
    Mutant("zCDP is converted at an order less", "closed_forms/additive.py",
           "epsilon = rho * (1 + x) -", "epsilon = rho * x -"),
    Mutant("Rényi divergences are converted at an order more", "closed_forms/rdp.py",
           "(log_delta + np.log(ORDERS)) / (ORDERS - 1)", "(log_delta + np.log(ORDERS)) / ORDERS"),
    Mutant("who leaves a subset is replaced by nobody", "amplification/reductions.py",
           "return replace(_steps(use, 2), sampling=PoissonSampling(rate))",
           "return replace(use, sampling=PoissonSampling(rate))"),
    Mutant("replaced units count as absent", "amplification/poisson.py",
           "return zeroed or isinstance(use.relation, AddRemove)",
           "return zeroed or not isinstance(use.relation, ZeroOut)"),
    Mutant("zeroed units count as absent in choices", "amplification/poisson.py",
           "isinstance(use.relation, ZeroOut) and use.mechanism.zeroed_is_absent",
           "isinstance(use.relation, ZeroOut)"),
    Mutant("units do not move in a stream", "amplification/reductions.py",
           "use = _longer(use, mechanism.displacement)", "use = _longer(use, 1.0)"),
    Mutant("a group is smaller by one", "group.py",
           "round_up(Fraction(invocation.sensitivity) * size)",
           "round_up(Fraction(invocation.sensitivity) * (size - 1))"),
    Mutant("the weaker of two groups is kept", "guarantees.py",
           "sorted(candidates.items(), reverse=True)", "sorted(candidates.items())[:1]"),
    Mutant("half of the places that a full sample gives", "amplification/truncated.py",
           "_below_one(min(most / units * more / full, rate))",
           "_below_one(min(most / units * more / full, rate) / 2)"),
    Mutant("draws with replacement move one step", "amplification/reductions.py",
           "sampling.size * (2 if zeroed", "sampling.size * (1 if zeroed"),
    Mutant("half of the rate where who is drawn is known", "amplification/known_participation.py",
           "known = KnownPair(pair, self.rate)", "known = KnownPair(pair, self.rate / 2)"),
    Mutant("several rows are one", "amplification/reductions.py",
           "    whole = _steps(use, rows)", "    whole = _steps(use, 1)"),
    Mutant("the sign of the loss of who joins", "amplification/poisson_pairs.py",
           "tails(-_unsampled(-loss, self.rate))", "tails(_unsampled(loss, self.rate))"),
    Mutant("several times in an epoch are one", "amplification/reductions.py",
           "count = epochs * times * part", "count = epochs * part"),
    Mutant("one choice of several is not counted", "closed_forms/bounded_range.py",
           "    for _ in range(count):", "    for _ in range(max(count - 1, 1)):"),
    Mutant("the sum of pure ε is rounded down", "terms.py",
           "    return sum(costs, Fraction(0))",
           "    return sum(costs, Fraction(0)) * (1 - Fraction(1, 2**50))"),
)  # fmt: skip


def truths() -> dict[int, tuple[Any, Curve]]:
    """The plans of which the oracle has a curve soon enough."""
    found = {}
    for number in (*OWN, *PLANS):
        one = OWN.get(number) or numbered(0, number)
        try:
            with time_limit(ORACLE_SECONDS):
                curve = truth(one, one.delta, deep=False)
        except (TooLongError, ValueError, ArithmeticError):
            continue
        if curve is not None:
            found[number] = one, curve
    return found


def certify(mutant: Mutant | None, known: dict[int, tuple[Any, Curve]], told: Any) -> None:
    """In a process of its own: certify by a changed copy of the package until the truth is missed.

    Puts a sentence on the queue, "" where there is none, and the seconds that each plan took.
    """
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(ROOT / "dpaudit", Path(place, "dpaudit"))
        if mutant is not None:
            path = Path(place, "dpaudit", "accounting", mutant.file)
            path.write_text(path.read_text().replace(mutant.old, mutant.new))
        held = ("tests.benchmarks.soundness.uses", "tests.benchmarks.soundness.judging",
                "tests.benchmarks.soundness.verdict")  # fmt: skip
        for name in [*sys.modules]:
            if name.partition(".")[0] == "dpaudit" or name in held:
                del sys.modules[name]
        sys.path.insert(0, place)
        from tests.benchmarks.soundness.judging import first_miss

        seconds: dict[int, float] = {}
        for number, (case, curve) in known.items():
            started = time.process_time()
            try:
                found = first_miss(case, curve)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is noticed
                found = f"{type(error).__name__}: {error}"
            seconds[number] = time.process_time() - started
            if found or sum(seconds.values()) > MOST_SECONDS:
                told.put((f"plan {number}: {found}" if found else "", seconds))
                return
    told.put(("", seconds))


def certified(
    mutant: Mutant | None, known: dict[int, tuple[Any, Curve]]
) -> tuple[str, dict[int, float]]:
    """What is noticed of a mutant, in a sentence; of none, the package as it is."""
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    process = context.Process(target=certify, args=(mutant, known, told))
    process.start()
    try:
        found: tuple[str, dict[int, float]] = told.get(timeout=4 * MOST_SECONDS)
    except queue.Empty:
        found = "", {}
    process.kill()
    return found


def main() -> int:
    """Print a line for each mutant, and how many were found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of names; all mutants where none is given")
    arguments = parser.parse_args()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    chosen = [
        one
        for one in MUTANTS
        if not arguments.words or any(word in one.name for word in arguments.words)
    ]
    for one in chosen:
        text = (ROOT / "dpaudit/accounting" / one.file).read_text()
        if text.count(one.old) != 1:
            raise SystemExit(f"{one.file} has {text.count(one.old)} times: {one.old}")
    known = truths()
    print(f"{len(known)} of {len(OWN) + len(PLANS)} plans have a truth", flush=True)
    wrong, seconds = certified(None, known)
    if wrong:
        raise SystemExit(f"as it is: {wrong}")
    quick = (number for number, each in seconds.items() if each < LONGEST or number in OWN)
    known = {number: known[number] for number in quick}
    print(f"as it is, nothing is missed; {len(known)} of them take less than {LONGEST} s")
    survivors = []
    for one in chosen:
        found, _ = certified(one, known)
        if not found:
            survivors.append(one.name)
        print(f"{one.name:52} {found or 'SURVIVED'}", flush=True)
    print(f"found {len(chosen) - len(survivors)} of {len(chosen)}")
    if survivors:
        print("missed: " + "; ".join(survivors))
    return int(len(survivors) > 1)


if __name__ == "__main__":
    sys.exit(main())
