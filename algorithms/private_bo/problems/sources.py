"""The problems that the local algorithms can be run on, by name or path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from dpaudit.base.errors import InputError
from private_bo import problems
from private_bo.gp import Kernel, Matern, SquaredExponential

SOURCES = {
    "synthetic": "a random function of the Matérn kernel (ν = 2.5, l = 0.2), uniform noise",
    "synthetic-se": "the same with the squared-exponential kernel (l = 0.2)",
    "taipei": "mean prices of Taipei neighbourhoods, simulated sellers (shipped)",
    "taipei-sellers": "the same, asking the recorded sellers themselves",
    "sensors": "light sensors, from DPAUDIT_DATA; a path ending in .mat is read as such a file",
    "stocks": "stock prices, from DPAUDIT_DATA; a path ending in .csv is read as such a file",
}
"""What each name stands for."""


def load_problem(
    source: str, rng: np.random.Generator, *, answers_per_user: int = 1
) -> problems.BanditProblem:
    """The problem of that name, or read from that path.

    Args:
        source: a key of :data:`SOURCES`, or the path of a ``.mat`` or ``.csv`` file.
        rng: source of the random function, for the synthetic problems.
        answers_per_user: how often a recorded seller may be asked, for ``taipei-sellers``.

    Raises:
        InputError: if there is no such problem, or its file is missing or malformed.
    """
    makers: dict[str, Callable[[], problems.BanditProblem]] = {
        "synthetic": lambda: _synthetic(Matern(0.2, nu=2.5), rng),
        "synthetic-se": lambda: _synthetic(SquaredExponential(0.2), rng),
        "taipei": problems.neighbourhood_prices,
        "taipei-sellers": lambda: problems.neighbourhood_prices(
            real=True, answers_per_user=answers_per_user
        ),
        "sensors": problems.light_sensors,
        "stocks": problems.stocks,
    }
    if source in makers:
        return makers[source]()
    readers = {".mat": problems.light_sensors, ".csv": problems.stocks}
    if reader := readers.get(Path(source).suffix):
        return reader(source)
    raise InputError(
        f"data is {source!r:.80}; it must be one of {', '.join(SOURCES)}, or the path of a .mat "
        "file of light sensors or a .csv file of stock prices."
    )


def _synthetic(kernel: Kernel, rng: np.random.Generator) -> problems.BanditProblem:
    return problems.synthetic(kernel, problems.UniformNoise(), rng)
