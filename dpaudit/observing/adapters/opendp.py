"""OpenDP: what its measurements are in a plan.

A measurement says how it was made: what stands before its noise gives the value and, by its map,
the sensitivity. Where the map of the noise states no more, the plan has the mechanism itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from opendp import core
from opendp.mod import OpenDPException

from dpaudit import mechanisms as kinds
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.observing import Patch, Reading, Recorder
from dpaudit.observing.calls import fingerprint, least_known
from dpaudit.plan import AddRemove, Relation, ReplaceOne

Call = Callable[[Any, Any], Any]
Stated = tuple[float, float, float | None]
_UNSAID: Stated = (math.inf, 0.0, None)
_NEAR = 1e-9
_REAL = re.compile(r"\bf(32|64)\b")
_INTERACTIVE = ("make_adaptive_composition", "make_sequential_composition")
_NOISE: dict[str, tuple[type[Any], type[Any]]] = {
    "make_laplace": (kinds.Laplace, kinds.DiscreteLaplace),
    "make_geometric": (kinds.Laplace, kinds.DiscreteLaplace),
    "make_gaussian": (kinds.Gaussian, kinds.DiscreteGaussian),
}
"""Of floats and of integers."""


class OpenDP:
    """The adapter."""

    library = "opendp"
    versions = ("0.16.",)
    packages = ("opendp",)

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Patch what calls of measurements and queries of interactive ones go through."""
        yield Patch(core, "measurement_invoke", recorder.replacing(partial(_invoked, recorder)))
        yield Patch(core, "queryable_eval", recorder.replacing(partial(_answered, recorder)))
        yield Patch(core, "odometer_invoke", lambda _: _refused)


def _refused(*_: Any) -> Any:
    raise UnsupportedError("an odometer of opendp cannot be observed yet; use a compositor.")


def _made(part: Any) -> tuple[str, dict[str, Any]]:
    """Tell how it was constructed, and from what."""
    how = getattr(part, "__opendp_dict__", {})
    return str(how.get("__function__", "measurement")), dict(how.get("__kwargs__", {}))


def _invoked(recorder: Recorder, original: Call, measurement: Any, arg: Any) -> Any:
    name, parts = _made(measurement)
    if name in _INTERACTIVE and (stated := _stated_relation(measurement)) is not None:
        recorder.state_relation(stated)
    if _stated_relation(measurement) is not None and _REAL.search(str(measurement.input_domain)):
        recorder.state_nan("nan=true" in str(measurement.input_domain), "the domain in OpenDP")
    near = recorder.once(_steps, measurement, recorder.relation)
    if name in _INTERACTIVE:  # its queries are what it costs
        made, near = _held(recorder, original(measurement, arg), arg, near, parts["d_in"])
    else:
        made = _released(recorder, original, measurement, arg, near)
    epsilon, delta, rho = recorder.once(_stated, measurement, near)
    if epsilon < math.inf:
        recorder.charge(epsilon, delta, rho or 0.0)
    elif near is not None:
        recorder.tell("charges-nothing", relation=recorder.relation, steps=near)
    return made


def _stated_relation(own: Any) -> Relation | None:
    """Return which data sets a unit of privacy means by neighbours; None where it is of numbers."""
    kinds = ("SymmetricDistance", "InsertDeleteDistance"), ("ChangeOneDistance", "HammingDistance")
    relations = AddRemove(), ReplaceOne()
    name = str(own.input_metric)
    fitting = (each for each, kind in zip(relations, kinds, strict=True) if name.startswith(kind))
    return next(fitting, None)


def _held(recorder: Recorder, made: Any, arg: Any, near: Any, least: Any) -> tuple[Any, Any]:
    """Keep of a queryable what data it holds, and how far apart neighbours are."""
    near = None if near is None else max(near, least)
    recorder.memory[id(made.value)] = (made.value, arg, near)
    return made, near


def _answered(recorder: Recorder, original: Call, queryable: Any, query: Any) -> Any:
    """Return a query of a queryable that holds data is a release of these."""
    if id(queryable) not in recorder.memory:
        return original(queryable, query)
    _, arg, near = recorder.memory[id(queryable)]
    before, last, moved = _chain(query, near)
    for each in before:
        arg = each(arg)
    name, parts = _made(last)
    if name in _INTERACTIVE:
        return _held(recorder, original(queryable, query), arg, moved, parts["d_in"])[0]
    draw = partial(original, queryable, query)
    return recorder.release(_read(recorder, last, arg, moved), draw)


def _chain(own: Any, moved: Any) -> tuple[list[Any], Any, Any]:
    """Take apart what is before the noise, the rest, and how far the value moves."""
    before = []
    name, parts = _made(own)
    while name == "make_chain_mt":
        before.append(parts["transformation0"])
        moved = None if moved is None else before[-1].map(moved)
        own = parts["measurement1"]
        name, parts = _made(own)
    return before, own, moved


def _released(recorder: Recorder, original: Call, own: Any, arg: Any, moved: Any) -> Any:
    """Return what a measurement releases; only its noise is a draw."""
    before, own, moved = recorder.once(_chain, own, moved)
    for each in before:
        arg = each(arg)
    name, parts = _made(own)
    if name == "make_chain_pm":
        inner = _released(recorder, original, parts["measurement0"], arg, moved)
        return parts["postprocess1"](inner)
    return recorder.release(_read(recorder, own, arg, moved), partial(original, own, arg))


def _steps(own: Any, relation: Relation) -> Any:
    """Tell how far neighbours are apart for a measurement; None where it takes numbers."""
    name = str(own.input_metric)
    if name.startswith(("SymmetricDistance", "InsertDeleteDistance")):
        return 2 if relation.replaces else 1
    if name.startswith(("ChangeOneDistance", "HammingDistance")) and not relation.replaces:
        said = "is about rows that change; state the relation"
        raise InputError(f"a measurement takes {name}, which {said} {ReplaceOne()}.")
    return 1 if name.startswith(("Change", "Hamming", "DiscreteDistance")) else None


def _read(recorder: Recorder, own: Any, arg: Any, moved: Any) -> Reading:
    answers = _made(own)[1].get("categories")
    if answers is not None:  # of what is none of them it gives any
        arg = list(answers).index(arg) if arg in answers else 0
    value: Any = None
    if isinstance(arg, bool | int | float | list | np.ndarray):
        value = np.array(arg)
    kind = "" if value is None or value.dtype.kind not in "biuf" else value.dtype.kind
    known: Reading = recorder.once(_law, own, (kind, moved))
    if isinstance(known.mechanism, kinds.Opaque) or value is None:
        value = fingerprint(arg if value is None else value)
    return replace(known, value=value)


def _law(own: Any, about: tuple[str, Any]) -> Reading:
    """Return what a measurement draws for numbers of a kind that move so far."""
    (kind, moved), (name, parts) = about, _made(own)
    facts = {key: each for key, each in parts.items() if isinstance(each, bool | int | float)}
    found = _mechanism(name, parts, kind) if kind else None
    (epsilon, delta, rho), name = _stated(own, moved), name.removeprefix("make_")
    if found is None or not (moved is None or _same(found, moved, (epsilon, delta, rho))):
        if rho is not None:  # (ε, δ) of ρ: Bun and Steinke 2016, Proposition 1.3
            epsilon, delta = rho + 2 * math.sqrt(rho * math.log(1e9)), 1e-9
        mechanism = kinds.Opaque(name, least_known(epsilon), delta)
        return Reading(name, mechanism, 1.0, 0.0, (epsilon, delta), facts)
    moved = 1.0 if found.norm is kinds.Norm.CHANGE else moved
    cost, far = (epsilon, delta) if rho is None else None, None if moved is None else float(moved)
    answers = parts.get("categories")
    return Reading(name, found, far, 0.0, cost, facts, answers=answers and tuple(answers))


def _mechanism(name: str, parts: dict[str, Any], number: str) -> kinds.Mechanism | None:
    if name.startswith("make_randomized_response"):  # of answers, or of bools
        k = len(parts.get("categories", "??"))
        return kinds.RandomizedResponse((1 - parts["prob"]) * k / (k - 1), k)
    real, whole = _NOISE.get(name, (None, None))
    kind = whole if number in "iu" else real
    return None if kind is None or not parts.get("scale") else kind(parts["scale"])


def _stated(own: Any, moved: Any) -> Stated:
    """Return ε and δ of the map, or ρ where it speaks of that; infinite if not asked."""
    if moved is None:
        return _UNSAID
    try:
        lost = own.map(moved)
    except OpenDPException:  # it speaks of nearer data sets only
        return _UNSAID
    if str(own.output_measure).startswith("ZeroConcentrated"):
        return 0.0, 0.0, float(lost)
    epsilon, delta = lost if isinstance(lost, tuple) else (lost, 0.0)
    return (float(epsilon), float(delta), None) if isinstance(epsilon, int | float) else _UNSAID


def _same(found: kinds.Mechanism, moved: Any, stated: Stated) -> bool:
    """Tell whether the map states no more than the mechanism costs."""
    if isinstance(found, kinds.RandomizedResponse):
        return stated[0] <= float(found.pair(1.0).pure_epsilon) * (1 + _NEAR)
    if isinstance(found, kinds.Gaussian | kinds.DiscreteGaussian):
        return bool((stated[2] or math.inf) <= (moved / found.sigma) ** 2 / 2 * (1 + _NEAR))
    return bool(stated[0] <= moved / getattr(found, "scale", math.inf) * (1 + _NEAR))


ADAPTER = OpenDP()
