"""An objective that keeps what it is asked about is found, whatever it keeps it in."""

from functools import cache

import numpy as np
import pytest

from dpaudit.auditing.rehearsal.rehearse import rehearse
from private_bo import BoxSpace, study
from private_bo.own.studies import Fixed

KEPT = {}


def first(point, user):
    """Everybody answers as the first one who was ever asked."""
    return 1.0 - abs(point[0] - KEPT.setdefault("first", user))


def largest(point, user):
    """Everybody's answer depends on the largest record so far."""
    KEPT["largest"] = max(KEPT.get("largest", user), user)
    return 1.0 - abs(point[0] - KEPT["largest"])


def last(point, user):
    """Everybody answers as the one before."""
    before, KEPT["last"] = KEPT.get("last", user), user
    return 1.0 - abs(point[0] - before)


@cache
def _asked_first(_, record=KEPT):
    return record["user"]


def cached(point, user):
    """As the first one, by a cache."""
    KEPT["user"] = user
    return 1.0 - abs(point[0] - _asked_first(0))


class Instance:
    """As the first one, by an attribute."""

    def __init__(self):
        self.kept = []

    def __call__(self, point, user):
        self.kept.append(user)
        return 1.0 - abs(point[0] - self.kept[0])


@cache
def _kernel(size):
    return np.linalg.inv(np.eye(size) + np.ones((size, size)))


@cache
def _own(point, user):
    return 1.0 - abs(point - user) * _kernel(3)[0, 0]


def right(point, user):
    """What is kept follows from the question and the user's own record, or is public."""
    return _own(float(point[0]), user)


@pytest.fixture(autouse=True)
def nothing_kept():
    KEPT.clear()
    _asked_first.cache_clear()


def rules(objective, trust, users=12, **settings):
    made = study(objective, BoxSpace((0,), (1,)), users=users, epsilon=2.0, trust=trust, **settings)
    data = [((37 * n) % 100) / 100 for n in range(users)]
    return {each.rule for each in rehearse(made, data).findings}


@pytest.mark.parametrize("objective", [first, largest, cached, Instance])
@pytest.mark.parametrize("trust", ["local", "joint", "federated"])
def test_an_objective_that_keeps_what_it_was_asked_is_found(objective, trust):
    more = {"rounds": 1, "evaluations": 2} if trust == "federated" else {}
    asked = objective() if objective is Instance else objective
    assert rules(asked, trust, **more)


def test_one_that_tells_the_next_user_is_found():
    assert rules(last, "joint", group=4) == {"hidden-randomness"}, "the first one is told the last"


@pytest.mark.parametrize("trust", ["local", "joint", "local-joint"])
def test_a_cache_of_what_is_public_or_the_user_s_own_is_no_finding(trust):
    assert rules(right, trust) == set()


def test_two_neighbours_are_asked_and_differ_from_the_data():
    made = study(None, BoxSpace((0,), (1,)), users=4, epsilon=1.0)
    data = [3, 3, 3, 1]
    moves = list(made.neighbours(data, np.random.default_rng(0)))
    assert [move.data for move in moves[:2]] == [[1, 3, 3, 1], [3, 3, 3, 3]]
    assert sum(any(isinstance(each, Fixed) for each in move.data) for move in moves[2:]) == 3
