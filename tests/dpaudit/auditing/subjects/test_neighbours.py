"""Pairs worth an attack, and pairs that are none."""

import math

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    AuditPair,
    Gaussian,
    InputError,
    Invocation,
    Laplace,
    MetricBall,
    Plan,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.auditing import candidate_pairs, require_neighbours, search_pairs
from dpaudit.auditing.subjects.neighbours import around, patterns


def plan(mechanism, sensitivity, relation=None, trust=TrustModel.CENTRAL):
    relation = relation or AddRemove()
    return Plan.of(Invocation(mechanism, sensitivity, PrivacyUnit("row"), relation, trust))


class TestCandidates:
    @pytest.mark.parametrize(
        "declared",
        [
            plan(Laplace(4.0, clip=(-2, 2)), 4.0, ReplaceOne(), TrustModel.LOCAL),
            plan(Laplace(2.0, clip=(0, 2)), 2.0, AddRemove()),
            plan(Laplace(2.0, clip=(-3, 2)), 3.0, ZeroOut()),
            plan(Gaussian(2.0, clip_norm=1.0), 2.0, ReplaceOne()),
            plan(Gaussian(2.0, clip_norm=1.0), 1.0),
            plan(Gaussian(2.0), 0.5),
            plan(Laplace(2.0), 3.0),
            plan(RandomizedResponse(0.5, k=5), 1.0, ReplaceOne()),
            plan(Laplace(2.0, clip=(0, 9)), 2.0, MetricBall(2.0)),
        ],
    )
    def test_are_neighbours_that_the_mechanism_takes(self, declared):
        mechanism = declared.invocations[0].mechanism
        rng = np.random.default_rng(0)
        for pair in candidate_pairs(declared):
            require_neighbours(declared, pair)
            mechanism.release_many(pair.x, 2, rng)
            mechanism.release_many(pair.x_prime, 2, rng)
            assert pair.why

    def test_cover_both_ends_and_beyond(self):
        declared = plan(Laplace(4.0, clip=(-2, 2)), 4.0, ReplaceOne(), TrustModel.LOCAL)
        ends, beyond = candidate_pairs(declared)
        assert {ends.x, ends.x_prime} == {2, -2}
        assert min(beyond.x, -beyond.x_prime) > 20


class TestRefusals:
    def test_beyond_the_sensitivity(self):
        with pytest.raises(InputError, match=r"L1 distance 5, and .* at most 3"):
            require_neighbours(plan(Laplace(2.0), 3.0), AuditPair(5.0, 0.0))
        with pytest.raises(InputError, match=r"L2 distance 1\.41421"):
            require_neighbours(plan(Gaussian(2.0), 1.0), AuditPair([1.0, 0.0], [0.0, 1.0]))

    def test_beyond_the_radius(self):
        declared = plan(Laplace(2.0, clip=(0, 9)), 9.0, MetricBall(1.0))
        with pytest.raises(InputError, match="at most 1"):
            require_neighbours(declared, AuditPair(3.0, 1.0))

    def test_a_clip_makes_neighbours(self):
        require_neighbours(plan(Laplace(2.0, clip=(0, 3)), 3.0), AuditPair(50.0, 0.0))

    def test_a_user_may_answer_anything(self):
        declared = plan(Laplace(4.0), 4.0, ReplaceOne(), TrustModel.LOCAL)
        require_neighbours(declared, AuditPair(20.0, -20.0))


class TestSearch:
    PAIRS = (AuditPair(0.0, 0.1), AuditPair(math.nan, 0.0), AuditPair(0.0, 1.0))

    def test_finds_the_worst_pair_and_passes_over_refused_ones(self):
        found = search_pairs(Laplace(1.0).release_many, self.PAIRS, seed=1)
        assert found.pair == self.PAIRS[2]
        assert found.promises[1] is None
        assert found.promises[2] > found.promises[0]

    def test_replays(self):
        first = search_pairs(Laplace(1.0).release_many, self.PAIRS)
        again = search_pairs(Laplace(1.0).release_many, self.PAIRS, seed=first.seed)
        assert again == first

    def test_nothing_to_search(self):
        with pytest.raises(InputError, match="no pair"):
            search_pairs(Laplace(1.0).release_many, [])
        with pytest.raises(InputError, match="NaN"):
            search_pairs(Laplace(1.0).release_many, [self.PAIRS[1]] * 2)


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
    assert {np.size(pair.x) for pair in found} == {1, 2, 3, 5, 10}
    assert any(pair.x == [7.0] * 3 for pair in found)
    assert any(pair.x == 7.0 - step / 2 for pair in found if np.ndim(pair.x) == 0)
    assert any(changes(pair).sum() > step for pair in found) == (relation is None)


def test_one_entry_is_missing_or_zero():
    found = list(patterns(AddRemove(), [7.0, 0]))
    for pair in found:
        assert pair.x_prime == pair.x[1:]
    assert [7.0, 0, 0] in [pair.x for pair in found]
    assert [0, 7.0, 7.0] in [pair.x for pair in found]
    for pair in patterns(ZeroOut(), [7.0]):
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
