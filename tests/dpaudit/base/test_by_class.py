"""Methods whose bodies stand elsewhere: the nearest class that has one counts."""

import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dpaudit.base.by_class import by_class, implementation, owner
from dpaudit.mechanisms import Gaussian, Laplace, Mechanism


class Shape:
    @by_class("dpaudit")  # these bodies stand here
    def name(self, ending=""):
        return f"no name{ending}"


class Square(Shape):
    pass


class Small(Square):
    pass


class Own(Square):
    def name(self, ending=""):
        return f"own {super().name(ending)}"


class Beside(Shape):
    def name(self, ending=""):
        return "beside"


@implementation(Shape.name, Square)
def _square(shape, ending=""):
    return f"square of {type(shape).__name__}{ending}"


def test_the_body_of_the_nearest_class_runs():
    assert Shape().name() == "no name"
    assert Square().name("!") == "square of Square!"
    assert Small().name(ending="?") == "square of Small?"


def test_a_method_of_ones_own_comes_first_and_may_ask_what_is_above_it():
    assert Own().name("!") == "own square of Own!"
    assert Beside().name() == "beside"


def test_it_is_known_whose_body_counts():
    owners = [owner(Shape.name, kind) for kind in (Shape, Square, Small, Own, Beside)]
    assert owners == [None, Square, Square, Own, Beside]


@dataclass(frozen=True)
class Halved(Gaussian):
    """Half the noise, which the exact sampler of its base would not have."""

    kind: ClassVar[str] = "test-by-class-halved"

    def noise(self, shape, rng):
        return super().noise(shape, rng) / 2


def test_noise_of_ones_own_may_be_made_of_that_of_a_law():
    whole = Gaussian(2.0).noise((3,), np.random.default_rng(0))
    assert (Halved(2.0).noise((3,), np.random.default_rng(0)) == whole / 2).all()
    assert Gaussian.has_exact_sampler()
    assert not Halved.has_exact_sampler()


@dataclass(frozen=True)
class Exact(Halved):
    """Whose exact sampler is of the same class as its noise, or of a nearer one."""

    kind: ClassVar[str] = "test-by-class-exact"

    def sample_exactly(self, values, sensitivity, source):
        return values


def test_an_exact_sampler_must_be_as_near_as_the_other():
    assert Exact.has_exact_sampler()


def test_a_law_alone_loads_nothing_that_draws_or_attacks():
    code = (
        "import sys\nfrom dpaudit.mechanisms import Laplace\nLaplace(1.0).pair(1.0)\n"
        "print([n for n in sys.modules if n.startswith(('dpaudit.ledger', 'dpaudit.auditing'))])"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[]"


def test_every_law_of_the_package_is_drawn_or_says_why_not():
    own = {kind: each for kind, each in Mechanism.kinds().items() if _is_own(each)}
    assert len(own) == 31
    assert all(owner(Mechanism.sample, each) for each in own.values())
    assert owner(Mechanism.sample_exactly, Laplace) is Laplace


@pytest.mark.parametrize("kind", ["staircase", "top-k", "exponential", "binary-tree"])
def test_a_kind_of_a_module_that_is_not_loaded_is_taken(kind):
    """A class from outside is compared with all of the package, loaded or not."""
    base = "Factorization" if kind == "binary-tree" else "Mechanism"
    code = (
        "from dpaudit.mechanisms.base import Mechanism\n"
        "from dpaudit.mechanisms.continual.factorization import Factorization\n"
        f"class Mine({base}):\n    kind = {kind!r}\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"kind {kind!r} already belongs to dpaudit.mechanisms." in made.stderr


def test_a_kind_that_is_read_first_is_found():
    code = (
        "from dpaudit.mechanisms.base import Mechanism\n"
        "print(Mechanism.parse({'kind': 'exponential', 'epsilon': 1.0}))\n"
        "print(Mechanism.parse({'kind': 'laplace', 'scale': 1.0}))\n"
        "try:\n    Mechanism.parse({'kind': 'tails'})\nexcept Exception as error:\n    print(error)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, third = made.stdout.splitlines()
    assert first.startswith("ExponentialMechanism")
    assert second.startswith("Laplace(")
    assert third.startswith("mechanism is 'tails'; it must be one of")


def _is_own(kind):
    return kind.__module__.startswith("dpaudit.")
