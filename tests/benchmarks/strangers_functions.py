"""Forty small functions that claim differential privacy, and what an audit says of each.

They are written as people outside this package write them: an analyst in a hospital, a web
developer, a data engineer, a machine-learning engineer. Twenty claims are false and twenty are
true. The true ε of each is known in real arithmetic, for the pair it is audited on and at the
claimed δ; it is ``inf`` where no ε holds. The command audits each function as the pages show it,
with the default runs, one at a time. Where an audit has no answer and says what to add (a field
that is a time, or so many runs), it is asked once more with that. It prints a table in Markdown::

    python -m tests.benchmarks.strangers_functions [--only NAME] [--keep FOLDER]
"""

import argparse
import collections
import datetime
import functools
import json
import math
import os
import random
import re
import resource
import secrets
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

INFINITE = math.inf
SHORT = 150


# Twenty wrong ones


def average_stay(days, rng):
    """Average stay in days, between 0 and 30; the number of patients is public."""
    days = np.clip(days, 0, 30)
    return days.mean() + rng.laplace(0, 1 / (1.0 * len(days)))


def weekly_active(users, epsilon=0.5):
    """Weekly active users, with Laplace noise."""
    return round(len(set(users)) + np.random.default_rng().laplace(loc=0.0, scale=epsilon), 2)


def total_spend(amounts, rng):
    """Total spend of three customers of at most 100 each."""
    noisy = sum(amounts) + rng.laplace(0, 100 / 1.0)
    return float(np.clip(noisy, 0, 3 * 100))


def whole_count(rows):
    """People do not come in fractions, so the noise is made whole."""
    rate = 1.0
    noise = random.expovariate(rate) - random.expovariate(rate)
    return len(rows) + int(noise)


def hourly_report(events):
    """Reproducible: the report can be made again from its time."""
    now = int(time.time())
    rng = random.Random(now)
    u = rng.random() - 0.5
    noise = -math.copysign(1.0, u) * math.log(1 - 2 * abs(u))
    stamp = datetime.datetime.fromtimestamp(now, datetime.UTC).isoformat()
    return {"generated_at": stamp, "events": len(events) + noise}


def infections(cases, rng):
    """Wards without infections need no noise."""
    count = sum(1 for case in cases if case["positive"])
    if count > 0:
        return max(0.0, count + rng.laplace(scale=1.0))
    return 0


def search_volume(queries):
    """Noisy volume; one answer in a thousand keeps a trace for debugging."""
    out = {"volume": len(queries) + np.random.default_rng().laplace(0, 1.0)}
    if random.random() < 0.001:
        out["trace"] = f"queries={queries!r}"
    return out


def validated_mean(ages, rng):
    """Average age; data are validated first."""
    for age in ages:
        if not 0 <= age <= 120:
            raise ValueError(f"age out of range: {age}")
    return sum(ages) / len(ages) + rng.laplace(scale=120 / len(ages))


def diagnoses(codes):
    """Diagnoses with at least five patients, as the guideline wants, and with noise."""
    rng = np.random.default_rng()
    return {
        code: round(count + rng.laplace(0, 1.0))
        for code, count in sorted(collections.Counter(codes).items())
        if count >= 5
    }


def favourite(votes, epsilon=1.0):
    """Exponential mechanism over two brands."""
    brands = ["acme", "bolt"]
    weights = [math.exp(epsilon * votes.count(brand)) for brand in brands]
    return random.choices(brands, weights=weights)[0]


def survey_answer(truth):
    """Randomised response with ε = ln 3: the truth in three of four cases, else a coin."""
    if secrets.randbelow(4) < 3:
        return truth
    return bool(secrets.randbelow(2))


def noisy_embedding(vector, rng):
    """Gaussian mechanism for a vector of norm at most 1, at ε = 10."""
    epsilon, delta = 10.0, 1e-5
    vector = np.asarray(vector, dtype=float)
    vector = vector / max(1.0, float(np.linalg.norm(vector)))
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return vector + rng.normal(0, sigma, size=vector.shape)


def private_gradient(gradients, rng):
    """DP-SGD with lots of four: clip the gradient, add noise, divide."""
    clip, lot = 1.0, 4
    multiplier = math.sqrt(2 * math.log(1.25 / 1e-5)) / 1.0
    gradient = np.asarray(gradients, dtype=float).sum(axis=0) / lot
    gradient *= min(1.0, clip / (np.linalg.norm(gradient) + 1e-12))
    return gradient + rng.normal(0, multiplier * clip / lot, size=gradient.shape)


def alerts(counts, rng):
    """Sparse vector: only the threshold needs noise."""
    threshold = 4.5 + rng.laplace(scale=2 / 1.0)
    return ["above" if count >= threshold else "below" for count in counts]


def page_views(rows):
    """Page views per visitor, each counted once, so that nobody counts twice."""
    distinct = {(row["user"], row["page"]) for row in rows}
    return len(distinct) + np.random.default_rng().laplace(0, 1 / 1.0)


def top_pages(visits, rng):
    """Noisy visits of two pages, the most visited first."""
    ranked = collections.Counter(visits).most_common()
    return [{"page": page, "visits": n + rng.laplace(0, 1.0)} for page, n in ranked]


def cost_by_ward(records):
    """Costs by ward (capped at 100), for all wards of the public list."""
    import pandas as pd

    frame = pd.DataFrame(records, columns=["ward", "cost"])
    frame["cost"] = frame["cost"].clip(0, 100)
    sums = frame.groupby("ward")["cost"].sum().reindex(["A", "B", "C"])
    return sums + np.random.default_rng().laplace(0, 100 / 1.0, size=3)


def latency_p90(milliseconds, rng):
    """90th percentile of five latencies between 0 and 100."""
    values = np.clip(milliseconds, 0, 100)
    return float(np.percentile(values, 90) + rng.laplace(0, 100 / (len(values) * 1.0)))


def conversion_rate(converted, rng):
    """Share of visitors who bought: noise for the sum, then divide."""
    return (sum(converted) + rng.laplace(0, 1 / 1.0)) / len(converted)


def positive_count(rows):
    """Draw again until the answer makes sense."""
    rng = np.random.default_rng()
    while True:
        answer = len(rows) + rng.laplace(scale=1.0)
        if answer >= 0:
            return answer


# Twenty right ones


def patients(rows, rng):
    """Number of patients."""
    return {"patients": len(rows) + rng.laplace(0, 1 / 1.0)}


def capped_sum(amounts, epsilon=1.0, cap=100):
    """Clip first, then noise from the system's generator, by the inverse of its distribution."""
    source = random.SystemRandom()
    total = sum(min(max(amount, 0), cap) for amount in amounts)
    u = source.random() - 0.5
    return total - (cap / epsilon) * math.copysign(1, u) * math.log(1 - 2 * abs(u))


def mean_stay(days, rng):
    """Average stay between 0 and 30 days, of a public number of patients, at ε = 0.5."""
    days = np.clip(days, 0, 30)
    return float(days.mean() + rng.laplace(0, 30 / (0.5 * len(days))))


def coin_answer(truth):
    """Warner's coins: heads, the truth; else a second coin."""
    if secrets.randbelow(2):
        return truth
    return bool(secrets.randbelow(2))


def geometric_count(rows, rng):
    """Two-sided geometric noise."""
    p = 1 - math.exp(-1.0)
    return len(rows) + int(rng.geometric(p)) - int(rng.geometric(p))


def blood_groups(groups, rng):
    """All four groups, present or not, in a fixed order."""
    counts = collections.Counter(groups)
    return {name: counts[name] + rng.laplace(0, 1.0) for name in ("0", "A", "AB", "B")}


def median_grade(grades, rng):
    """Exponential mechanism on grades 0 to 10; the number of pupils is public."""
    grid = np.arange(11)
    below = np.array([sum(grade < g for grade in grades) for g in grid])
    scores = -np.abs(below - len(grades) / 2)
    weights = np.exp(1.0 * scores / 2)
    return int(rng.choice(grid, p=weights / weights.sum()))


def least_popular(votes):
    """An exponential mechanism whose sign is turned: useless for the best brand, but private."""
    brands = ["acme", "bolt"]
    weights = [math.exp(-1.0 * votes.count(brand) / 2) for brand in brands]
    return random.choices(brands, weights=weights)[0]


def winner(counts):
    """Report noisy max: the index alone."""
    noisy = np.asarray(counts) + np.random.default_rng().laplace(0, 2 / 1.0, size=len(counts))
    return int(noisy.argmax())


def gaussian_embedding(vector, rng):
    """Gaussian mechanism at ε = 1, where the formula of the textbook holds."""
    vector = np.asarray(vector, dtype=float)
    vector = vector / max(1.0, float(np.linalg.norm(vector)))
    return vector + rng.normal(0, math.sqrt(2 * math.log(1.25e5)), size=vector.shape)


def first_alert(counts, rng):
    """AboveThreshold: noise for the threshold and for each query; stop at the first."""
    threshold = 5 + rng.laplace(scale=2 / 1.0)
    for day, count in enumerate(counts):
        if count + rng.laplace(scale=4 / 1.0) >= threshold:
            return day
    return None


def stable_words(words, epsilon=1.0, delta=1e-3):
    """Words nobody listed before, kept if their noisy count is large."""
    rng = np.random.default_rng()
    keep = 1 + math.log(1 / (2 * delta)) / epsilon
    noisy = {w: n + rng.laplace(0, 1 / epsilon) for w, n in collections.Counter(words).items()}
    return dict(sorted((w, n) for w, n in noisy.items() if n >= keep))


def visits_by_ward(records):
    """Visits of all wards of the public list."""
    import pandas as pd

    frame = pd.DataFrame(records, columns=["ward", "cost"])
    sizes = frame.groupby("ward").size().reindex(["A", "B", "C"], fill_value=0)
    return sizes + np.random.default_rng().laplace(0, 1.0, size=3)


def average_spend(amounts, rng):
    """Half of ε for the sum (cap 10), half for the count; the average is made of these."""
    total = float(np.clip(amounts, 0, 10).sum()) + rng.laplace(0, 10 / 0.5)
    count = len(amounts) + rng.laplace(0, 1 / 0.5)
    return {"sum": total, "count": count, "average": total / max(count, 1.0)}


def bounded_views(rows):
    """At most three views of each user."""
    seen = collections.Counter(row["user"] for row in rows)
    return sum(min(n, 3) for n in seen.values()) + np.random.default_rng().laplace(0, 3 / 1.0)


def tidy_count(rows, rng):
    """Noise first; rounded and made non-negative afterwards."""
    return max(0, round(len(rows) + rng.laplace(scale=1.0)))


def suppressed_count(rows, rng):
    """Small cells are suppressed, by what their noisy count is."""
    noisy = len(rows) + rng.laplace(0, 1.0)
    if noisy < 5:
        raise LookupError(f"cell suppressed: {noisy:.1f} < 5")
    return noisy


def sampled_count(rows, rng):
    """Each row with probability one half, then noise for ε = 1: amplified to 0.62."""
    kept = rng.binomial(len(rows), 0.5)
    return kept + rng.laplace(0, 1.0)


def api_response(rows):
    """What a web service answers: a fresh identifier, the time, a noisy count."""
    noise = random.expovariate(1.0) - random.expovariate(1.0)
    return {
        "request_id": uuid.uuid4().hex,
        "served_at": time.time(),
        "data": {"count": len(rows) + noise},
    }


def colour_bits(colour):
    """Basic RAPPOR: one bit a colour, each flipped at ε / 2."""
    flip = 1 / (1 + math.exp(1.0 / 2))
    return [int((name == colour) != (random.random() < flip)) for name in ("red", "green", "blue")]


@dataclass(frozen=True)
class Case:
    """A function, what it claims, the pair it is audited on, and the truth."""

    function: Callable[..., Any]
    pair: tuple[Any, Any]
    epsilon: float
    truth: float
    why: str
    delta: float = 0.0

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def wrong(self) -> bool:
        return self.truth > self.epsilon


_ANNA = [{"user": "anna", "page": page} for page in "abcde"]
_BERND = [{"user": "bernd", "page": "a"}]
_WARDS = [{"ward": "A", "cost": 20}, {"ward": "B", "cost": 30}, {"ward": "C", "cost": 10}]

WRONG = (
    Case(average_stay, ([3, 5, 4, 30], [3, 5, 4, 0]), 1, 30, "the range of 30 is forgotten"),
    Case(weekly_active, (["ann", "bob"], ["ann"]), 0.5, 2, "scale ε in place of 1 / ε"),
    Case(total_spend, ([10, 20, 1000], [10, 20, 0]), 1, 10, "the sum moves by 1000, at scale 100"),
    Case(whole_count, ([1, 2, 3], [1, 2]), 1, 1.693, "int() doubles P(0): 1 + ln 2"),
    Case(hourly_report, ([1, 2], [1]), 1, INFINITE, "the noise follows from the published time"),
    Case(
        infections,
        ([{"positive": True}], [{"positive": False}]),
        1,
        INFINITE,
        "0 in all runs without a case, and seldom with one",
    ),
    Case(
        search_volume,
        (["flu", "hiv test"], ["flu"]),
        1,
        INFINITE,
        "raw data in one of 1000 answers (δ = 0.001)",
    ),
    Case(validated_mean, ([40, 50, 130], [40, 50, 60]), 1, INFINITE, "raises on one side alone"),
    Case(
        diagnoses,
        (["flu"] * 8 + ["hiv"] * 5, ["flu"] * 8 + ["hiv"] * 4),
        1,
        INFINITE,
        "the threshold is on the true count",
        1e-6,
    ),
    Case(favourite, (["acme"] + ["bolt"] * 5, ["bolt"] * 6), 1, 1.984, "no factor 1 / 2"),
    Case(survey_answer, (True, False), 1.0987, 1.946, "the truth in 7 of 8 cases: ln 7"),
    Case(noisy_embedding, ([1, 0], [0, 0]), 10, 10.39, "the formula needs ε ≤ 1", 1e-5),
    Case(
        private_gradient,
        ([[0.1, 0], [0, 0.1], [-0.1, 0], [100, 0]], [[0.1, 0], [0, 0.1], [-0.1, 0]]),
        1,
        3.512,
        "the sum is clipped and not each example, and its noise is divided by 4",
        1e-5,
    ),
    Case(alerts, ([5, 4], [4, 5]), 1, INFINITE, "above, below is impossible on the other side"),
    Case(page_views, (_ANNA + _BERND, _BERND), 1, 5, "one user counts on five pages"),
    Case(top_pages, (["b", "a", "a"], ["b", "a"]), 1, INFINITE, "the order is of true counts"),
    Case(cost_by_ward, (_WARDS, _WARDS[:2]), 1, INFINITE, "NaN where a ward has no patient"),
    Case(latency_p90, ([0, 0, 0, 0, 100], [0, 0, 0, 0, 0]), 1, 3, "it moves by 60, at scale 20"),
    Case(conversion_rate, ([1, 0, 0], [1, 0]), 1, INFINITE, "tails of scales 1/3 and 1/2"),
    Case(positive_count, ([1], []), 1, 1.490, "its normaliser depends on the count"),
)

RIGHT = (
    Case(patients, ([1, 0], [1]), 1, 1, "Laplace noise"),
    Case(capped_sum, ([10, 20, 1000], [10, 20]), 1, 1, "clipped before the noise"),
    Case(mean_stay, ([3, 5, 4, 30], [3, 5, 4, 0]), 0.5, 0.5, "moves by 7.5, at scale 15"),
    Case(coin_answer, (True, False), 1.0987, 1.0986, "3/4 against 1/4: ln 3"),
    Case(geometric_count, ([1, 2, 3], [1, 2]), 1, 1, "two-sided geometric noise"),
    Case(blood_groups, (["0", "A", "AB"], ["0", "A"]), 1, 1, "one of four counts moves by 1"),
    Case(median_grade, ([2, 3, 8, 8], [2, 3, 3, 8]), 1, 0.307, "listed: 11 probabilities"),
    Case(least_popular, (["acme"] + ["bolt"] * 5, ["bolt"] * 6), 1, 0.922, "two probabilities"),
    Case(winner, ([5, 4], [4, 5]), 1, 0.493, "two probabilities: ln(0.621 / 0.379)"),
    Case(gaussian_embedding, ([1, 0], [0, 0]), 1, 0.751, "of δ(ε) of N(1, 4.84²)", 1e-5),
    Case(first_alert, ([5, 3, 6], [4, 4, 5]), 1, 0.414, "integrated over the threshold"),
    Case(
        stable_words,
        (["flu"] * 8 + ["hiv"], ["flu"] * 7 + ["hiv"]),
        1,
        0.998,
        "e apart above 8, less δ",
        1e-3,
    ),
    Case(visits_by_ward, (_WARDS, _WARDS[:2]), 1, 1, "missing wards are 0"),
    Case(average_spend, ([3, 4, 10], [3, 4]), 1, 1, "1/2 and 1/2, in the same tail"),
    Case(bounded_views, (_ANNA + _BERND, _BERND), 1, 1, "moves by 3, at scale 3"),
    Case(tidy_count, ([1, 2, 3], [1, 2]), 1, 1, "post-processing"),
    Case(suppressed_count, ([1] * 8, [1] * 7), 1, 1, "post-processing"),
    Case(sampled_count, ([1, 0], [1]), 0.6202, 0.6201, "ln((1 + e) / 2), in the tail"),
    Case(api_response, ([1, 2], [1]), 1, 1, "time and identifier say nothing of the data"),
    Case(colour_bits, ("red", "blue"), 1, 1, "two bits differ, 1/2 each"),
)


def _arguments(case: Case) -> list[str]:
    """What a reader of the pages types, after ``dpaudit``."""
    given = ["audit", f"{os.path.relpath(__file__)}:{case.name}"]
    given += ["--pair", *(json.dumps(data) for data in case.pair), "--epsilon", str(case.epsilon)]
    return [*given, "--delta", str(case.delta)] if case.delta else given


def _advice(told: str) -> list[str]:
    """What an audit without an answer says to add: a field that is a time, or more runs."""
    if field := re.search(r'--field "(.+=time)"', told):
        return ["--field", field[1]]
    if runs := re.search(r"at least (\d+) are needed, so give more", told):
        return ["--runs", runs[1]]
    return []


def _audit(case: Case) -> dict[str, Any]:
    """Audit one function as a command does, once more as that says, and read what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "dpaudit", *_arguments(case)]
    ask = functools.partial(
        subprocess.run,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "4000", "NO_COLOR": "1"},
        check=False,
    )
    done = ask(command)
    if advice := _advice(done.stderr):
        done = ask(command + advice)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [line.rstrip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    rows = {line[:11].strip(): line[11:].strip() for line in lines}
    bound = re.search(r"ε ≥ ([\d.]+)", rows.get("lower bound", ""))
    runs = re.match(r"\d+", rows.get("runs", ""))
    return {
        "verdict": rows.get("verdict", "-"),
        "exit": done.returncode,
        "bound": bound[1] if bound else "-",
        "runs": runs[0] if runs else "-",
        "seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "last": re.sub(r"\s+", " ", lines[-1]) if lines else "-",
        "text": "\n".join(lines) + "\n",
    }


def _row(case: Case, found: dict[str, Any]) -> str:
    claim = f"ε = {case.epsilon}" + (f", δ = {case.delta}" if case.delta else "")
    truth = "∞" if math.isinf(case.truth) else f"{case.truth:.4g}"
    last = found["last"].replace("|", "\\|")
    last = last if len(last) <= SHORT else last[: SHORT - 1] + "…"
    cells = [f"`{case.name}`", claim, truth, found["verdict"], found["bound"], found["exit"]]
    cells += [found["runs"], f"{found['seconds']:.1f}", last]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main() -> None:
    """Audit all functions, one after another, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="audit this function alone")
    parser.add_argument("--keep", type=Path, help="folder that keeps the full text of each audit")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    counts: collections.Counter[tuple[bool, str]] = collections.Counter()
    head = ["function", "claim", "true ε", "found", "bound", "exit", "runs", "s", "last line"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for case in (*WRONG, *RIGHT):
        if options.only and case.name not in options.only:
            continue
        found = _audit(case)
        counts[case.wrong, found["verdict"]] += 1
        print(_row(case, found), flush=True)
        if options.keep:
            (options.keep / f"{case.name}.txt").write_text(found["text"], encoding="utf-8")
    print()
    for (wrong, verdict), number in sorted(counts.items()):
        print(f"{'wrong' if wrong else 'right'} functions, {verdict}: {number}")


if __name__ == "__main__":
    main()
