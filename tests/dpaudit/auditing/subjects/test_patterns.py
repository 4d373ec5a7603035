"""Patterns of numbers as neighbours."""

import numpy as np
import pytest

from dpaudit.auditing import search_pairs
from dpaudit.auditing.subjects.patterns import around, patterns
from dpaudit.plan import AddRemove, MetricBall, ReplaceOne, ZeroOut
from dpaudit.project import AuditPair


def changes(pair):
    return np.abs(np.subtract(pair.x, pair.x_prime)).ravel()


@pytest.mark.parametrize("relation", [None, ReplaceOne(), MetricBall(0.5)])
def test_entries_move_by_no_more_than_is_said(relation):
    rng, step = np.random.default_rng(0), getattr(relation, "radius", 1)
    found = list(patterns(relation, [7.0]))
    for pair in [*found, *(around(pair, rng) for pair in found for _ in range(3))]:
        moved = changes(pair)
        assert moved.max() == pytest.approx(step)
        assert relation is None or np.count_nonzero(moved > 1e-9) == 1
    assert {np.size(pair.x) for pair in found} == {1, 2, 5, 10}
    assert any(pair.x == 7.0 - step / 2 for pair in found if np.ndim(pair.x) == 0)
    assert any(changes(pair).sum() > step for pair in found) == (relation is None)


def test_one_entry_is_missing_or_zero():
    for pair in patterns(AddRemove()):
        assert len(pair.x) == len(pair.x_prime) + 1
    for pair in patterns(ZeroOut()):
        assert pair.x_prime == [0, *pair.x[1:]]


def test_others_are_near_or_far():
    rng = np.random.default_rng(1)
    places = [around(AuditPair(50, 51), rng).x for _ in range(400)]
    assert any(abs(place) < 1 for place in places)
    assert any(abs(place - 50) < 1 for place in places)
    assert max(places) > 500 > -500 > min(places)
    assert around(AuditPair([1], [2], "one, moved"), rng).why == "one, moved"


@pytest.mark.parametrize("seed", range(2))
def test_what_leaks_in_one_place_alone_is_found_there(seed):
    def release(x, size, rng):
        return x + rng.laplace(scale=0.02 if 30 < x < 46 else 1.0, size=size)

    pairs = [AuditPair(place, place + 1) for place in range(-3, 4)]
    found = search_pairs(release, pairs, moved=around, runs=10_000, seed=seed)
    assert 29 < found.pair.x < 46
    assert found.runs <= 12_000
    assert len(found.promises) == len(pairs)
