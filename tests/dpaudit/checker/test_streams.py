"""How far streams move by the checker, against every pattern of exact columns."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction

import pytest

from dpaudit import checker
from dpaudit.mechanisms import ContinualGaussian, Norm, OwnMatrix, OwnToeplitz

PATTERNS = [(1, 1), (2, 1), (2, 3), (3, 2), (9, 1)]


def column_of(own: OwnToeplitz) -> list[Fraction]:
    given = [Fraction(each) for each in own.coefficients] + [Fraction(0)] * own.steps
    if not own.inverse:
        return given[: own.steps]
    series: list[Fraction] = []
    for n in range(own.steps):
        past = sum((given[k] * series[n - k] for k in range(1, n + 1)), Fraction(0))
        series.append((Fraction(n == 0) - past) / given[0])
    return series


def columns_of(own: OwnToeplitz | OwnMatrix) -> list[list[Fraction]]:
    steps = range(own.steps)
    if isinstance(own, OwnMatrix):
        rows = [[Fraction(each) for each in row] + [Fraction(0)] * own.steps for row in own.rows]
        return [[row[j] for row in rows] for j in steps]
    column = column_of(own)
    return [[column[i - j] if i >= j else Fraction(0) for i in steps] for j in steps]


def moved(own: OwnToeplitz | OwnMatrix, count: int, gap: int, norm: int) -> Fraction:
    columns, worst = columns_of(own), Fraction(0)
    for number in range(1, count + 1):
        for pattern in itertools.combinations(range(own.steps), number):
            if all(b - a >= gap for a, b in itertools.pairwise(pattern)):
                sums = [sum(each) for each in zip(*(columns[j] for j in pattern), strict=True)]
                worst = max(worst, sum((each**norm for each in sums), Fraction(0)))
    return worst


def told(own: OwnToeplitz | OwnMatrix, count: int, gap: int, norm: int) -> Fraction:
    facts = {"participations": count, "min_separation": gap, "factorization": own.to_dict()}
    return checker.moved_nodes(json.loads(json.dumps(facts)), norm)


def own_matrix(rng: random.Random, steps: int, bands: int) -> OwnMatrix:
    rows = (
        (*(rng.random() / steps * (n - at < bands) for at in range(n)), 1 + rng.random())
        for n in range(steps)
    )
    return OwnMatrix(tuple(rows))


@pytest.mark.parametrize("seed", range(6))
def test_own_factorisations_move_as_far_as_by_every_pattern(seed):
    rng, steps = random.Random(seed), 7
    falls = sorted((rng.random() for _ in range(4)), reverse=True)
    halves = (2.0, *(-rng.random() / 2 for _ in range(3)))
    owns = [
        OwnToeplitz(steps, tuple(falls)),
        OwnToeplitz(steps, halves, inverse=True),
        OwnToeplitz(steps, (1.0, 0.0, -1.0), inverse=True),
        own_matrix(rng, steps, 2),
        own_matrix(rng, steps, 7),
    ]
    for own, (count, gap), norm in itertools.product(owns, PATTERNS, (1, 2)):
        exact, found = moved(own, count, gap, norm), told(own, count, gap, norm)
        engine = Fraction(own.sensitivity(count, gap, Norm.L1 if norm == 1 else Norm.L2)) ** norm
        assert exact <= found <= engine * (1 + Fraction(1, 10**12))
        falls_or_one = isinstance(own, OwnToeplitz) and (not own.inverse or count == 1)
        if norm == 1 or falls_or_one or gap >= own.bandwidth:
            assert found <= exact * (1 + Fraction(1, 2**80))


def test_a_long_matrix_takes_no_long_time():
    long = own_matrix(random.Random(0), 200, 20)
    assert told(long, 4, 20, 2) == pytest.approx(float(long.sensitivity(4, 20)) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "own-toeplitz", "steps": 4, "coefficients": []},
        {"kind": "own-toeplitz", "steps": 4, "coefficients": [0.0]},
        {"kind": "own-toeplitz", "steps": 4, "coefficients": [1.0, 1.5]},
        {"kind": "own-toeplitz", "steps": 4, "coefficients": [1.0, -0.5]},
        {"kind": "own-toeplitz", "steps": 4, "coefficients": [1.0, 0.5], "inverse": True},
        {"kind": "own-toeplitz", "steps": 4, "coefficients": [1.0, -0.6, -0.6], "inverse": True},
        {"kind": "own-toeplitz", "steps": 4, "coefficients": "1"},
        {"kind": "own-matrix", "rows": []},
        {"kind": "own-matrix", "rows": [[]]},
        {"kind": "own-matrix", "rows": [1.0]},
        {"kind": "own-matrix", "rows": [[1.0], [1.0]]},
        {"kind": "own-matrix", "rows": [[1.0], [1.0, 0.0]]},
        {"kind": "own-matrix", "rows": [[1.0], [-1.0, 1.0]]},
        {"kind": "own-matrix", "rows": [[1.0]] * 501},
    ],
)
def test_entries_that_make_no_factorisation_are_no_input(record):
    facts = {"participations": 1, "min_separation": 1, "factorization": record}
    with pytest.raises(checker.InputError):
        checker.moved_nodes(facts, 2)


def test_turns_of_own_matrices_are_sampled_where_their_diagonals_are_few():
    for own in (OwnToeplitz(8, (1.0, 0.5)), own_matrix(random.Random(1), 8, 2)):
        law = ContinualGaussian(sigma=2.0, factorization=own, participations=2, min_separation=4)
        record = {
            "mechanism": law.to_dict(),
            "sensitivity": 1.0,
            "unit": "row",
            "relation": "add-remove",
            "trust": "central",
            "count": 1,
            "sampling": {"scheme": "cyclic-poisson", "rate": 0.1, "groups": 4},
        }
        (charges,) = checker.sets_of({"invocations": [record]})
        ((part, times),) = charges.items()
        assert (part.scheme, times) == ("poisson", 2)
