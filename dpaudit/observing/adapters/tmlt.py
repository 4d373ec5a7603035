"""Tumult Core and Analytics: where they draw noise, and what that noise is in a plan.

A measurement is a tree of transformations and noise, which says how far a value moves at each node.
Its noise is drawn by Spark in other processes; while it is observed, here, once for each query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql.types import StructField, StructType
from tmlt.core.measurements import noise_mechanisms, spark_measurements
from tmlt.core.measurements.interactive_measurements import PrivacyAccountant, SequentialQueryable

from dpaudit import mechanisms as kinds
from dpaudit.observing import Patch, Reading, Recorder
from dpaudit.observing.calls import fingerprint, least_known

_LAWS: dict[str, Callable[[Any], kinds.Mechanism]] = {
    "AddLaplaceNoise": lambda own: kinds.Laplace(_down(own.scale)),
    "AddGeometricNoise": lambda own: kinds.DiscreteLaplace(_down(own.alpha)),
    "AddGaussianNoise": lambda own: kinds.Gaussian(math.sqrt(_down(own.sigma_squared))),
    "AddDiscreteGaussianNoise": lambda own: kinds.DiscreteGaussian(
        math.sqrt(_down(own.sigma_squared))
    ),
}
_WHOLE = (
    "ApplyInPandas",
    "GeometricPartitionSelection",
    "SparseVectorPrefixSums",
    "BoundSelection",
)
"""Measurements of which Tumult alone says what they cost."""
_INNER = ("measurement", "pure_dp_measurement", "zcdp_measurement", "approx_dp_measurement")


class Tumult:
    """The adapter."""

    library = "tmlt-core"
    versions = ("0.18.", "0.19.")
    packages = ("tmlt", "pyspark", "py4j", "typeguard", "pandas")

    def patches(self, recorder: Recorder) -> Iterator[Patch]:
        """Patch noise on columns and numbers, other measurements as a whole, and charges."""
        for name in _LAWS:
            read = partial(_number, recorder, name)
            yield Patch(getattr(noise_mechanisms, name), "__call__", recorder.reading(read))
        noisy = spark_measurements.AddNoiseToColumn
        yield Patch(noisy, "call", recorder.replacing(partial(_column, recorder)))
        for name in filter(partial(hasattr, spark_measurements), _WHOLE):
            whole = recorder.replacing(partial(_whole, recorder, name))
            yield Patch(getattr(spark_measurements, name), "call", whole)
        measure = recorder.replacing(partial(_measured, recorder))
        yield Patch(PrivacyAccountant, "measure", measure)
        asked = recorder.replacing(partial(_asked, recorder), within_draws=True)
        yield Patch(SequentialQueryable, "__call__", asked)


def _down(exact: Any) -> float:
    return float(exact.to_float(round_up=False))


def _up(exact: Any) -> float:
    return float(exact.to_float(round_up=True))


def _measured(
    recorder: Recorder, original: Any, own: Any, measurement: Any, d_out: Any = None
) -> Any:
    """Return a query of a session, and what it may cost."""
    made = original(own, measurement, d_out)
    cost = measurement.privacy_function(own.d_in) if d_out is None else d_out
    if isinstance(cost, tuple):
        recorder.charge(_up(cost[0]), _up(cost[1]))
    elif type(own.output_measure).__name__ == "RhoZCDP":
        recorder.charge(0.0, 0.0, _up(cost))
    else:
        recorder.charge(_up(cost))
    return made


def _asked(recorder: Recorder, original: Any, own: Any, query: Any) -> Any:
    """Return a measurement of data of which it is known how far apart neighbours are."""
    if hasattr(query, "measurement"):
        _know(recorder, query.measurement, own._d_in)
    return original(own, query)


def _know(recorder: Recorder, node: Any, moved: Any) -> None:
    """Keep how far the value of a measurement and of all within it moves; None if not known."""
    recorder.memory[id(node)] = node, moved  # as long as it is held, its id is its own
    if hasattr(node, "transformation"):
        try:
            moved = None if moved is None else node.transformation.stability_function(moved)
        except NotImplementedError:  # it knows a relation alone
            moved = None
    for inner in (getattr(node, name, None) for name in _INNER):
        if inner is not None:
            _know(recorder, inner, moved)
    for inner in getattr(node, "measurements", ()):
        _know(recorder, inner, moved)


def _reading(recorder: Recorder, node: Any, noise: Any, value: Any) -> Reading:
    name = type(noise).__name__
    moved = recorder.memory.get(id(node), (None, None))[1]
    sensitivity = None if moved is None else _up(moved)
    return Reading(
        name, _LAWS[name](noise), sensitivity, value, facts={"law": str(_LAWS[name](noise))}
    )


def _number(recorder: Recorder, name: str, own: Any, value: Any) -> Reading | None:
    """Read noise on a number, where it is drawn by itself."""
    return None if own.adds_no_noise else _reading(recorder, own, own, np.asarray(value))


def _column(recorder: Recorder, original: Any, own: Any, val: Any) -> Any:
    """Release noise on a column: one release of all groups."""
    noise, name = own.measurement.noise_measurement, own.measure_column
    if noise.adds_no_noise:
        return original(own, val)
    keys = [each for each in val.columns if each != name]
    rows = sorted(val.collect(), key=lambda row: repr([row[key] for key in keys]))
    values = np.array([row[name] for row in rows])
    made = recorder.release(
        _reading(recorder, own, noise, values),
        lambda: np.array([noise(each) for each in values]),
    )
    fields = [
        StructField(each.name, noise.output_type if each.name == name else each.dataType)
        for each in val.schema
    ]
    drawn = [
        tuple(noisy if key == name else row[key] for key in val.columns)
        for row, noisy in zip(rows, made.tolist(), strict=True)
    ]
    return val.sparkSession.createDataFrame(drawn, StructType(fields))


def _whole(recorder: Recorder, name: str, original: Any, own: Any, val: Any) -> Any:
    """Give a measurement whose rows alone are a release; Spark would draw them again and again."""
    moved = recorder.memory.get(id(own), (None, None))[1]
    cost = (math.inf,) if moved is None else own.privacy_function(moved)
    parts = cost if isinstance(cost, tuple) else (cost,)
    epsilon, *delta = (each if isinstance(each, float) else _up(each) for each in parts)
    mechanism = kinds.Opaque(name, least_known(epsilon), delta[0] if delta else 0.0)
    frame = getattr(val, "_dataframe", val)
    value = fingerprint(sorted(repr(row) for row in frame.collect()))
    schema: list[Any] = []

    def draw() -> Any:
        made = original(own, val)
        schema.append(made.schema)
        return sorted((tuple(row) for row in made.collect()), key=repr)

    rows = recorder.release(Reading(name, mechanism, 1.0, value), draw)
    return frame.sparkSession.createDataFrame(rows, schema[0])


ADAPTER = Tumult()
