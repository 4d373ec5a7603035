"""Entries say what is claimed and what is true."""

import pytest

from audits.catalogue.entry import Entry
from dpaudit import Claim, InputError

FACTS = {"claim": Claim(1.0), "x": 0.0, "x_prime": 1.0, "true_epsilon": 1.0}


def release(data, size, rng):
    return data + rng.laplace(size=size)


def test_the_neighbours_are_a_pair():
    pair = Entry("mine", True, **FACTS, release=release).pair
    assert (pair.x, pair.x_prime, pair.why) == (0.0, 1.0, "mine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"right": False}, "states 1 where 1 is true; that does not go with right = False"),
        ({"true_epsilon": 2.0}, "states 1 where 2 is true; that does not go with right = True"),
        ({"rho": (1.0, 2.0)}, "states 1 where 2 is true"),
        ({"release": None}, "needs one of a release, an answer and an exact audit"),
        ({"exact": lambda: None}, "needs one of"),
        ({"answer": lambda data, rng: ""}, "needs one of"),
        ({"runs": -1}, "runs is -1"),
        ({"claim": 1.0}, "claim is 1.0; it must be a Claim"),
        ({"rare": 1}, "rare is 1; it must be true or false"),
    ],
)
def test_what_does_not_go_together_is_named(changes, message):
    facts = {"name": "mine", "right": True, **FACTS, "release": release}
    with pytest.raises(InputError, match=message):
        Entry(**(facts | changes))
