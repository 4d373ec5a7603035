"""The number of runs of a private selection, and the candidate of each, without rounding.

Every probability is a fraction of what the declared floats are, and is decided by one whole number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import UnsupportedError
from dpaudit.plan import NegativeBinomialRuns, PoissonRuns, Runs

Below = Callable[[int], int]
"""One uniform whole number below a bound."""


def drawn_candidates(runs: Runs, candidates: int, below: Below) -> NDArray[np.int64]:
    """The candidate of each run, of as many runs as are drawn; shape (runs,).

    Raises:
        UnsupportedError: if the law of the number of runs has no sampler.
    """
    number = number_of_runs(runs, below)
    return np.array([below(candidates) for _ in range(number)], dtype=np.int64)


def number_of_runs(runs: Runs, below: Below) -> int:
    """One draw of the declared law.

    Raises:
        UnsupportedError: if it has no sampler.
    """
    if isinstance(runs, NegativeBinomialRuns):
        return _negative_binomial(Fraction(runs.gamma), Fraction(runs.shape), below)
    if isinstance(runs, PoissonRuns):
        whole, rest = divmod(Fraction(runs.mean), 1)
        return _poisson(rest, below) + sum(_poisson(Fraction(1), below) for _ in range(whole))
    raise UnsupportedError(f"the law {runs.kind} of a number of runs has no sampler.")


def _negative_binomial(gamma: Fraction, shape: Fraction, below: Below) -> int:
    """1 + j, by rejection from the number j of failures before m successes, m = ⌈η⌉ at least 1.

    The j-th mass is (1 − γ)^j Π (l + η)/(l + 1) over l ≤ j, and that of the failures (1 − γ)^j
    Π (l − 1 + m)/l; a factor of their quotient is at most 1, as lη ≤ lm + m − 1.
    """
    successes = max(math.ceil(shape), 1)
    while True:
        failures = missing = 0
        while missing < successes:
            if _happens(gamma, below):
                missing += 1
            else:
                failures += 1
        if all(
            _happens(l * (l + shape) / ((l + 1) * (l - 1 + successes)), below)
            for l in range(1, failures + 1)  # noqa: E741
        ):
            return 1 + failures


def _poisson(mean: Fraction, below: Below) -> int:
    """Of a mean of at most 1: k of mass 2^−(k+1), kept with probability (2 mean)^k/2 k!."""
    while True:
        k = 0
        while below(2):
            k += 1
        if _happens((2 * mean) ** k / (2 * math.factorial(k)), below):
            return k


def _happens(chance: Fraction, below: Below) -> bool:
    return below(chance.denominator) < chance.numerator
