"""Calibrated mechanisms: what is returned must meet its target by the oracle's closed forms."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath as mp

from dpaudit import Claim, Gaussian, Laplace, RandomizedResponse
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import BinaryTree, ContinualGaussian, ContinualLaplace, HonakerTree
from dpaudit.numbers import most
from dpaudit.workflow.calibrating import calibrated
from tests.benchmarks.soundness.draws import between
from tests.benchmarks.soundness.judging import LONGEST, TooLongError, time_limit
from tests.benchmarks.soundness.oracle import closed
from tests.benchmarks.soundness.oracle.streams import factors
from tests.benchmarks.soundness.oracle.truth import truth
from tests.benchmarks.soundness.uses import Case, Use

KNOWN = ((2000.0, 1e-6), (5000.0, 1e-5), (0.0, 1e-17), (1e-3, 1e-6))
_LOOSE = 1.01


@dataclass(frozen=True)
class Calibrated:
    """One target and what became of it: "", or a miss in a sentence."""

    call: str
    miss: str
    refused: bool = False


def calibrations(rng: random.Random, number: int) -> Iterator[Calibrated]:
    """The known targets, then so many random ones."""
    for epsilon, delta in KNOWN:
        yield tried(gaussian, epsilon, delta, 1.0)
        yield tried(stream, epsilon, delta, 1.0, ("binary-tree", {"steps": 16}), 1, False)
    for _ in range(number):
        yield random_one(rng)


def random_one(rng: random.Random) -> Calibrated:
    """A target of a mechanism chosen at random."""
    epsilon = rng.choice([between(rng, 0.01, 10), between(rng, 1e-12, 1e4), 0.0])
    delta = rng.choice([1e-300, 1e-17, 1e-6, 1e-5, 0.1, 0.9, between(rng, 1e-30, 0.5)])
    shift = rng.choice([1.0, between(rng, 1e-3, 1e3), 1e-200, 1e200])
    tree = rng.choice(["binary-tree", "honaker-tree"])
    matrix = (tree, {"steps": rng.choice([1, 2, 5, 8, 16])})
    target, twice = max(epsilon, 1e-12), rng.choice([1, 2])
    kind, count = rng.choice([("gaussian", 1), ("gaussian", 30), ("laplace", 1)])
    return rng.choice([
        lambda: tried(gaussian, epsilon, delta, shift),
        lambda: tried(gaussian, epsilon, delta, shift),
        lambda: tried(laplace, target, shift),
        lambda: tried(response, target, rng.choice([2, 3, 50])),
        lambda: tried(stream, epsilon, delta, shift, matrix, twice, rng.random() < 0.5),
        lambda: tried(laplace_stream, target, shift, matrix, twice),
        lambda: tried(planned, target, delta, kind, count),
    ])()  # fmt: skip


def tried(check: Callable[..., str], *target: Any) -> Calibrated:
    """A check, with what it raises."""
    call = f"{check.__name__}{target!r}"
    try:
        with time_limit(LONGEST):
            return Calibrated(call, check(*target))
    except (InputError, UnsupportedError) as error:
        named = "disagree" in str(error)
        return Calibrated(call, str(error) if named else "", refused=not named)
    except TooLongError as error:
        return Calibrated(call, str(error))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a miss
        return Calibrated(call, f"{type(error).__name__}: {error}")


def _above(found: Any, wanted: float, name: str = "δ") -> str:
    """The sentence if the oracle's number is above the target."""
    if found > closed.exact(wanted):
        return f"{name} is {mp.nstr(found, 17)}, the target {wanted!r}"
    return ""


def gaussian(epsilon: float, delta: float, shift: float) -> str:
    sigma = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=shift).sigma
    return _normal(Fraction(shift) ** 2 / Fraction(sigma) ** 2, epsilon, delta)


def _normal(square: Fraction, epsilon: float, delta: float) -> str:
    """Met, and not by far more noise than needed."""
    met = _above(closed.gaussian_delta(square, epsilon), delta)
    less = closed.gaussian_delta(square * Fraction(_LOOSE) ** 2, epsilon)
    return met or ("" if less > delta else f"σ could be 1 % less: δ is then {mp.nstr(less, 6)}")


def laplace(epsilon: float, shift: float) -> str:
    scale = Laplace.calibrated(epsilon=epsilon, sensitivity=shift).scale
    return _above(closed.exact(Fraction(shift) / Fraction(scale)), epsilon, "ε")


def response(epsilon: float, k: int) -> str:
    p = RandomizedResponse.calibrated(epsilon=epsilon, k=k).p
    with mp.workdps(60):
        return _above(mp.log1p(k * (1 - closed.exact(p)) / closed.exact(p)), epsilon, "ε")


def stream(
    epsilon: float, delta: float, shift: float, matrix: Any, participations: int, symmetric: bool
) -> str:
    tree = {"binary-tree": BinaryTree, "honaker-tree": HonakerTree}[matrix[0]](**matrix[1])
    made = ContinualGaussian.calibrated(
        epsilon=epsilon, delta=delta, sensitivity=shift, factorization=tree,
        participations=participations, symmetric=symmetric,
    )  # fmt: skip
    found = factors({"matrix": matrix, "participations": participations}, 2, moves=False)
    if found is None:
        return ""
    square = Fraction(shift) ** 2 * found[0] / Fraction(made.sigma) ** 2 / (2 if symmetric else 1)
    return _above(closed.gaussian_delta(square, epsilon), delta)


def laplace_stream(epsilon: float, shift: float, matrix: Any, participations: int) -> str:
    tree = {"binary-tree": BinaryTree, "honaker-tree": HonakerTree}[matrix[0]](**matrix[1])
    made = ContinualLaplace.calibrated(
        epsilon=epsilon, sensitivity=shift, factorization=tree, participations=participations
    )
    found = factors({"matrix": matrix, "participations": participations}, 1, moves=False)
    if found is None:
        return ""
    return _above(closed.exact(Fraction(shift) * found[0] / Fraction(made.scale)), epsilon, "ε")


def planned(epsilon: float, delta: float, kind: str, count: int) -> str:
    """A whole plan, as ``dpaudit calibrate`` does; it meets its target as a claim is met."""
    field = "sigma" if kind == "gaussian" else "scale"
    head = {"unit": "row", "relation": "add-remove", "trust": "central"}
    use = {"mechanism": kind, field: 1.0, "sensitivity": 1.0, "count": count}
    found = calibrated({"plan": head, "invocation": [use]}, Claim(epsilon, delta))
    ((_, value),) = found.noise.values()
    met = Case(kind, "add-remove", (Use(kind, {field: value}, 1.0, count),), delta)
    curve = truth(met, delta, deep=False)
    return "" if curve is None else _above(mp.mpf(curve.lower(float(most(epsilon)))), delta)
