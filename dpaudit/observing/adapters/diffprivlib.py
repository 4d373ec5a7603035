"""diffprivlib: where it draws noise, and what that noise is in a plan.

Noise that scales with the value is told in units of the sensitivity, which diffprivlib often takes
from the number of rows: a plan stays the same for other data, and a rehearsal sees that number.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import SystemRandom
from typing import Any
from weakref import WeakSet

import numpy as np
from diffprivlib import accountant, mechanisms, tools
from diffprivlib.models import logistic_regression
from diffprivlib.tools import quantiles
from diffprivlib.utils import PrivacyLeakWarning

from dpaudit import mechanisms as kinds
from dpaudit.base.errors import InputError
from dpaudit.observing import Patch, Reading, Recorder
from dpaudit.observing.calls import fingerprint, in_units, least_known
from dpaudit.observing.sources import of_state

_LAWS: dict[str, Callable[[Any], kinds.Mechanism]] = {
    "Laplace": lambda own: kinds.Laplace(own.sensitivity / (own.epsilon - math.log1p(-own.delta))),
    "LaplaceBoundedNoise": lambda own: kinds.TruncatedLaplace(
        own.sensitivity / own.epsilon,
        own.sensitivity / own.epsilon * math.log1p(math.expm1(own.epsilon) / 2 / own.delta),
    ),
    "Gaussian": lambda own: kinds.Gaussian(own._scale),
    "GaussianDiscrete": lambda own: kinds.DiscreteGaussian(own._scale),
    "Geometric": lambda own: kinds.DiscreteLaplace(own.sensitivity / own.epsilon),
    "Staircase": lambda own: kinds.Staircase(own.epsilon, own.sensitivity, own.gamma),
}
"""Of additive noise, by the class that defines ``randomise``; others truncate or fold it."""
_ADDITIVE = (*_LAWS, "LaplaceBoundedDomain", "Snapping", "Uniform")
_CHOICES: dict[str, Callable[[Any], kinds.Mechanism]] = {
    "Exponential": lambda own: kinds.ExponentialMechanism(own.epsilon, own.sensitivity),
    "PermuteAndFlip": lambda own: kinds.PermuteAndFlip(own.epsilon, own.sensitivity, own.monotonic),
    "Binary": lambda own: kinds.RandomizedResponse.calibrated(epsilon=own.epsilon * (1 + 1e-12)),
}
_PRIVATE = frozenset({"utility", "candidates", "measure", "utility_list", "random_state"})


class Diffprivlib:
    """The adapter."""

    library = "diffprivlib"
    versions = ("0.6.",)
    packages = ("diffprivlib", "sklearn", "numpy", "scipy", "joblib", "pandas")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Patch draws, functions that are one release as a whole, charges and warnings."""
        for name in (*_ADDITIVE, *_CHOICES, "ExponentialCategorical", "Bingham"):
            read = partial(_by, recorder, partial(_noise if name in _ADDITIVE else _choice, name))
            yield Patch(getattr(mechanisms, name), "randomise", recorder.reading(read))
        for module in (quantiles, tools):
            yield Patch(
                module, "quantile", recorder.replacing(partial(_whole, recorder, _quantile))
            )
        path = "_logistic_regression_path"
        whole = recorder.replacing(partial(_whole, recorder, _regression))
        yield Patch(logistic_regression, path, whole)
        yield from _accounts(recorder)
        heard = recorder.replacing(partial(_heard, recorder), within_draws=True)
        yield Patch(PrivacyLeakWarning, "__init__", heard)


def _by(recorder: Recorder, read: Callable[..., Reading], own: Any, *value: Any) -> Reading:
    """Return what is drawn, and whether by a generator that the code has seeded."""
    if not isinstance(own._rng, SystemRandom):
        recorder.note_draw(of_state(recorder, own._rng), type(own).__name__)
    return read(own, *value)


def _noise(kind: str, own: Any, value: Any = None) -> Reading:
    """Read noise on a number; where it has no law here, what the library states."""
    name, cost = type(own).__name__, (float(own.epsilon), float(own.delta))
    try:
        mechanism = _LAWS[kind](own)
    except (KeyError, InputError, ArithmeticError, ValueError):
        mechanism = kinds.StatedNoise(name, least_known(cost[0]), cost[1])
    return in_units(Reading(name, mechanism, float(own.sensitivity), value, cost, _facts(own)))


def _choice(kind: str, own: Any, value: Any = None) -> Reading:
    """Return a choice, or another release of which every change costs the same."""
    name, cost = type(own).__name__, (float(own.epsilon), float(own.delta))
    mechanism: kinds.Mechanism = kinds.Opaque(name, least_known(cost[0]), cost[1])
    weighted = getattr(own, "measure", None) or (kind == "Exponential" and own.monotonic)
    if kind in _CHOICES and not weighted:
        with suppress(InputError):
            mechanism = _CHOICES[kind](own)
    answers = getattr(own, "candidates", None)
    if kind in ("Binary", "ExponentialCategorical"):
        answers = (own.value0, own.value1) if kind == "Binary" else own._domain_values
        value = float(answers.index(value))
    elif kind != "Bingham":
        value = np.asarray(own.utility, dtype=np.float64)
    answers = None if answers is None else tuple(answers)
    return Reading(name, mechanism, 1.0, value, cost, _facts(own), answers=answers)


def _facts(own: Any) -> dict[str, Any]:
    """Return the numbers that a mechanism was made with."""
    kinds = bool | int | float | np.generic
    public = (name for name in vars(own) if not name.startswith("_") and name not in _PRIVATE)
    return {name: each for name in public if isinstance(each := getattr(own, name), kinds)}


def _whole(
    recorder: Recorder,
    read: Callable[[dict[str, Any]], Reading | None],
    original: Any,
    *given: Any,
    **options: Any,
) -> Any:
    """Release the result of a function whole: its noise is one of indices or functions."""
    bound = inspect.signature(original).bind(*given, **options)
    bound.apply_defaults()
    reading, draw = read(bound.arguments), partial(original, *given, **options)
    return draw() if reading is None else recorder.release(reading, draw)


def _quantile(given: dict[str, Any]) -> Reading | None:
    """Return one quantile; what asks for several, or along an axis, calls it for each."""
    if np.size(given["quant"]) > 1 or given["axis"] is not None or given["keepdims"]:
        return None
    if given["bounds"] is None:  # diffprivlib warns, and takes them from the data
        given["bounds"] = np.min(given["array"]), np.max(given["array"])
    facts = {
        "lower": given["bounds"][0],
        "upper": given["bounds"][1],
        "quant": float(given["quant"]),
    }
    value = np.sort(np.clip(np.ravel(given["array"]), *given["bounds"]))
    return _result("quantile", given["epsilon"], value, facts)


def _regression(given: dict[str, Any]) -> Reading:
    """Read coefficients of a noisy objective, whose value before noise is a function."""
    value = np.column_stack([given["X"], np.unique(given["y"], return_inverse=True)[1]])
    facts = {"data_norm": given["data_norm"], "rows": len(value)}
    return _result("LogisticRegression", given["epsilon"], value, facts)


def _result(name: str, epsilon: float, value: Any, facts: dict[str, Any]) -> Reading:
    own = kinds.Opaque(name, least_known(float(epsilon)))
    return Reading(
        name, own, 1.0, fingerprint(value), (float(epsilon), 0.0), facts | {"epsilon": epsilon}
    )


def _accounts(recorder: Recorder) -> Iterator[Patch]:
    """Patch accountants that the user can see; others, a model makes for itself."""
    inner = WeakSet[Any]()

    def born(original: Any) -> Any:
        def begin(own: Any, *given: Any, **options: Any) -> None:
            caller = sys._getframe(1)
            within = str(caller.f_globals.get("__name__", "")).startswith("diffprivlib")
            if within and caller.f_code.co_name != "load_default":
                inner.add(own)
            original(own, *given, **options)

        return begin

    def spend(original: Any, own: Any, epsilon: float, delta: float) -> Any:
        made = original(own, epsilon, delta)
        if own not in inner:
            recorder.charge(epsilon, delta)
            recorder.memory.setdefault(id(own), (own, []))[1].append((epsilon, delta))
            recorder.total_by(partial(_total, recorder.memory))
        return made

    yield Patch(accountant.BudgetAccountant, "__init__", born)
    spends = recorder.replacing(spend, within_draws=True)
    yield Patch(accountant.BudgetAccountant, "spend", spends)


def _total(spent: dict[int, tuple[Any, list[tuple[float, float]]]]) -> tuple[float, float]:
    """Return what accountants say of their charges, together."""
    epsilons, deltas = zip(*(own.total(paid) for own, paid in spent.values()), strict=True)
    return sum(epsilons), sum(deltas)


def _heard(recorder: Recorder, original: Any, own: Any, *given: Any) -> None:
    """Take it that a warning that is made is one that is given."""
    recorder.note_warning(type(own).__name__)
    original(own, *given)


ADAPTER = Diffprivlib()
