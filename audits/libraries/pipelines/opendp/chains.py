"""Measurements made of a domain, a transformation and noise, as OpenDP's documentation does."""

from __future__ import annotations

import opendp.prelude as dp

dp.enable_features("contrib")
ROWS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
WHOLE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def ages(rows):
    """The column that most of them ask."""
    return [int(row["age"]) for row in rows]


def count(rows):
    """How many rows there are, with discrete Laplace noise."""
    return int((WHOLE >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0))(ages(rows)))


def total(rows):
    """The sum of ages between 0 and 100."""
    clamped = WHOLE >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum()
    return int((clamped >> dp.m.then_laplace(scale=100.0))(ages(rows)))
