"""diffprivlib: where it draws noise, and what that noise is in a plan.

Every draw is a ``randomise`` of a mechanism; truncation and folding come after it, and cost nothing.
Noise that scales with the value is told in units of the sensitivity, which diffprivlib often takes
from the number of rows: a plan then stays the same for other data, and a rehearsal sees it where
that number is not public.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from diffprivlib import accountant, mechanisms
from diffprivlib.tools import quantiles
from diffprivlib.utils import PrivacyLeakWarning

from dpaudit.integrations.observing import Patch, Reading, Recorder
from dpaudit.integrations.observing.calls import in_units
from dpaudit.integrations.observing.recorder import reading_now
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Opaque,
    PermuteAndFlip,
    RandomizedResponse,
    Staircase,
    StatedNoise,
    TruncatedLaplace,
)

Read = Callable[[Any, Any, str, dict[str, Any]], Reading]
_PRIVATE = frozenset({"utility", "candidates", "measure", "utility_list", "random_state"})


def _facts(own: Any) -> dict[str, Any]:
    """The parameters that a mechanism was made with, as one shows itself."""
    names = type(own).__init__.__kwdefaults__ or {}
    code = type(own).__init__.__code__
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    kept = dict.fromkeys((*keyword, *names))
    found = {name: getattr(own, name, None) for name in kept if name not in _PRIVATE}
    numbers = bool | int | float | np.generic
    return {name: each for name, each in found.items() if isinstance(each, numbers)}


def _cost(own: Any) -> tuple[float, float]:
    return float(own.epsilon), float(own.delta)


def _stated(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
    """Noise on a number or a matrix that only the library speaks for."""
    epsilon, delta = _cost(own)
    mechanism = StatedNoise(name, min(epsilon, 1e9), delta)
    made = Reading(name, mechanism, float(own.sensitivity), value, (epsilon, delta), facts)
    return in_units(made)


def _opaque(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
    """A release of which every change costs what the library states."""
    epsilon, delta = _cost(own)
    return Reading(name, Opaque(name, min(epsilon, 1e9), delta), 1.0, value, (epsilon, delta), facts)


def _additive(kind: Any, field: str, scale_of: Callable[[Any], float]) -> Read:
    def read(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
        scale, sensitivity = float(scale_of(own)), float(own.sensitivity)
        if not 0 < scale < math.inf or not sensitivity:
            return _stated(own, value, name, facts)
        made = Reading(name, kind(scale), sensitivity, value, _cost(own), facts)
        return in_units(made, **{field: scale}) if kind in (Laplace, Gaussian) else made

    return read


def _staircase(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
    if not own.sensitivity or not 0 < own.epsilon < math.inf or not 0 < own.gamma < 1:
        return _stated(own, value, name, facts)
    width = float(own.sensitivity)
    mechanism = Staircase(own.epsilon, width, own.gamma)
    return in_units(Reading(name, mechanism, width, value, _cost(own), facts), width=width)


def _bounded_noise(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
    epsilon, delta = _cost(own)
    scale = own.sensitivity / epsilon
    bound = scale * np.log(1 + (np.exp(epsilon) - 1) / 2 / delta)
    if not 0 < scale < math.inf or not math.isfinite(bound):
        return _stated(own, value, name, facts)
    mechanism = TruncatedLaplace(float(scale), float(bound))
    made = Reading(name, mechanism, float(own.sensitivity), value, (epsilon, delta), facts)
    return in_units(made, scale=float(scale), bound=float(bound))


def _choice(kind: Any) -> Read:
    """Of utilities; with a measure of the candidates only the library speaks for it."""

    def read(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
        utility = np.asarray(own.utility, dtype=np.float64)
        plain = 0 < own.epsilon < math.inf and own.sensitivity and own.measure is None
        if not plain or (own.monotonic and kind is not PermuteAndFlip):
            return _opaque(own, utility, name, facts)
        more = {"monotonic": True} if own.monotonic else {}
        mechanism = kind(own.epsilon, own.sensitivity, **more)
        return Reading(name, mechanism, 1.0, utility, _cost(own), facts)

    return read


def _binary(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
    answer = float(value != own.value0)
    if not 0 < own.epsilon < math.inf:
        return _opaque(own, answer, name, facts)
    return Reading(
        name, RandomizedResponse.calibrated(epsilon=own.epsilon), 1.0, answer, _cost(own), facts
    )


def _category(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
    return _opaque(own, sorted(own._domain_values).index(value), name, facts)


def _unseen(own: Any, value: Any, name: str, facts: dict[str, Any]) -> Reading:
    """A function, which has no value to compare."""
    return _opaque(own, 0.0, name, facts)


_READERS: dict[str, Read] = {
    "Laplace": _additive(Laplace, "scale", lambda own: own.sensitivity / (own.epsilon - np.log(1 - own.delta))),
    "LaplaceBoundedDomain": _stated,
    "LaplaceBoundedNoise": _bounded_noise,
    "Gaussian": _additive(Gaussian, "sigma", lambda own: own._scale),
    "GaussianDiscrete": _additive(DiscreteGaussian, "sigma", lambda own: own._scale),
    "Geometric": _additive(DiscreteLaplace, "scale", lambda own: own.sensitivity / own.epsilon),
    "Staircase": _staircase,
    "Snapping": _stated,
    "Uniform": _stated,
    "Bingham": _opaque,
    "Exponential": _choice(ExponentialMechanism),
    "PermuteAndFlip": _choice(PermuteAndFlip),
    "ExponentialCategorical": _category,
    "Binary": _binary,
    "Vector": _unseen,
}
"""By the class that defines ``randomise``; its subclasses truncate, fold or calibrate otherwise."""


class Diffprivlib:
    """The adapter."""

    library = "diffprivlib"
    versions = ("0.6.",)
    packages = ("diffprivlib", "sklearn", "numpy", "scipy", "joblib", "pandas")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Draws of mechanisms, quantiles as a whole, charges and warnings."""
        for name, read in _READERS.items():
            yield Patch(getattr(mechanisms, name), "randomise", _drawn(recorder, read))
        yield Patch(quantiles, "quantile", _quantile(recorder))
        yield Patch(sys.modules["diffprivlib.tools"], "quantile", _quantile(recorder))
        yield from _accounts(recorder)
        yield Patch(warnings, "warn", _heard(recorder))


def _drawn(recorder: Recorder, read: Read) -> Callable[[Any], Any]:
    def made(original: Any) -> Any:
        def randomise(own: Any, value: Any = None) -> Any:
            given = () if value is None else (value,)
            if reading_now():
                return original(own, *given)
            reading = read(own, value, type(own).__name__, _facts(own))
            return recorder.release(reading, lambda: original(own, *given))

        return randomise

    return made


def _quantile(recorder: Recorder) -> Callable[[Any], Any]:
    """One quantile is one release: the index that its mechanism chooses points into the data."""

    def made(original: Any) -> Any:
        def quantile(array: Any, quant: Any, epsilon: Any = 1.0, **options: Any) -> Any:
            several = np.size(quant) > 1 or options.get("axis") is not None
            if several or options.get("keepdims") or options.get("bounds") is None or reading_now():
                return original(array, quant, epsilon, **options)
            lower, upper = options["bounds"]
            cost = (float(epsilon), 0.0)
            facts = {"epsilon": epsilon, "lower": lower, "upper": upper, "quantile": float(np.ravel(quant)[0])}
            value = np.sort(np.clip(np.ravel(array), lower, upper))
            reading = Reading("quantile", Opaque("quantile", *cost), 1.0, value, cost, facts)
            return recorder.release(reading, lambda: original(array, quant, epsilon, **options))

        return quantile

    return made


def _accounts(recorder: Recorder) -> Iterator[Patch]:
    """What accountants are charged that the user can see; others, a model makes for itself."""
    Budgets, inner = accountant.BudgetAccountant, set[int]()
    spent: dict[int, tuple[Any, list[tuple[float, float]]]] = {}

    def born(original: Any) -> Any:
        def begin(own: Any, *given: Any, **options: Any) -> None:
            caller = sys._getframe(1)
            name = str(caller.f_globals.get("__name__", ""))
            if name.startswith("diffprivlib") and caller.f_code.co_name != "load_default":
                inner.add(id(own))
            else:
                inner.discard(id(own))
            original(own, *given, **options)

        return begin

    def spend(original: Any) -> Any:
        def spends(own: Any, epsilon: float, delta: float) -> Any:
            made = original(own, epsilon, delta)
            if id(own) not in inner:
                recorder.charged(epsilon, delta)
                charges = spent.setdefault(id(own), (own, []))[1]
                charges.append((epsilon, delta))
                totals = [each.total(spent_budget=paid) for each, paid in spent.values()]
                recorder.totalled(sum(t[0] for t in totals), sum(t[1] for t in totals))
            return made

        return spends

    yield Patch(Budgets, "__init__", born)
    yield Patch(Budgets, "spend", spend)


def _heard(recorder: Recorder) -> Callable[[Any], Any]:
    def made(original: Any) -> Any:
        def warn(message: Any, category: Any = None, *given: Any, **options: Any) -> None:
            if isinstance(category, type) and issubclass(category, PrivacyLeakWarning):
                recorder.warned(category.__name__)
            original(message, category, *given, **options)

        return warn

    return made


ADAPTER = Diffprivlib()
