"""OpenDP: what its measurements are in a plan.

A measurement says how it was made. Chains are taken apart: what stands before the noise gives the
private value, and its map the sensitivity. Where the map of the noise is the mechanism's own, the
plan has the mechanism, with its whole curve; else what the map states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from opendp import core
from opendp.mod import Measurement, OpenDPException

from dpaudit.errors import InputError, UnsupportedError
from dpaudit.integrations.observing import Patch, Reading, Recorder
from dpaudit.integrations.observing.calls import least_known
from dpaudit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Mechanism,
    Opaque,
    RandomizedResponse,
)
from dpaudit.plan import Relation, ReplaceOne

Call = Callable[[Any, Any], Any]
_NEAR = 1e-9
_INTERACTIVE = ("make_adaptive_composition", "make_sequential_composition")
_NOISE: dict[str, tuple[type[Any], type[Any], str]] = {
    "make_laplace": (Laplace, DiscreteLaplace, "scale"),
    "make_geometric": (Laplace, DiscreteLaplace, "scale"),
    "make_gaussian": (Gaussian, DiscreteGaussian, "scale"),
}
"""Of floats and of integers, and the parameter that says how much."""


class OpenDP:
    """The adapter."""

    library = "opendp"
    versions = ("0.12.", "0.13.", "0.14.", "0.15.", "0.16.")
    packages = ("opendp",)

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """What every call of a measurement goes through, and every query of an interactive one."""
        yield Patch(core, "measurement_invoke", lambda own: _invoked(recorder, own))
        yield Patch(core, "queryable_eval", lambda own: _answered(recorder, own))
        yield Patch(core, "odometer_invoke", lambda _: _refused)


def _refused(*_: Any) -> Any:
    raise UnsupportedError("an odometer of opendp cannot be observed yet; use a compositor.")


def _made(part: Any) -> tuple[str, dict[str, Any]]:
    """How it was constructed, and from what."""
    how = getattr(part, "__opendp_dict__", {})
    return str(how.get("__function__", "measurement")), dict(how.get("__kwargs__", {}))


def _invoked(recorder: Recorder, original: Call) -> Call:
    def invoke(measurement: Any, arg: Any) -> Any:
        if recorder.quiet:
            return original(measurement, arg)
        name, parts = _made(measurement)
        near = _steps(measurement.input_metric, recorder.relation)
        if name in _INTERACTIVE:  # its queries are what it costs
            near = None if near is None else max(near, parts["d_in"])
            made = original(measurement, arg)
            recorder.memory[id(made.value)] = (made.value, arg, near)
        else:
            made = _released(recorder, original, measurement, arg, near)
        _charge(recorder, measurement, near)
        return made

    return invoke


def _answered(recorder: Recorder, original: Call) -> Call:
    """A query of a queryable that holds data is a release of these."""

    def evaluate(queryable: Any, query: Any) -> Any:
        if recorder.quiet or id(queryable) not in recorder.memory:
            return original(queryable, query)
        _, arg, near = recorder.memory[id(queryable)]
        reading = _read(*_last(query, arg, near))
        return recorder.release(reading, lambda: original(queryable, query))

    return evaluate


def _last(own: Any, arg: Any, moved: Any) -> tuple[Any, Any, Any]:
    """The noise of a chain, its value and how far that moves; the whole, where more follows."""
    name, parts = _made(own)
    if name != "make_chain_mt":
        return own, arg, moved
    before = parts["transformation0"]
    further = None if moved is None else before.map(moved)
    return _last(parts["measurement1"], before(arg), further)


def _released(recorder: Recorder, original: Call, own: Any, arg: Any, moved: Any) -> Any:
    """What a measurement releases; only its noise is a draw."""
    own, arg, moved = _last(own, arg, moved)
    name, parts = _made(own)
    if name == "make_chain_pm":
        inner = _released(recorder, original, parts["measurement0"], arg, moved)
        return parts["postprocess1"](inner)
    return recorder.release(_read(own, arg, moved), lambda: original(own, arg))


def _steps(metric: Any, relation: Relation) -> Any:
    """How far neighbours are apart in a metric of data sets; None in one of numbers."""
    name = str(metric)
    if name.startswith(("SymmetricDistance", "InsertDeleteDistance")):
        return 2 if relation.replaces else 1
    if name.startswith(("ChangeOneDistance", "HammingDistance")):
        if not relation.replaces:
            raise InputError(
                f"a measurement takes {name}, which speaks of rows that change; state the relation "
                f"{ReplaceOne()}."
            )
        return 1
    return 1 if name.startswith("DiscreteDistance") else None


def _read(own: Any, arg: Any, moved: Any) -> Reading:
    name, parts = _made(own)
    value = np.asarray(arg) if _numeric(arg) else np.zeros(())
    facts = {key: each for key, each in parts.items() if isinstance(each, bool | int | float)}
    found = _mechanism(name, parts, arg)
    stated = _stated(own, moved)
    own_name = name.removeprefix("make_")
    if found is None or (moved is not None and not _same(found, moved, stated)):
        epsilon, delta, rho = stated
        if rho is not None:  # no black box here is stated as one
            epsilon, delta = _as_approximate(rho)
        mechanism = Opaque(own_name, least_known(epsilon), delta)
        return Reading(own_name, mechanism, 1.0, value, (epsilon, delta), facts)
    cost = (stated[0], stated[1]) if stated[2] is None else None
    if isinstance(found, RandomizedResponse):
        return Reading(own_name, found, 1.0, _answer(parts, arg), cost, facts)
    sensitivity = None if moved is None else float(moved)
    return Reading(own_name, found, sensitivity, value, cost, facts)


def _mechanism(name: str, parts: dict[str, Any], arg: Any) -> Mechanism | None:
    if name == "make_randomized_response_bool":
        return RandomizedResponse(2 * (1 - parts["prob"]))
    if name == "make_randomized_response":
        k = len(parts["categories"])
        return RandomizedResponse((1 - parts["prob"]) * k / (k - 1), k)
    if name not in _NOISE or not _numeric(arg):
        return None
    real, whole, field = _NOISE[name]
    kind = whole if np.asarray(arg).dtype.kind in "iu" else real
    return kind(parts[field]) if parts.get(field) else None


def _numeric(arg: Any) -> bool:
    numbers = [arg] if isinstance(arg, bool | int | float) else arg
    return isinstance(numbers, list | np.ndarray) and all(
        isinstance(each, bool | int | float | np.number) for each in numbers
    )


def _answer(parts: dict[str, Any], arg: Any) -> float:
    categories = parts.get("categories")
    return float(arg) if categories is None else float(list(categories).index(arg))


def _stated(own: Any, moved: Any) -> tuple[float, float, float | None]:
    """ε and δ of the map, or ρ where it speaks of that; infinite where nothing was asked."""
    if moved is None:
        return math.inf, 0.0, None
    try:
        lost, measure = own.map(moved), str(own.output_measure)
    except OpenDPException:  # it speaks of nearer data sets only
        return math.inf, 0.0, None
    if measure.startswith("ZeroConcentrated"):
        return 0.0, 0.0, float(lost)
    if isinstance(lost, tuple):
        return float(lost[0]), float(lost[1]), None
    return (float(lost), 0.0, None) if isinstance(lost, int | float) else (math.inf, 0.0, None)


def _same(found: Mechanism, moved: Any, stated: tuple[float, float, float | None]) -> bool:
    """Whether the map states no more than the mechanism costs."""
    if isinstance(found, RandomizedResponse):
        return stated[0] <= float(found.pair(1.0).pure_epsilon) * (1 + _NEAR)
    if isinstance(found, Gaussian | DiscreteGaussian):
        rho = (float(moved) / found.sigma) ** 2 / 2
        return stated[2] is not None and stated[2] <= rho * (1 + _NEAR)
    scale = float(getattr(found, "scale", math.inf))
    return stated[0] <= float(moved) / scale * (1 + _NEAR)


def _as_approximate(rho: float, delta: float = 1e-9) -> tuple[float, float]:
    """(ε, δ) of ρ-zCDP (Bun and Steinke 2016, Proposition 1.3)."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta)), delta


def _charge(recorder: Recorder, measurement: Measurement, near: Any) -> None:
    """What the map of a whole measurement states, if it is one of data sets."""
    epsilon, delta, rho = _stated(measurement, near)
    if epsilon < math.inf:
        recorder.charged(epsilon, delta, rho or 0.0)


ADAPTER = OpenDP()
