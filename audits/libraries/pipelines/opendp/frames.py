"""What others have found wrong in OpenDP's queries of Polars frames, as they describe it."""

from __future__ import annotations

import math
from functools import cache

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
BIG = 1e38
NUMBER = dp.atom_domain(T=float, nan=False)


def optional(*names, kind=float):
    """A frame of 16 rows whose number is public, in which anything may be missing."""
    columns = [dp.series_domain(name, dp.option_domain(dp.atom_domain(T=kind))) for name in names]
    margin = dp.polars.Margin(max_length=16, invariant="lengths")
    return dp.with_margin(dp.lazyframe_domain(columns), margin)


def released(domain, query, metric, measure=None, scale=None):
    """The measurement that a query makes."""
    measure = dp.max_divergence() if measure is None else measure
    return dp.m.make_private_lazyframe(domain, metric, measure, query, global_scale=scale)


def counted(frame, domain, values):
    """A count of a column that is taken to miss nothing."""
    query = frame.select(values.count().dp.noise())
    made = released(domain, query, dp.frame_distance(dp.symmetric_distance()), scale=1.0)
    return int(made(frame).collect().item())


def cast(values):
    """Of numbers that are cast to integers; None stands for what is no number."""
    frame = pl.LazyFrame({"x": [math.nan if each is None else each for each in values]})
    return counted(frame, optional("x"), pl.col("x").fill_null(0.0).cast(pl.Int64, strict=False))


def cut(values):
    """Of numbers that are cut into classes."""
    frame = pl.LazyFrame({"x": [math.nan if each is None else each for each in values]})
    return counted(frame, optional("x"), pl.col("x").fill_null(0.0).cut([1.5]))


def remainder(divisors):
    """Of remainders."""
    frame = pl.LazyFrame({"n": list(range(16)), "m": divisors})
    both = pl.col("n").fill_null(0) % pl.col("m").fill_null(0)
    return counted(frame, optional("n", "m", kind="i64"), both)


@cache
def _short():
    clipped = pl.col("x").cast(pl.Float32).fill_nan(0.0).clip(-BIG, BIG)
    query = pl.LazyFrame(schema={"x": pl.Float64}).select(clipped.sum().dp.noise(scale=BIG))
    domain = dp.with_margin(
        dp.lazyframe_domain([dp.series_domain("x", NUMBER)]), dp.polars.Margin(max_length=11)
    )
    return released(domain, query, dp.frame_distance(dp.symmetric_distance()))


def short_floats(signs):
    """A sum of large numbers as floats of 32 bits; they come as their signs."""
    return float(_short()(pl.LazyFrame({"x": [BIG * sign for sign in signs]})).collect().item())


@cache
def _codes():
    coded = pl.col("x").cut([1.0]).to_physical().dp.sum((0, 1), scale=1.0)
    domain = dp.with_margin(
        dp.lazyframe_domain([dp.series_domain("x", NUMBER)]), dp.polars.Margin(max_length=101)
    )
    query = pl.LazyFrame(schema={"x": pl.Float64}).select(coded)
    return released(domain, query, dp.frame_distance(dp.symmetric_distance()))


def codes(values):
    """A sum of the codes of classes."""
    return int(_codes()(pl.LazyFrame({"x": values}, schema={"x": pl.Float64})).collect().item())


@cache
def _grouped():
    schema = {"A": pl.String, "B": pl.Int32}
    query = pl.LazyFrame(schema=schema).group_by("A").agg(pl.col("B").dp.sum((-10, 10), scale=30.0))
    columns = [dp.series_domain("A", dp.atom_domain(T=str))]
    columns.append(dp.series_domain("B", dp.atom_domain(T="i32")))
    margin = dp.polars.Margin(by=["A"], max_length=3, max_groups=1, invariant="keys")
    domain = dp.with_margin(dp.lazyframe_domain(columns), margin)
    return released(domain, query, dp.symmetric_distance())


def group(values):
    """The sum of a group of at most three rows."""
    schema = {"A": pl.String, "B": pl.Int32}
    frame = pl.LazyFrame({"A": ["a"] * len(values), "B": values}, schema=schema)
    return int(_grouped()(frame).collect()["B"].item())
