"""Valid plans of every kind certify, run and verify: a slice of ``tests.benchmarks.fuzz``."""

import time
import warnings

from tests.benchmarks.fuzz import case

CASES, SECONDS = 100, 15.0


def test_valid_plans_certify_run_and_verify():
    start, ran, kinds = time.process_time(), 0, set()
    for place in range(CASES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = case(1, place)
        assert not outcome.violation, f"case {place} of seed 1: {outcome.violation}"
        ran, kinds = ran + outcome.ran, kinds | set(outcome.kinds)
        if time.process_time() - start > SECONDS:
            break
    assert ran
    assert len(kinds) > 3
