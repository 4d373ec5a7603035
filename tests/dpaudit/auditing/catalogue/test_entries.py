"""Entries say what is claimed and what is true; folders hold them."""

import numpy as np
import pytest

from dpaudit import Claim, InputError
from dpaudit.auditing.catalogue import Entry, load_catalogue

FACTS = {"claim": Claim(1.0), "x": 0.0, "x_prime": 1.0, "true_epsilon": 1.0}

FOLDER = """
from dpaudit import Claim
from dpaudit.auditing.catalogue import Entry
from .releases import noisy

ENTRIES = [Entry("noisy", True, Claim(1.0), 0.0, 1.0, 1.0, runs=300, release=noisy)]
"""


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
        ({"release": None}, "needs a release or an exact audit, and not both"),
        ({"exact": lambda: None}, "and not both"),
        ({"runs": -1}, "runs is -1"),
        ({"claim": 1.0}, "claim is 1.0; it must be a Claim"),
        ({"rare": 1}, "rare is 1; it must be true or false"),
    ],
)
def test_what_does_not_go_together_is_named(changes, message):
    facts = {"name": "mine", "right": True, **FACTS, "release": release}
    with pytest.raises(InputError, match=message):
        Entry(**(facts | changes))


def test_a_folder_is_a_package_of_its_own(tmp_path):
    (tmp_path / "__init__.py").write_text(FOLDER)
    (tmp_path / "releases.py").write_text(
        "def noisy(data, size, rng):\n    return data + rng.laplace(size=size)\n"
    )
    catalogue = load_catalogue(tmp_path)
    assert [entry.name for entry in catalogue.entries] == ["noisy"]
    assert catalogue.floats == ()
    assert catalogue.entries[0].release(0.0, 2, np.random.default_rng(0)).shape == (2,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "it must be a folder whose __init__.py defines ENTRIES"),
        ("ENTRIES = [3]", "has no entries"),
        ("", "has no entries"),
        ("1 / 0", r"cannot be imported \(ZeroDivisionError: division by zero\)"),
    ],
)
def test_other_folders_are_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "__init__.py").write_text(text)
    with pytest.raises(InputError, match=message):
        load_catalogue(tmp_path)
