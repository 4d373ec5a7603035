"""Private rows with outputs: the grid, the properties and the loans of Kharkovskii et al. 2020."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, NonNegative
from private_bo.base import data_named
from private_bo.gp.types import Array, Indices, array_of
from private_bo.outsourced.modeller import Hyperparameters
from private_bo.problems import recorded_sales
from private_bo.problems.sources import data_file

NORM = 25.0
"""Largest norm of the rows in every experiment of the paper."""

_LOAN_COLUMNS = ("funded_amnt_inv", "int_rate", "annual_inc", "total_pymnt_inv")
_DISTRICT = ((121.47, 24.93), (121.57, 25.02))  # longitude and latitude of Sindian
# Lent up to 35 000, at 5 % to 25 %, to incomes from 3000 to a million.
_LOAN_RANGES = (
    (0.0, 0.25, math.log(3e3) / math.log(100)),
    (1.0, 1.25, math.log(1e6) / math.log(100)),
)
_LEAST_RETURN = 0.05  # public floor of payments over funds, so that the logarithm is finite


@dataclass(frozen=True, eq=False)
class OutsourcedProblem(Checked):
    """Private rows, and a function of them to be maximised.

    Attributes:
        name: what the problem is called in reports.
        rows: X (n, d), private, read-only.
        f: true output of each row (n,), read-only.
        noise_variance: σ_n² of a measurement.
        hyperparameters: of f's GP, if they are public; None to learn them from what is released.

    Raises:
        InputError: if the shapes do not match or a value is not finite.
    """

    name: str
    rows: Annotated[Array, array_of("n", "d")] = field(repr=False)
    f: Annotated[Array, array_of("n")] = field(repr=False)
    noise_variance: NonNegative = 1e-5
    hyperparameters: Hyperparameters | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.f) != len(self.rows):
            raise InputError(
                f"f has shape {self.f.shape}; it must have one output for each of "
                f"{len(self.rows)} rows."
            )

    @property
    def size(self) -> int:
        """n, the number of rows."""
        return int(self.f.size)

    def measure(self, row: int, rng: np.random.Generator) -> float:
        """One noisy measurement of a row's output."""
        return float(self.f[row] + math.sqrt(self.noise_variance) * rng.standard_normal())

    def regret(self, rows: Sequence[int] | Indices) -> Array:
        """Simple regret S_t = min over s <= t of f(x*) - f(x_s) after every query, (T,)."""
        chosen = np.asarray(rows, dtype=np.intp)
        return np.asarray(self.f.max() - np.maximum.accumulate(self.f[chosen]))


def to_norm(rows: Array, norm: float = NORM) -> Array:
    """Centre the columns, then scale all rows to a largest norm, as the paper does.

    Both steps use statistics of the rows themselves. (The other order halves σ_min.)
    """
    middle = rows - rows.mean(axis=0)
    largest = float(np.sqrt(np.einsum("ij,ij->i", middle, middle)).max())
    if largest == 0.0:
        raise InputError("rows are all equal; at least two must differ.")
    return np.asarray(middle * (norm / largest))


def grid_rows(per_axis: int = 100) -> Array:
    """The uniform grid of the synthetic experiment, centred and scaled: (per_axis², 2)."""
    axis = np.arange(validate.integer_at_least(2, per_axis=per_axis), dtype=np.float64)
    return to_norm(np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2))


def grid_problem(
    rng: np.random.Generator, *, per_axis: int = 100, length_scale: float = 5.0
) -> OutsourcedProblem:
    """A function drawn from the SE Gaussian process on the grid; rows are public in truth.

    Drawn through the Kronecker factors of the covariance, in O(per_axis³).

    Args:
        rng: draws the function.
        per_axis: grid points of each coordinate.
        length_scale: in units of norm 25. (The printed 1.25 does not reproduce the tables.)
    """
    rows = grid_rows(per_axis)
    axis = rows[:per_axis, 1]
    gram = np.exp(-0.5 * np.square(np.subtract.outer(axis, axis) / length_scale))
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    f = root @ rng.standard_normal((per_axis, per_axis)) @ root.T
    return OutsourcedProblem("grid", rows, f.ravel(), 1e-5, Hyperparameters(length_scale))


def in_public_box(rows: Array, lower: Sequence[float], upper: Sequence[float]) -> Array:
    """Clip rows into a public box, then centre and scale the box itself to a radius of 25.

    Every row ends within norm 25, and nothing depends on the rows of others.

    >>> in_public_box(np.array([[3.0, 4.0], [9.0, 4.0]]), (-3.0, -4.0), (3.0, 4.0)).tolist()
    [[15.0, 20.0], [15.0, 20.0]]
    """
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    radius = float(np.linalg.norm(high - low)) / 2.0
    return np.asarray((np.clip(rows, low, high) - (low + high) / 2.0) * (NORM / radius))


def properties(*, public_scale: bool = False) -> OutsourcedProblem:
    """The cheapest of 414 properties in Taipei, by longitude and latitude (Yeh 2018, CC BY 4.0).

    f = -ln(price) in standard deviations. It stands in for the paper's Singapore data.

    Args:
        public_scale: scale by the district's box instead of the rows' own mean and largest norm.
    """
    sales = recorded_sales()
    degrees = np.array([(sale.longitude, sale.latitude) for sale in sales])
    prices = np.log([sale.price for sale in sales])
    rows = in_public_box(degrees, *_DISTRICT) if public_scale else to_norm(degrees)
    return OutsourcedProblem("properties", rows, -prices / prices.std(), 1e-5)


def loans(path: Path | str | None = None, *, public_scale: bool = False) -> OutsourcedProblem:
    """The loan of highest return among 42 299 (Lending Club 2007-2011).

    Inputs: amount committed by investors, interest rate, ln of annual income, each divided by a
    public constant so that the covariance is roughly isotropic. f = ln(1 + ROI) in standard
    deviations, with 1 + ROI = payments/funds of at least 0.05.

    Args:
        path: ``lc_2007_2011.csv`` or its ``.gz``; by default ``lendingclub/lc_2007_2011.csv.gz`` in
            the directory named by the environment variable ``DPAUDIT_DATA``.
        public_scale: scale by public ranges instead of the rows' own mean and largest norm.

    Raises:
        InputError: if the file is missing or is not that data set.
    """
    table = _loan_table(data_file(path, "lendingclub/lc_2007_2011.csv.gz"))
    funds, rate, income, payments = table[table[:, 0] > 0].T
    inputs = np.column_stack([funds / 35_000, rate / 0.2, np.log(income) / math.log(100)])
    rows = in_public_box(inputs, *_LOAN_RANGES) if public_scale else to_norm(inputs)
    returns = np.log(np.maximum(payments / funds, _LEAST_RETURN))
    return OutsourcedProblem("loans", rows, returns / returns.std(), 1e-5)


def _loan_table(file: Path) -> Array:
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rt", encoding="utf-8", newline="") as text:
            records = [[row[name] for name in _LOAN_COLUMNS] for row in csv.DictReader(text)]
        table = np.array(records, dtype=np.float64)
        if table.size == 0 or not np.isfinite(table).all():
            raise ValueError
    except (OSError, EOFError, ValueError, KeyError, TypeError, csv.Error) as wrong:
        raise InputError(
            f"path is {str(file)!r}; it must be a CSV file of loans with the numeric columns "
            f"{', '.join(_LOAN_COLUMNS)}."
        ) from wrong
    return table


def load_problem(
    source: str, rng: np.random.Generator, *, public_scale: bool = False
) -> OutsourcedProblem:
    """The problem of that name (grid, taipei, loans), or loans from a path.

    Args:
        source: name or path.
        rng: draws the function on the grid, whose points are public in any case.
        public_scale: for recorded rows; see :func:`properties` and :func:`loans`.

    Raises:
        InputError: if there is no such problem, or its file is missing or malformed.
    """
    return data_named(
        source,
        {
            "grid": lambda: grid_problem(rng),
            "taipei": lambda: properties(public_scale=public_scale),
            "loans": lambda: loans(public_scale=public_scale),
        },
        dict.fromkeys((".csv", ".gz"), partial(loans, public_scale=public_scale)),
        files=", or the path of a .csv or .csv.gz file of loans",
    )
