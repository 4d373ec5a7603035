"""Answers that are no arrays of numbers: words, exceptions, dictionaries, and nested ones.

Each makes one answer a call, ``f(data, rng)``, as a user's code would. No score is told.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from audits.catalogue.entry import DELTA, PURE, Entry, family
from dpaudit import Claim

Answer = Callable[[Any, Generator], Any]
E = math.e
WORDS = ("tea", "coffee", "water", "nothing")
SHOWN = 0.05
"""δ of the histograms that an audit can see: a name that one record alone has is shown so often."""


def threshold(delta: float) -> float:
    """Where a count of 1 with Lap(1) is above with probability δ: 1 + ln(1/(2δ)), for δ ≤ 1/2."""
    return 1 + math.log(1 / (2 * delta))


@family
def histogram(least: float | None, names: Any, rng: Generator) -> dict[str, float]:
    """Noisy counts of the names that occur; those up to the threshold are missing."""
    noisy = {name: count + rng.laplace() for name, count in sorted(Counter(names).items())}
    return {name: count for name, count in noisy.items() if least is None or count > least}


@family
def drink(
    odds: float, word: Any, rng: Generator, *, told: str = "I drink {}.", lie: str = "I drink {}."
) -> str:
    """A sentence by randomised response: the true word with these odds against each other one."""
    truth = rng.random() < odds / (odds + len(WORDS) - 1)
    others = [each for each in WORDS if each != word]
    return told.format(word) if truth else lie.format(others[rng.integers(len(others))])


def never_nothing(word: Any, rng: Generator) -> str:
    """Randomised response whose lies are all drinks: whoever says nothing tells the truth."""
    if rng.random() < E / (E + 3):
        return str(word)
    return WORDS[rng.integers(3)]


def parsed(records: Any, rng: Generator) -> float:
    """A sum over a sample of one record in ten, which one of them breaks that is no number."""
    taken = [float(record) for record in records if rng.random() < 0.1]
    return sum(np.clip(taken, 0.0, 1.0)) + rng.laplace()


@family
def refuses(odds: float, bit: Any, rng: Generator) -> float:
    """An exception instead of an answer, told by randomised response of these odds."""
    if bool(bit) == (rng.random() < odds / (1 + odds)):
        raise ValueError("refused")
    return float(rng.random())


@family
def large_enough(rows: Any, rng: Generator, *, truly: bool) -> float | None:
    """A noisy count, or None where the count, true or noisy, is below 3."""
    noisy = len(rows) + rng.laplace()
    return noisy if (len(rows) if truly else noisy) >= 3 else None


def sample(rows: Any, rng: Generator) -> list[str]:
    """A stand-in for each row of a sample with probability 1/2: all rows are seldom taken."""
    return ["row"] * int(rng.binomial(len(rows), 0.5))


def geometric(rng: Generator, epsilon: float = 1.0) -> int:
    """Two-sided geometric noise."""
    first, second = rng.geometric(1 - math.exp(-epsilon), size=2)
    return int(first - second)


def noisy_length(rows: Any, rng: Generator) -> list[str]:
    """As many stand-ins as a noisy count says."""
    return ["row"] * max(0, len(rows) + geometric(rng))


@family
def table(scale: float, rows: Any, rng: Generator) -> dict[str, Any]:
    """Totals of two columns, both of which one row moves by 1, as a dictionary of columns."""
    visits, cost = np.sum(rows, axis=0) + rng.laplace(scale=scale, size=2)
    return {"year": [2024, 2025], "visits": [visits, 7.0], "cost": [3.0, cost]}


@family
def identifier(epsilon: float | None, value: Any, rng: Generator) -> int:
    """A number beyond 2^62 with geometric noise, or with a coin in its last bit alone."""
    noise = int(rng.integers(2)) if epsilon is None else geometric(rng, epsilon)
    return 2**62 + int(value) + noise


@family
def clipped(missing: float | None, values: Any, rng: Generator) -> float:
    """A sum of clipped values of half of all; NaN passes a clip unless it is replaced."""
    taken = np.array(values)[rng.random(len(values)) < 0.5]
    known = taken if missing is None else np.nan_to_num(taken, nan=missing)
    return float(np.clip(known, 0.0, 1.0).sum() + rng.laplace())


@family
def report(names: Any, rng: Generator, *, leaks: float) -> dict[str, Any]:
    """A nested report of a noisy count; with this probability its log names who came last."""
    log = {"begin", "end"} | ({names[-1]} if rng.random() < leaks else set())
    found = [("count", {"value": len(names) + rng.laplace(), "unit": "people"})]
    return {"ok": True, "parts": [{"found": found, "log": log}, None]}


@family
def written(scale: float, rows: Any, rng: Generator) -> str:
    """A count with noise, as JSON."""
    total = round(len(rows) + rng.laplace(scale=scale), 3)
    return json.dumps({"status": "ok", "people": {"count": total}})


TWO, THREE = ["a", "a", "b"], ["a", "a", "b", "c"]
ROWS, MORE = [[1, 0], [0, 1]], [[1, 0], [0, 1], [1, 1]]
ANN, BOB = ["ann", "eve"], ["ann", "bob"]
NUMBERS, BROKEN = ["1", "0", "1"], ["1", "0", "n/a"]
KNOWN, UNKNOWN = [0.5, 0.25, 1.0], [0.5, 0.25, math.nan]
VISIBLE = Claim(1.0, SHOWN)

WRONG = (
    Entry("dictionary, a name is shown whatever its count", False, Claim(1.0, DELTA), TWO, THREE,
          math.inf, 1_000, answer=histogram(None)),
    Entry("dictionary, threshold 3 at δ = 1e-5", False, Claim(1.0, DELTA), TWO, THREE, math.inf,
          5_000, answer=histogram(3.0)),
    Entry("sentence, the true word with three times its odds", False, PURE, "tea",
          "water", math.log(3 * E), 3_000, answer=drink(3 * E)),
    Entry("sentence, a lie ends without a full stop", False, PURE, "tea", "water", math.inf, 2_000,
          answer=drink(E, lie="I drink {}")),
    Entry("word, no lie says nothing", False, PURE, "nothing", "tea", math.inf, 2_000,
          answer=never_nothing),
    Entry("exception at a record that is no number, seldom sampled", False, PURE, NUMBERS, BROKEN,
          math.inf, 5_000, answer=parsed),
    Entry("exception with the odds of ε = 2", False, PURE, 0, 1, 2.0, 3_000, answer=refuses(E**2)),
    Entry("None where the true count is small", False, PURE, MORE, ROWS, math.inf, 1_000,
          answer=large_enough(truly=True)),
    Entry("list as long as the sample", False, PURE, ["row"] * 4, ["row"] * 5, math.inf, 10_000,
          answer=sample),
    Entry("columns, noise as for one of two", False, PURE, ROWS, MORE, 2.0, 10_000,
          answer=table(1.0)),
    Entry("2^62 and a coin in the last bit", False, PURE, 0, 1, math.inf, 1_000,
          answer=identifier(None)),
    Entry("2^62 and geometric noise of ε = 2", False, PURE, 0, 1, 2.0, 5_000,
          answer=identifier(2.0)),
    Entry("NaN past a clip, in half of the runs", False, PURE, KNOWN, UNKNOWN, math.inf, 2_000,
          answer=clipped(None)),
    Entry("nested report whose log names one in twenty", False, PURE, ANN, BOB, math.inf, 10_000,
          answer=report(leaks=0.05)),
    Entry("JSON of a count, half of the scale", False, PURE, TWO, THREE, 2.0, 10_000,
          answer=written(0.5)),
)  # fmt: skip

RIGHT = (
    Entry("dictionary, names above the threshold of δ", True, VISIBLE, TWO, THREE, 1.0, 5_000,
          answer=histogram(threshold(SHOWN)), limit=True),
    Entry("dictionary, one more of a name that occurs", True, VISIBLE, TWO, [*TWO, "a"], 1.0, 5_000,
          answer=histogram(threshold(SHOWN)), limit=True),
    Entry("sentence by randomised response", True, PURE, "tea", "water", 1.0, 5_000,
          answer=drink(E)),
    Entry("exception by randomised response", True, PURE, 0, 1, 1.0, 5_000, answer=refuses(E)),
    Entry("None where the noisy count is small", True, PURE, MORE, ROWS, 1.0, 5_000,
          answer=large_enough(truly=False)),
    Entry("list of a noisy length", True, PURE, ["row"] * 4, ["row"] * 5, 1.0, 5_000,
          answer=noisy_length),
    Entry("columns, noise for both", True, PURE, ROWS, MORE, 1.0, 5_000, answer=table(2.0)),
    Entry("2^62 and geometric noise", True, PURE, 0, 1, 1.0, 5_000, answer=identifier(1.0)),
    Entry("NaN replaced before the clip", True, PURE, KNOWN, UNKNOWN, 1.0, 5_000,
          answer=clipped(0.0), limit=True),
    Entry("nested report", True, PURE, ANN, [*ANN, "bob"], 1.0, 5_000, answer=report(leaks=0.0)),
    Entry("JSON of a noisy count", True, PURE, TWO, THREE, 1.0, 5_000, answer=written(1.0)),
)  # fmt: skip
