"""Where do homes sell best? 414 sales in Taipei, asked one seller at a time.

Data: Yeh 2018, Real Estate Valuation (UCI), CC BY 4.0; see ``data/ATTRIBUTION.md``.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count
from private_bo.gp import FiniteDomain, Matern
from private_bo.gp.types import Array
from private_bo.problems.base import BanditProblem, RecordedRewards, Response, RewardSource

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


def price_of_reward(reward: float) -> float:
    """The price, in 10 000 TWD per ping, of a reward of this problem.

    >>> price_of_reward(0.25)
    50.0
    """
    return _PRICE_CENTRE + _PRICE_SCALE * reward


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

    def available(self, size: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which neighbourhoods have a seller left to ask."""
        return np.array([bool(waiting) for waiting in self._waiting[:size]], dtype=np.bool_)

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
