"""Recorded data sets, and every bandit problem by its name or path.

Shipped are 414 sales of homes in Taipei, asked one seller at a time (Yeh 2018, Real Estate
Valuation, UCI, CC BY 4.0; see ``data/ATTRIBUTION.md``). The light sensors and the stocks of Zhou &
Tan 2021, Section 6, are read from files the user provides, in the data's own units; their B, R, v
and c are statistics of the very readings that are to be protected, as in the paper:
``bounds_are_public`` is false.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count
from dpaudit.base.optional_import import optional_import
from private_bo.base import load_named
from private_bo.gp import FiniteDomain, Kernel, Matern, SquaredExponential, TableKernel
from private_bo.gp.types import Array
from private_bo.problems.bandit import (
    BanditProblem,
    RecordedRewards,
    Response,
    RewardSource,
    UniformNoise,
    synthetic,
)

_DATA_VARIABLE = "DPAUDIT_DATA"


def data_file(path: str | Path | None, place: str) -> Path:
    """The file of a data set.

    Args:
        path: the file; None for ``place`` in the directory that ``DPAUDIT_DATA`` names.
        place: path below that directory.

    Raises:
        InputError: if there is no such file, or no directory is named.
    """
    if path is not None:
        file = Path(path)
        remedy = "it must be an existing file"
    elif directory := os.environ.get(_DATA_VARIABLE):
        file = Path(directory) / place
        remedy = f"put the data there, pass path, or set {_DATA_VARIABLE} to another directory"
    else:
        raise InputError(
            f"path is None and {_DATA_VARIABLE} is not set; pass the file, or set "
            f"{_DATA_VARIABLE} to a directory that has {place}."
        )
    if not file.is_file():
        raise InputError(f"path is {str(file)!r}, where there is no file; {remedy}.")
    return file


# Public constants, chosen for the market and not computed from the sales.
_CELL = 0.006  # degrees: cells of about 0.66 km by 0.61 km
_FEWEST_SALES = 5
_ORIGIN = (24.97, 121.54)  # latitude, longitude
_KILOMETRES_PER_DEGREE = 111.2
_LENGTH_SCALE = 2.0  # kilometres
_PRICE_CENTRE = 40.0  # 10 000 TWD per ping (3.3 m²)
_PRICE_SCALE = 40.0
_MEAN_BOUND = 0.7  # mean prices between 12 and 68
_NOISE_BOUND = 0.7  # a sale within 28 of its neighbourhood's mean


@dataclass(frozen=True)
class Sale:
    """One recorded sale.

    Attributes:
        seller: identifier of the seller.
        latitude: degrees north.
        longitude: degrees east.
        price: 10 000 TWD per ping of floor (3.3 m²).
    """

    seller: str
    latitude: float
    longitude: float
    price: float

    @property
    def cell(self) -> tuple[int, int]:
        """The grid cell, counted north and east from (0, 0)."""
        # Coordinates have five decimals: the shift keeps those on an edge in the upper cell.
        shift = 1e-6
        return (
            math.floor((self.latitude + shift) / _CELL),
            math.floor((self.longitude + shift) / _CELL),
        )

    @property
    def reward(self) -> float:
        """The price on the public scale, (price - 40)/40; not clipped."""
        return (self.price - _PRICE_CENTRE) / _PRICE_SCALE


def recorded_sales() -> tuple[Sale, ...]:
    """The 414 sales that ship with the package."""
    text = (files("private_bo") / "data" / "taipei_sales.csv").read_text(encoding="utf-8")
    return tuple(
        Sale(
            seller=f"seller-{int(row['sale']):03d}",
            latitude=float(row["latitude"]),
            longitude=float(row["longitude"]),
            price=float(row["price"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


@dataclass(eq=False)
class RealSellers(Checked, RewardSource):
    """The recorded sellers themselves, each answering a limited number of times.

    Attributes:
        sellers: the sales of each neighbourhood.
        answers_per_user: how often one seller may answer; a ledger charges every answer.
    """

    sellers: Sequence[Sequence[Sale]] = field(repr=False)
    answers_per_user: Count = 1
    _waiting: list[list[Sale]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reset()

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """One of the answers left in the neighbourhood, all equally likely; it is used up."""
        waiting = self._waiting[index]
        if not waiting:
            raise InputError(
                f"index is {index}, a neighbourhood where every seller has answered "
                f"{self.answers_per_user} times; it must be one of those still available."
            )
        sale = waiting.pop(int(rng.integers(len(waiting))))
        return Response(sale.seller, sale.reward)

    def available(self, size: int, answers: int = 1) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which neighbourhoods have so many answers left."""
        return np.array([len(left) >= answers for left in self._waiting[:size]], dtype=np.bool_)

    def reset(self) -> None:
        """Give every seller all answers back."""
        self._waiting = [list(sales) * self.answers_per_user for sales in self.sellers]


def neighbourhood_prices(*, real: bool = False, answers_per_user: int = 1) -> BanditProblem:
    """Find the neighbourhood of highest mean price; the privacy unit is the seller.

    Neighbourhoods are the cells of a public grid with at least 5 recorded sales (26 cells, 370 of
    the 414 sales; that so many sales took place is taken as public). Points are cell centres in
    kilometres, the kernel is Matérn 5/2 with 2 km, the reward is (price - 40)/40 with prices in
    10 000 TWD per ping. B, R, v and c are public constants; R holds for nearly all sales, and a
    mechanism must clip to ±(B + R), because nothing guarantees it.

    Args:
        real: ask the recorded sellers, who run out (370 answers in all at one each): see
            :attr:`BanditProblem.available`, and call :meth:`BanditProblem.reset` between trials.
            By default every round asks a fresh simulated seller, whose price is drawn from the
            recorded sales of the neighbourhood, so that runs may be of any length.
        answers_per_user: for real sellers, how often one may answer; c answers cost c times.

    Raises:
        InputError: if ``answers_per_user`` is not a positive integer, or is given for simulated
            sellers.

    >>> problem = neighbourhood_prices()
    >>> problem.domain.size, problem.labels[problem.best]
    (26, '24.975 N 121.545 E')
    """
    if not real and answers_per_user != 1:
        raise InputError(
            f"answers_per_user is {answers_per_user!r}; it must be 1 for simulated sellers, "
            "who answer once each (or ask real=True)."
        )
    cells: dict[tuple[int, int], list[Sale]] = {}
    for sale in recorded_sales():
        cells.setdefault(sale.cell, []).append(sale)
    chosen = sorted(cell for cell, sales in cells.items() if len(sales) >= _FEWEST_SALES)
    sellers = [cells[cell] for cell in chosen]
    values = [np.array([sale.reward for sale in sales]) for sales in sellers]
    centres = (np.array(chosen, dtype=np.float64) + 0.5) * _CELL
    return BanditProblem(
        name="neighbourhood prices",
        domain=FiniteDomain(_kilometres(centres)),
        kernel=Matern(length_scale=_LENGTH_SCALE, nu=2.5),
        f=np.array([value.mean() for value in values]),
        B=_MEAN_BOUND,
        R=_NOISE_BOUND,
        v=_MEAN_BOUND**2 + _NOISE_BOUND**2,
        c=_NOISE_BOUND**2,
        bounds_are_public=True,
        rewards=RealSellers(sellers, answers_per_user) if real else RecordedRewards(values),
        labels=tuple(f"{north:.3f} N {east:.3f} E" for north, east in centres),
    )


def _kilometres(degrees: Array) -> Array:
    """North and east of the public origin, on a plane: exact to 0.1 % over this small area."""
    east = math.cos(math.radians(_ORIGIN[0]))
    scale = _KILOMETRES_PER_DEGREE * np.array([1.0, east])
    return np.asarray((degrees - np.array(_ORIGIN)) * scale)


def light_sensors(path: str | Path | None = None) -> BanditProblem:
    """Which of 41 light sensors of the CMU Intelligent Workplace reads most on average?

    The mean of the test readings (192, 41) is f; a round draws one test reading of the chosen
    sensor; the kernel is the correlation matrix of the training readings (601, 41).

    Args:
        path: ``iw_data_all.mat``; by default ``light_sensor/iw_data_all.mat`` in the directory
            named by the environment variable ``DPAUDIT_DATA``.
    """
    from scipy.io import loadmat

    file = data_file(path, "light_sensor/iw_data_all.mat")
    try:
        # mat_dtype: the file stores uint16, whose squares overflow.
        data = loadmat(file, squeeze_me=True, struct_as_record=False, mat_dtype=True)["data"]
        train = np.asarray(data.train.sensordata, dtype=np.float64)
        test = np.asarray(data.test.sensordata, dtype=np.float64)
    except Exception as wrong:
        raise InputError(
            f"path is {str(file)!r}, which has no data.train.sensordata and data.test.sensordata "
            "matrices; it must be the light sensor file iw_data_all.mat."
        ) from wrong
    labels = tuple(f"sensor {number}" for number in range(test.shape[-1]))
    return _recorded("light sensors", train, test, labels, file)


def stocks(path: str | Path | None = None) -> BanditProblem:
    """Which of 29 stocks has the largest mean price?

    The mean adjusted close over all days is f; a round draws one day's price of the chosen
    stock; the kernel is the correlation matrix of the prices.

    Args:
        path: ``fin.csv``, a header ``Date,TICKER,...`` and one line a day; by default
            ``stocks/fin.csv`` in the directory named by the environment variable ``DPAUDIT_DATA``.
    """
    file = data_file(path, "stocks/fin.csv")
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            header, *days = [line for line in csv.reader(stream) if line]
        prices = np.array([[float(price) for price in day[1:]] for day in days])
    except (OSError, ValueError, csv.Error) as wrong:
        raise InputError(
            f"path is {str(file)!r}, which is not a table of prices; it must have a header "
            "Date,TICKER,... and one line of numbers a day."
        ) from wrong
    return _recorded("stocks", prices, prices, tuple(header[1:]), file)


def _recorded(
    name: str, past: Array, readings: Array, labels: tuple[str, ...], file: Path
) -> BanditProblem:
    """The problem of the largest column mean, with the past's correlations as kernel."""
    if readings.ndim != 2 or past.shape[1:] != readings.shape[1:] or len(past) < 2:
        raise InputError(
            f"path is {str(file)!r}, whose tables have shapes {past.shape} and {readings.shape}; "
            "they must be matrices with one column for each of the same arms."
        )
    deviation = past.std(axis=0)
    if not (np.isfinite(past).all() and np.isfinite(readings).all() and deviation.min() > 0.0):
        raise InputError(
            f"path is {str(file)!r}, which has a column that is constant or not finite; "
            "every arm must have varying, finite readings."
        )
    scores = (past - past.mean(axis=0)) / deviation
    correlation = scores.T @ scores / len(scores)
    # Rounding leaves the diagonal within 1e-15 of 1.
    np.fill_diagonal(correlation, 1.0)
    means = readings.mean(axis=0)
    noise = readings - means
    return BanditProblem(
        name=name,
        domain=FiniteDomain.indices(readings.shape[1]),
        kernel=TableKernel(correlation),
        f=means,
        B=float(np.abs(means).max()),
        R=float(np.abs(noise).max()),
        v=float(np.mean(readings**2)),
        c=float(np.mean(noise**2)),
        bounds_are_public=False,
        rewards=RecordedRewards([np.ascontiguousarray(column) for column in readings.T]),
        labels=labels,
    )


def shuffled_digits(rng: np.random.Generator) -> tuple[Array, Array]:
    """Pixels in [0, 1], shape (1797, 64), and digits of scikit-learn, in a random order."""
    datasets = optional_import("learn", "sklearn.datasets", what="a search on digits")
    x, y = datasets.load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    return x[order] / 16.0, y[order]


def load_problem(
    source: str, rng: np.random.Generator, *, answers_per_user: int = 1
) -> BanditProblem:
    """The problem of that name, or read from that path.

    ``synthetic`` and ``synthetic-se`` are random functions of the Matérn kernel (ν = 2.5, l = 0.2)
    and the squared exponential (l = 0.2) with uniform noise.

    Args:
        source: one of the names below, or the path of a ``.mat`` or ``.csv`` file.
        rng: source of the random function, for the synthetic problems.
        answers_per_user: how often a recorded seller may be asked, for ``taipei-sellers``.
    """
    makers: dict[str, Callable[[], BanditProblem]] = {
        "synthetic": lambda: _synthetic(Matern(0.2, nu=2.5), rng),
        "synthetic-se": lambda: _synthetic(SquaredExponential(0.2), rng),
        "taipei": neighbourhood_prices,
        "taipei-sellers": lambda: neighbourhood_prices(
            real=True, answers_per_user=answers_per_user
        ),
        "sensors": light_sensors,
        "stocks": stocks,
    }
    readers = {".mat": light_sensors, ".csv": stocks}
    return load_named(
        source,
        makers,
        readers,
        files=", or the path of a .mat file of light sensors or a .csv file of stock prices",
    )


def _synthetic(kernel: Kernel, rng: np.random.Generator) -> BanditProblem:
    return synthetic(kernel, UniformNoise(), rng)
