"""Runs that depend on each other: shared draws, cached noise, copied states.

Every test of an audit takes its runs for independent. Here that is put to the test, by exact
exchangeability: ranks of independent runs, ties broken at random, are a random permutation,
whatever their law, so atoms and heavy tails raise no alarm. Two statistics of it:

- products of the sums of two blocks of ranks: neighbouring blocks of 1, 2, 4, … runs of a
  process, the same places in two processes, the same runs on either side. With ranks scaled to
  uniform laws of variance 1, which are strictly sub-Gaussian (Marchal and Arbel 2017), a sum T of m
  such products has E exp(λT) ≤ (1 − λ²)^(−m/2), and Chernoff's bound is in closed form;
- of each value that occurs more than once, whether a pair of its places, picked at random, lies in
  one process (or one call): of independent runs it does with the share of all such pairs.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.base.errors import InconclusiveError
from dpaudit.mechanisms.pairs import Floats

ERROR = 3e-7
"""Chance of an alarm about independent runs, of all tests of a stage; an audit has two or three."""
MOST_RUNS = 2**17
"""On either side; of more, the first."""
MOST_COLUMNS = 16
SEED = 20_26
DAY = 86_400.0
FALLS, RISES = 0.01, 0.01
"""Share of runs after which a clock or a counter may fall at most, and must rise at least."""
FIELD = re.compile(r"\boutput(?:\[[^\]]*\]|\.\w+)+")
"""The first field of an output that the name of a column speaks of."""


@dataclass(frozen=True)
class _Evidence:
    """One test: what it looks at, and the logarithm of its bound on the chance of what it saw."""

    what: str
    shown: str
    log_chance: float
    column: int = 0


def require_independent(
    both: tuple[Floats, Floats],
    processes: Sequence[int],
    calls: Sequence[int],
    name: Callable[[int], str] = lambda column: "",
) -> None:
    """Nothing, if the runs could be independent.

    Args:
        both: outputs or scores of the runs on either side, in the order in which they were drawn.
        processes: how many consecutive runs each process drew, on either side.
        calls: how many consecutive runs were drawn with one generator.
        name: gives the name of a column, where it has one.

    Raises:
        InconclusiveError: if they are not; the chance of that for independent runs is ``ERROR``.
    """
    flat = [side[:MOST_RUNS].reshape(len(side[:MOST_RUNS]), -1) for side in both]
    tests = list(_tests(flat, processes, calls))
    worst = min(tests, key=lambda test: test.log_chance, default=None)
    if worst is None or worst.log_chance + math.log(len(tests)) > math.log(ERROR):
        return
    chance = max(math.exp(max(worst.log_chance + math.log(len(tests)), -200)), 1e-12)
    power, column = math.ceil(math.log10(chance)), name(worst.column)
    of = f" in {column}" if column else ""
    raise InconclusiveError(
        f"runs are not independent: {worst.what}{of} {worst.shown}, which has probability below "
        f"1e{power} in independent runs; the audit concludes nothing, so draw fresh noise in "
        f"every run.{_remedy(flat, name)}"
    )


def _remedy(flat: Sequence[Floats], name: Callable[[int], str]) -> str:
    """Return how a field is left out that is a clock by its values, if there is one."""
    columns = some_columns(flat[0].shape[1])
    clocks = (each for each in columns if all(_is_clock(side[:, each]) for side in flat))
    found = next(filter(None, (FIELD.search(name(each)) for each in clocks)), None)
    if found is None:
        return ""
    option = f'--field "{found.group()}=time"'
    return f" If {found.group()} is a time or a counter, leave it out of the audit: {option}."


def _tests(
    flat: Sequence[Floats], processes: Sequence[int], calls: Sequence[int]
) -> Iterator[_Evidence]:
    rng = np.random.default_rng(SEED)
    for column in some_columns(flat[0].shape[1]):
        for test in _of_column([side[:, column] for side in flat], processes, calls, rng):
            yield replace(test, column=column)


def _is_clock(values: Floats) -> bool:
    """Tell whether values are about now in some unit, or grow from run to run as no noise does."""
    if len(values) < 2 or not np.isfinite(values).all():
        return False
    with np.errstate(over="ignore"):
        steps, now = np.diff(values), time.time()
    if any((np.abs(values / unit - now) < DAY).all() for unit in (1, 1e3, 1e6, 1e9)):
        return True
    return bool(np.mean(steps < 0) <= FALLS and np.mean(steps > 0) >= RISES)


def _of_column(
    values: Sequence[Floats],
    processes: Sequence[int],
    calls: Sequence[int],
    rng: np.random.Generator,
) -> Iterator[_Evidence]:
    ranks = [_ranks(each, rng) for each in values]
    for where, value, rank in zip(("on x", "on x'"), values, ranks, strict=True):
        split = np.split(rank, np.cumsum(processes)[:-1])
        parts = [part for part in split if len(part)]
        yield from _of_blocks(parts, where)
        pairs = zip(parts[::2], parts[1::2], strict=False)
        halves = [part[: min(map(len, pair))] for pair in pairs for part in pair]
        yield _products(halves[::2], halves[1::2], f"runs at one place of two processes {where}")
        for sizes, unit in ((processes, "process"), (calls, "call")):
            yield from _of_repeats(value, sizes, f"a {unit} {where}", rng)
    yield _products([ranks[0]], [ranks[1]], "the same runs on x and on x'")


def some_columns(width: int) -> list[int]:
    """At most ``MOST_COLUMNS`` of so many columns, evenly spaced."""
    places = np.linspace(0, width - 1, min(width, MOST_COLUMNS)).astype(int)
    return sorted(set(places.tolist()))


def _ranks(values: Floats, rng: np.random.Generator) -> Floats:
    """Ranks with ties broken at random, as a uniform law of mean 0 and variance 1."""
    places = np.empty(len(values))
    places[np.lexsort((rng.random(len(values)), values))] = np.arange(len(values))
    return (2 * (places + 0.5) / max(1, len(values)) - 1) * math.sqrt(3)


def _of_blocks(parts: Sequence[Floats], where: str) -> Iterator[_Evidence]:
    longest = max(map(len, parts), default=0) // 2
    for size in sorted({*(2**power for power in range(longest.bit_length())), longest} - {0}):
        one, two = [], []
        for part in parts:
            count = len(part) // (2 * size)
            sums = part[: 2 * size * count].reshape(count, 2, size).sum(axis=2) / math.sqrt(size)
            one.append(sums[:, 0])
            two.append(sums[:, 1])
        what = "neighbouring runs" if size == 1 else f"neighbouring blocks of {size} runs"
        yield _products(one, two, f"{what} {where}")


def _products(one: Sequence[Floats], two: Sequence[Floats], what: str) -> _Evidence:
    """Of sums of variance 1, in pairs that are independent of each other."""
    terms = sum(map(len, one))
    total = abs(sum(float(a @ b) for a, b in zip(one, two, strict=True)))
    if total == 0:
        return _Evidence(what, "", 0.0)
    tilt = (math.hypot(terms, 2 * total) - terms) / (2 * total)
    chance = math.log(2) - tilt * total - terms / 2 * math.log1p(-tilt * tilt)
    norms = [math.sqrt(sum(float(a @ a) for a in side)) for side in (one, two)]
    return _Evidence(what, f"have a rank correlation of {total / math.prod(norms):.2g}", chance)


def _of_repeats(
    values: Floats, sizes: Sequence[int], unit: str, rng: np.random.Generator
) -> Iterator[_Evidence]:
    counts = np.diff(np.minimum(np.cumsum([0, *sizes]), len(values))).astype(float)
    total = counts.sum()
    if total < 2:
        return
    share = float((counts * (counts - 1)).sum() / (total * (total - 1)))
    order = np.lexsort((rng.random(len(values)), values))
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    several = starts[np.diff(starts, append=len(values)) > 1]
    if several.size and share < 1:
        from scipy.special import bdtrc

        home = np.repeat(np.arange(len(counts)), counts.astype(int))[order]
        within = int((home[several] == home[several + 1]).sum())
        tail = float(bdtrc(within - 1, several.size, share))
        chance = math.log(tail) if tail > 0 else -math.inf
        chances = f"{share * several.size:.2g} are expected"
        shown = f"repeat in {within} of {several.size} cases where {chances}"
        yield _Evidence(f"exact values of {unit}", shown, chance)
