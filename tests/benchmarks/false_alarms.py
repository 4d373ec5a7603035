"""How often a default audit refutes code that is right, in many ways of returning an answer.

::

    python -m tests.benchmarks.false_alarms --runs 1000 --audits 2000

Each function is exactly as private as is claimed of it, where chance has most room, and each audit
has a seed of its own. An audit is one line of a file, so that a run that was ended goes on where it
was; ``--audits 0`` prints what the file holds. Runs are drawn in this process: children would draw
the same ones, in more time.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpaudit import AuditPair
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing import experiment

EPSILON = 1.0
ERROR = 0.05
X, X_PRIME = [31.25, 47.5, 63.4142], [31.25, 47.5, 62.4142]
Rng = np.random.Generator
RIGHT: dict[str, Callable[..., Any]] = {}
"""Functions of three numbers, of which the last one moves by 1."""


def right(function: Callable[..., Any]) -> Callable[..., Any]:
    RIGHT[function.__name__] = function
    return function


@right
def number(data, rng):
    return sum(data) + rng.laplace()


@right
def whole_number(data, rng):
    one, other = rng.geometric(1 - math.exp(-1), 2)
    return round(sum(data)) + int(one - other)


@right
def vector(data, rng):
    return [sum(data) + rng.laplace(), rng.normal(), 47.5]


@right
def text(data, rng):
    return f"the sum is {sum(data) + rng.laplace():.2f} of 3"


@right
def mapping(data, rng):
    return {"sum": sum(data) + rng.laplace(), "seed": int(rng.integers(2**32)), "n": 3}


@right
def frame(data, rng):
    return pd.DataFrame({"k": ["a", "b"], "v": [sum(data) + rng.laplace(), rng.normal()]})


@right
def exception(data, rng):
    value = sum(data) + rng.laplace()
    if value > 143:
        raise ValueError(f"too much: {value:.1f}")
    return value


@right
def response(data, rng):
    true = rng.random() < math.e / (math.e + 1)
    return {"bit": (data[-1] > 63) == true}


@right
def split(data, rng):
    return {name: sum(data) + rng.laplace(scale=2) for name in ("a", "b")}


@right
def own_numpy(data):
    return sum(data) + np.random.default_rng().laplace()


@right
def own_random(data):
    return {"sum": sum(data) + random.expovariate(1) - random.expovariate(1), "n": 3}


@right
def nested(data, rng):
    noisy = sum(data) + rng.laplace()
    return {"rows": [{"name": "a", "value": noisy}, {"name": "b", "value": None}], "of": (3, "x")}


@right
def some_length(data, rng):
    """A list whose length is the answer."""
    one, other = rng.geometric(1 - math.exp(-1), 2)
    return [0.5] * max(0, round(data[-1]) + int(one - other))


@right
def chosen(data, rng):
    """The exponential mechanism for a score of sensitivity 1 of one candidate."""
    weights = np.array([math.exp(data[-1] - 63), 1.0, 1.0, 0.0])
    return ["yes", "no", "perhaps", "never"][rng.choice(4, p=weights / weights.sum())]


@right
def subset(data, rng):
    """A set, of which each of two elements is told at ε = 1/2."""
    keeps = math.exp(0.5) / (math.exp(0.5) + 1)
    high = data[-1] > 63
    return {name for name in ("left", "right") if high == (rng.random() < keeps)}


@right
def array(data, rng):
    return np.array([[data[-1], data[-1]], [0.0, 1.0]]) + rng.laplace(scale=2, size=(2, 2))


@right
def raw_content(data, rng):
    return f"{sum(data) + rng.laplace():.1f}".encode()


@right
def rare_failure(data, rng):
    """One run in a hundred fails, whatever the data are."""
    if rng.random() < 0.01:
        raise OSError("no connection")
    return {"sum": sum(data) + rng.laplace()}


@dataclass(frozen=True)
class Audit:
    """One audit of one function.

    Attributes:
        number: of the audit; the functions take turns.
        runs: a side.
    """

    number: int
    runs: int

    @property
    def name(self) -> str:
        return list(RIGHT)[self.number % len(RIGHT)]

    @property
    def seed(self) -> int:
        """Of no other audit."""
        return 10**8 * round(math.log2(self.runs)) + self.number

    def line(self) -> dict[str, Any]:
        start = time.process_time()
        code, pair = BlackBox(RIGHT[self.name]), AuditPair(X, X_PRIME)
        found = audit_release(code, pair, epsilon=EPSILON, runs=self.runs, seed=self.seed)
        return {
            "audit": self.number,
            "name": self.name,
            "seed": self.seed,
            "refuted": found.refuted,
            "epsilon_lower": found.epsilon_lower,
            "event": found.event if found.refuted else "",
            "seconds": round(time.process_time() - start, 3),
        }


def done(path: Path) -> list[dict[str, Any]]:
    """The audits in a file; a last line that was cut off is none."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def report(lines: list[dict[str, Any]], runs: int) -> None:
    """Print how many were refuted, of each function and together."""
    from scipy.special import bdtrc

    audits = Counter(line["name"] for line in lines)
    refuted = Counter(line["name"] for line in lines if line["refuted"])
    for name in RIGHT:
        print(f"{name:14}{refuted[name]:4} of {audits[name]}")
    if lines:
        alarms, number = refuted.total(), audits.total()
        chance = float(bdtrc(alarms - 1, number, ERROR)) if alarms else 1.0
        seconds = sum(line["seconds"] for line in lines) / number
        print(
            f"together {alarms} of {number} at {runs} runs, {100 * alarms / number:.2f} %; as many "
            f"or more at {100 * ERROR:g} % have a chance of {chance:.3g}; {seconds:.2f} s an audit"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("out/false-alarms"))
    given = parser.parse_args()
    experiment.CHILDREN = 0
    path = given.out / f"{given.runs}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = done(path)
    known = {line["audit"] for line in lines}
    with path.open("w", encoding="utf-8") as file:  # anew, as the last line may be half a line
        write = partial(print, file=file, flush=True)
        for line in lines:
            write(json.dumps(line))
        for each in (Audit(place, given.runs) for place in range(given.audits)):
            if each.number not in known:
                lines.append(each.line())
                write(json.dumps(lines[-1]))
    report(lines, given.runs)


if __name__ == "__main__":
    main()
