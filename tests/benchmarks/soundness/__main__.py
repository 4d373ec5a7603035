"""Random plans, certified and compared with an independent oracle.

Run ``python -m tests.benchmarks.soundness [--plans 2000] [--seed 0]`` before a version is tagged:
plans that were once wrong, then random ones, then calibrated mechanisms. A plan follows from the
seed and its number alone; ``--show N`` prints plan N with both intervals, and the Python that
repeats it. It ends with 1 if anything misses.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import textwrap
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from tests.benchmarks.soundness import triples
from tests.benchmarks.soundness.calibrated import calibrations
from tests.benchmarks.soundness.judging import judged
from tests.benchmarks.soundness.known import KNOWN
from tests.benchmarks.soundness.plans import allocated, case, shared
from tests.benchmarks.soundness.table import lines, shown
from tests.benchmarks.soundness.uses import Case, python_of
from tests.benchmarks.soundness.verdict import Verdict


def numbered(seed: int, number: int) -> Case:
    """Plan number N: those that are known first."""
    if number < len(KNOWN):
        return KNOWN[number]
    rng = random.Random(f"{seed}/{number}")
    if number % 3 == 0 and number > 300:
        return triples.case(rng, number // 3)
    made = {15: allocated, 7: shared}.get(number % 16, case) if number > 300 else case
    return made(rng)


def verdict_of(seed: int, number: int) -> Verdict:
    """A plan, judged."""
    warnings.simplefilter("ignore")
    return judged(numbered(seed, number), deep=number < len(KNOWN))


def _worker() -> None:
    """Leaves an interrupt to the process that prints."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _judged(seed: int, plans: int, workers: int) -> list[Verdict]:
    """All plans in turn, or those before an interrupt; misses are printed at once."""
    verdicts: list[Verdict] = []
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background the first may be ignored
        signal.signal(number, signal.default_int_handler)
    with ProcessPoolExecutor(workers, initializer=_worker) as pool:
        try:
            for number, one in enumerate(pool.map(partial(verdict_of, seed), range(plans))):
                verdicts.append(one)
                if one.misses or one.failed:
                    print(shown(number, one), flush=True)
        except (KeyboardInterrupt, BrokenProcessPool) as error:
            print(f"ended by {type(error).__name__}; of the plans so far:")
            pool.shutdown(cancel_futures=True)
    return verdicts


def main() -> int:
    """Judge and print; 1 if anything misses."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plans", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--calibrated", type=int, default=500, help="random targets")
    parser.add_argument("--show", type=int, metavar="N")
    arguments = parser.parse_args()
    if arguments.show is not None:
        one = numbered(arguments.seed, arguments.show)
        print(shown(arguments.show, verdict_of(arguments.seed, arguments.show), full=True))
        print(python_of(one))
        return 0
    verdicts = _judged(arguments.seed, len(KNOWN) + arguments.plans, arguments.workers)
    print("\n".join((*lines(verdicts), *triples.lines(verdicts))))
    targets = list(calibrations(random.Random(arguments.seed), arguments.calibrated))
    for target in targets:
        if target.miss:
            print(textwrap.fill(f"{target.call}: {target.miss}", 80, subsequent_indent="    "))
    missed = sum(bool(target.miss) for target in targets)
    refused = sum(target.refused for target in targets)
    print(f"calibrated: {len(targets)} targets, {refused} refused, {missed} missed")
    ended = len(verdicts) < len(KNOWN) + arguments.plans
    return int(ended or bool(missed) or any(one.misses or one.failed for one in verdicts))


if __name__ == "__main__":
    sys.exit(main())
