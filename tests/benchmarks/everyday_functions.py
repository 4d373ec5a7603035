"""Forty short functions as programmers write them, half of them wrong, under default audits.

::

    python -m tests.benchmarks.everyday_functions [--seed 0]

Of each it prints *found* (refuted), *told* (not refuted, and the record warns of what gives it
away, such as a field that differs in every run), *missed*, or for right ones *silent* and *false
alarm*.
All claim ε = 1, some at δ = 1e-5; a docstring says what is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import AuditPair, InconclusiveError, InputError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing import experiment

AGES = AuditPair([31, 47, 63], [31, 47, 62])
NAMES = AuditPair(["anna", "bernd", "carla"], ["anna", "bernd"])
VOTES = AuditPair([1, 0, 1], [1, 0, 0])
TOWNS = ("anna", "bernd", "carla", "dora")


@dataclass(frozen=True)
class Case:
    """A function, its neighbours, and what is claimed."""

    function: Callable[..., Any]
    pair: AuditPair
    wrong: bool
    delta: float


CASES: list[Case] = []


def case(
    pair: AuditPair, *, wrong: bool = False, delta: float = 0.0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def added(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(function, pair, wrong, delta))
        return function

    return added


@case(AGES, wrong=True)
def half_the_noise(ages, rng):
    return sum(ages) + rng.laplace(scale=0.5)


@case(AGES, wrong=True)
def one_noise_for_two(ages, rng):
    """The difference of both is exact."""
    noise = rng.laplace()
    return {"total": sum(ages) + noise, "doubled": 2 * sum(ages) + noise}


@case(AGES, wrong=True)
def noise_in_the_log(ages, rng):
    noise = rng.laplace()
    return {"total": sum(ages) + noise, "log": f"drew {noise:.6f}"}


@case(AGES, wrong=True)
def fixed_seed(ages):
    return sum(ages) + np.random.default_rng(7).laplace()


@case(NAMES, wrong=True)
def mean_by_private_size(names, rng):
    """The scale says how many there are."""
    return sum(map(len, names)) / len(names) + rng.laplace(scale=9 / len(names))


@case(AGES, wrong=True)
def uniform_noise(ages, rng):
    return sum(ages) + rng.uniform(-2, 2)


@case(AGES, wrong=True)
def rounded_small_noise(ages, rng):
    return round(sum(ages) + rng.laplace(scale=0.3))


@case(AGES, wrong=True, delta=1e-5)
def gaussian_of_one(ages, rng):
    return sum(ages) + rng.normal()


@case(VOTES, wrong=True)
def response_with_nine_tenths(votes, rng):
    return bool(votes[-1]) == (rng.random() < 0.9)


@case(VOTES, wrong=True)
def choice_with_twice_the_budget(votes, rng):
    weights = np.exp([2.0 * sum(votes), 2.0 * (3 - sum(votes))])
    return ["yes", "no"][rng.choice(2, p=weights / weights.sum())]


@case(AGES, wrong=True)
def record_in_one_of_a_hundred(ages, rng):
    answer = {"total": sum(ages) + rng.laplace(), "note": ""}
    if rng.random() < 0.01:
        answer["note"] = f"checked row {ages[-1]}"
    return answer


@case(AGES, wrong=True)
def record_in_an_exception(ages, rng):
    if rng.random() < 0.02:
        raise ValueError(f"bad value {ages[-1]}")
    return sum(ages) + rng.laplace()


@case(AGES, wrong=True)
def word_by_the_true_sum(ages, rng):
    return {"total": sum(ages) + rng.laplace(), "level": "high" if sum(ages) > 140 else "low"}


@case(NAMES, wrong=True)
def keys_that_occur(names, rng):
    return {name: 1 + rng.laplace() for name in names}


@case(AGES, wrong=True)
def shuffled_rows(ages, rng):
    return [int(age) for age in rng.permutation(ages)]


@case(AGES, wrong=True)
def one_row(ages):
    return random.choice(ages)


@case(AGES, wrong=True)
def two_queries_for_one(ages, rng):
    return {"total": sum(ages) + rng.laplace(), "oldest": max(ages) + rng.laplace()}


@case(AGES, wrong=True)
def less_noise_for_some(ages, rng):
    return sum(ages) + rng.laplace(scale=0.2 if 62 in ages else 1.0)


@case(AGES, wrong=True)
def padded_to_the_oldest(ages, rng):
    return f"{sum(ages) + rng.laplace():.1f}".zfill(ages[-1])


@case(AGES, wrong=True)
def seed_that_follows_the_data(ages):
    """Whoever knows all rows but one tries the seeds."""
    own = random.Random(sum(ages) * 1000 + random.randrange(4))
    return sum(ages) + own.expovariate(1) - own.expovariate(1)


@case(AGES)
def noisy_sum(ages, rng):
    return sum(ages) + rng.laplace()


@case(AGES)
def noisy_sum_own(ages):
    return sum(ages) + random.expovariate(1) - random.expovariate(1)


@case(AGES, delta=1e-5)
def gaussian_sum(ages, rng):
    return sum(ages) + rng.normal(scale=3.8)


@case(VOTES)
def response(votes, rng):
    return bool(votes[-1]) == (rng.random() < math.e / (1 + math.e))


@case(VOTES)
def choice(votes, rng):
    weights = np.exp([0.5 * sum(votes), 0.5 * (3 - sum(votes))])
    return ["yes", "no"][rng.choice(2, p=weights / weights.sum())]


@case(AGES)
def rounded(ages, rng):
    return round(sum(ages) + rng.laplace(), 1)


@case(AGES)
def cut_to_bounds(ages, rng):
    return min(max(sum(ages) + rng.laplace(), 139.0), 142.0)


@case(NAMES)
def fixed_keys(names, rng):
    return {name: names.count(name) + rng.laplace() for name in TOWNS}


@case(NAMES)
def largest_key(names, rng):
    return max(TOWNS, key=lambda name: names.count(name) + rng.laplace(scale=2))


@case(AGES)
def word_by_the_noisy_sum(ages, rng):
    return "high" if sum(ages) + rng.laplace() > 140.5 else "low"


@case(AGES)
def message(ages, rng):
    return f"total {sum(ages) + rng.laplace():.2f} of {3}"


@case(AGES)
def sampled_sum(ages, rng):
    chosen = [age for age in ages if rng.random() < 0.5]
    return sum(min(age, 1) for age in chosen) + rng.laplace()


@case(AGES)
def geometric(ages, rng):
    one, other = rng.geometric(1 - math.exp(-1), 2)
    return sum(ages) + int(one - other)


@case(AGES)
def public_mean(ages, rng):
    return {"mean": sum(ages) / 3 + rng.laplace(scale=1 / 3), "of": 3}


@case(AGES)
def two_queries_halved(ages, rng):
    return [sum(ages) + rng.laplace(scale=2), max(ages) + rng.laplace(scale=2)]


@case(AGES)
def exception_by_the_noisy_sum(ages, rng):
    noisy = sum(ages) + rng.laplace()
    if noisy > 142:
        raise ValueError(f"{noisy:.0f} is too much")
    return noisy


@case(AGES)
def nothing_where_small(ages, rng):
    noisy = sum(ages) + rng.laplace()
    return None if noisy < 140 else noisy


@case(AGES)
def as_json(ages, rng):
    return json.dumps({"total": sum(ages) + rng.laplace(), "rows": 3})


@case(NAMES)
def noisy_length(names, rng):
    one, other = rng.geometric(1 - math.exp(-1), 2)
    return ["row"] * max(0, len(names) + int(one - other))


@case(AGES)
def with_an_identifier(ages, rng):
    return {"id": int(rng.integers(2**48)), "total": sum(ages) + rng.laplace()}


def outcome(each: Case, seed: int) -> tuple[str, str]:
    """What a default audit says, in a word, and its last line."""
    code = BlackBox(each.function)
    own = {} if code.takes_rng else {"own_randomness": True}
    try:
        found = audit_release(code, each.pair, epsilon=1.0, delta=each.delta, seed=seed, **own)
    except (InputError, InconclusiveError) as error:
        return ("told" if each.wrong else "false alarm"), str(error)
    if found.refuted:
        return ("found" if each.wrong else "false alarm"), found.event
    if not each.wrong:
        return "silent", found.power
    return ("told" if found.details.get("unique_fields") else "missed"), found.power


def main() -> None:
    """Print one line for each function, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    experiment.CHILDREN = 0
    counted: Counter[tuple[bool, str]] = Counter()
    for number, each in enumerate(CASES):
        word, line = outcome(each, 1000 * seed + number)
        counted[each.wrong, word] += 1
        kind = "wrong" if each.wrong else "right"
        print(f"{kind} {each.function.__name__:30} {word:12} {line:.150}", flush=True)
    for wrong, kind in ((True, "wrong"), (False, "right")):
        shown = (
            f"{word} {times}" for (is_wrong, word), times in counted.items() if is_wrong == wrong
        )
        print(f"{kind}: {', '.join(shown)}")


if __name__ == "__main__":
    main()
