"""Valid plans of every kind certify, run and verify: a slice of ``tests.benchmarks.fuzz``."""

import random
import warnings

from dpaudit.accounting import seconds_of_proof
from tests.benchmarks.fuzz import case, made_plan

SEED, CASES = 1, 16


def _is_cheap(place):
    return seconds_of_proof(made_plan(random.Random(f"{SEED}/{place}"))) < 15


def test_valid_plans_certify_run_and_verify():
    ran, kinds = 0, set()
    for place in filter(_is_cheap, range(CASES)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = case(SEED, place)
        assert not outcome.violation, f"case {place} of seed {SEED}: {outcome.violation}"
        ran, kinds = ran + outcome.ran, kinds | set(outcome.kinds)
    assert ran
    assert len(kinds) > 3
