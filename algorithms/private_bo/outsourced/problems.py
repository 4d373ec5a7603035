"""Private rows with outputs: what is checked of them, their linear algebra, and problems by name.

The problems are the grid, the properties and the loans of Kharkovskii, Dai & Low 2020. A curator
looks at rows by what stands here first; no error shows a value of theirs.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, NonNegative
from dpaudit.project import AuditPair
from private_bo.base import load_named
from private_bo.gp.types import Array, Indices, array_of, point_set
from private_bo.outsourced.modeller import Hyperparameters
from private_bo.problems import recorded_sales
from private_bo.problems.sources import data_file

LARGEST_RELEASE = 2**31
"""Bytes that one released matrix may take."""

_NORM_SLACK = 1e-9  # rows scaled to the bound itself may exceed it by rounding
_MOST_SIGNS = 14


def check_rows(rows: Any, *, columns: int, norm_bound: float, count: int | None = None) -> Array:
    """The private matrix X (n, d), if every check holds.

    Whether a check fails depends on the private rows: tell it to their owner and to nobody else.
    No error shows a value of theirs.

    Args:
        rows: the private rows, shape (n, d).
        columns: declared d.
        norm_bound: declared largest Euclidean norm of a row.
        count: declared n, or None if it is not declared.

    Raises:
        InputError: if a value is NaN or infinite, the shape is not the declared one, there are no
            more rows than columns, or a row is longer than declared. A constant column is none:
            a refusal would tell neighbours apart.
    """
    matrix = point_set(rows=validate.private(rows))
    n, d = matrix.shape
    if d != columns:
        raise InputError(f"rows has {d} columns; it must have the declared {columns}.")
    if count is not None and n != count:
        raise InputError(f"rows has {n} rows; it must have the declared {count}.")
    if n <= d:
        raise InputError(f"rows has shape ({n}, {d}); it must have more rows than columns.")
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    if norms.max() > norm_bound * (1 + _NORM_SLACK):
        raise InputError(
            f"rows has a row longer than the declared norm_bound, {norm_bound:g}; scale all rows "
            "by a public constant."
        )
    return matrix


def require_memory(rows: int, dimension: int) -> None:
    """Refuse a release that is too large, before it is computed.

    Raises:
        InputError: if ``rows`` × ``dimension`` numbers take more than :data:`LARGEST_RELEASE`.
    """
    size = 8 * rows * dimension
    if size > LARGEST_RELEASE:
        raise InputError(
            f"dimension is {dimension}; with {rows} rows the release would take {size / 2**30:.3g} "
            f"GiB, so it must be at most {LARGEST_RELEASE // (8 * rows)}."
        )


def centred(matrix: Array) -> Array:
    """The matrix less its column means (line 2 of Algorithm 1)."""
    return np.asarray(matrix - matrix.mean(axis=0))


def thin_svd(matrix: Array) -> tuple[Array, Array, Array]:
    """U (n, d), singular values (d,) and Vᵀ (d, d), in O(n d²) time and O(n d) memory."""
    orthogonal, triangular = np.linalg.qr(matrix)
    left, values, right = np.linalg.svd(triangular)
    return orthogonal @ left, values, right


def inflate_singular_values(matrix: Array, omega: float) -> Array:
    """Lines 4 to 10 of Algorithm 1: the centred matrix, or U sqrt(Σ² + ω² I) Vᵀ if σ_min < ω."""
    left, values, right = thin_svd(matrix)
    if values[-1] >= omega:
        return matrix
    return np.asarray((left * np.hypot(values, omega)) @ right)


def public_projection(columns: int, dimension: int, seed: int) -> Array:
    """M/√r (d, r) with standard normal entries from a public seed, or the identity if r >= d.

    The identity keeps every distance and has gain 1, so that nothing is won by r > d.
    """
    if dimension >= columns:
        return np.eye(columns)
    normal = np.random.default_rng(seed).standard_normal((columns, dimension))
    return np.asarray(normal / math.sqrt(dimension))


def largest_l1_gain(projection: Array) -> float:
    """The largest L1 norm of uᵀP over Euclidean unit vectors u, rounded up.

    It is max ‖P s‖₂ over all sign vectors s (duality of L1 and L∞), enumerated up to 14 columns;
    beyond, √r σ_max(P) is its upper bound.

    >>> round(largest_l1_gain(np.eye(2)), 6)
    1.414214
    """
    columns = projection.shape[1]
    if columns > _MOST_SIGNS:
        return _rounded_up(math.sqrt(columns) * float(np.linalg.norm(projection, 2)))
    codes = np.arange(2 ** (columns - 1))[:, np.newaxis] >> np.arange(columns)
    signs = 1.0 - 2.0 * (codes & 1)
    return _rounded_up(float(np.linalg.norm(projection @ signs.T, axis=0).max()))


def largest_l2_gain(projection: Array) -> float:
    """σ_max(P), the largest Euclidean norm of uᵀP over unit vectors u, rounded up."""
    return _rounded_up(float(np.linalg.norm(projection, 2)))


def _rounded_up(value: float) -> float:
    """The value with a margin for the rounding of its computation; whole numbers are exact."""
    return value if value == round(value) else value * (1 + 1e-12)


def small_pairs(columns: int, norm_bound: float) -> tuple[AuditPair, ...]:
    """4d + 1 rows on the axes and in the middle; one in the middle or at the rim moves by 1.

    Args:
        columns: d of the rows.
        norm_bound: largest legal norm of a row.
    """
    axes = np.concatenate([np.eye(columns), -np.eye(columns)])
    shape = np.concatenate([axes, 0.5 * axes, np.zeros((1, columns))])
    # Radii that differ, so that the rows are not centred and nothing is exactly 0 by symmetry.
    rows = 0.9 * norm_bound * shape * np.linspace(0.8, 1.0, len(shape))[:, np.newaxis]
    step = min(1.0, 0.1 * norm_bound)
    diagonal = step * np.ones(columns) / math.sqrt(columns)
    across = np.where(np.arange(columns) == 0, -diagonal, diagonal)
    return (
        # Along diagonals the L1 distance is largest, in which Laplace noise is calibrated.
        _pair(rows, len(rows) - 1, diagonal, f"the row in the middle moves by {step:g}"),
        _pair(rows, 0, across, f"a row at the rim moves by {step:g}"),
    )


def _pair(rows: Array, row: int, move: Array, why: str) -> AuditPair:
    moved = rows.copy()
    moved[row] += move
    return AuditPair(rows.tolist(), moved.tolist(), why)


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


def scale_to_norm(rows: Array) -> Array:
    """Centre the columns, then scale all rows to a largest norm of 25, as the paper does.

    Both steps use statistics of the rows themselves. (The other order halves σ_min.)
    """
    middle = rows - rows.mean(axis=0)
    largest = float(np.sqrt(np.einsum("ij,ij->i", middle, middle)).max())
    if largest == 0.0:
        raise InputError("rows are all equal; at least two must differ.")
    return np.asarray(middle * (NORM / largest))


def grid_rows(per_axis: int = 100) -> Array:
    """The uniform grid of the synthetic experiment, centred and scaled: (per_axis², 2)."""
    axis = np.arange(validate.integer_at_least(2, per_axis=per_axis), dtype=np.float64)
    return scale_to_norm(np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2))


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


def scale_by_box(rows: Array, lower: Sequence[float], upper: Sequence[float]) -> Array:
    """Clip rows into a public box, then centre and scale the box itself to a radius of 25.

    Every row ends within norm 25, and nothing depends on the rows of others.

    >>> scale_by_box(np.array([[3.0, 4.0], [9.0, 4.0]]), (-3.0, -4.0), (3.0, 4.0)).tolist()
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
    rows = scale_by_box(degrees, *_DISTRICT) if public_scale else scale_to_norm(degrees)
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
    """
    table = _loan_table(data_file(path, "lendingclub/lc_2007_2011.csv.gz"))
    funds, rate, income, payments = table[table[:, 0] > 0].T
    inputs = np.column_stack([funds / 35_000, rate / 0.2, np.log(income) / math.log(100)])
    rows = scale_by_box(inputs, *_LOAN_RANGES) if public_scale else scale_to_norm(inputs)
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
    """
    return load_named(
        source,
        {
            "grid": lambda: grid_problem(rng),
            "taipei": lambda: properties(public_scale=public_scale),
            "loans": lambda: loans(public_scale=public_scale),
        },
        dict.fromkeys((".csv", ".gz"), partial(loans, public_scale=public_scale)),
        files=", or the path of a .csv or .csv.gz file of loans",
    )
