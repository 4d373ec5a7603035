"""Kharkovskii, Dai & Low 2020: Tables 1 to 9, Figure 2 and Branin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from audits.paper_rows.experiments import Experiment
from private_bo.gp.types import Array
from private_bo.outsourced import (
    CertifiedCurator,
    Curator,
    Hyperparameters,
    Modeller,
    OutsourcedProblem,
    grid_problem,
    loans,
    properties,
)
from private_bo.outsourced.experiments.tables import Cell, curves_of
from private_bo.outsourced.problems import grid_rows

CLEAR = "rows in the clear"
TABLES: Mapping[str, Mapping[float, tuple[tuple[int, float], ...]]] = {
    "grid": {
        1.1: ((3, 0.073), (6, 0.038), (8, 0.018), (10, 0.014), (15, 0.118), (20, 0.137)),
        1.3: ((3, 0.091), (9, 0.009), (12, 0.019), (15, 0.008), (20, 0.127), (30, 0.134)),
        1.5: ((5, 0.05), (10, 0.021), (15, 0.003), (20, 0.002), (30, 0.094), (50, 0.142)),
    },
    "loans": {
        2.7: ((3, 0.083), (6, 0.088), (8, 0.078), (10, 0.069), (15, 0.081), (20, 0.076)),
        2.9: ((3, 0.091), (9, 0.076), (12, 0.078), (15, 0.077), (20, 0.1), (30, 0.096)),
        3.1: ((5, 0.097), (10, 0.091), (15, 0.069), (20, 0.084), (30, 0.104), (50, 0.127)),
    },
    "properties": {
        2.6: ((3, 0.682), (6, 0.516), (8, 0.495), (10, 0.485), (15, 0.485), (20, 0.493)),
        2.8: ((3, 0.567), (9, 0.553), (12, 0.479), (15, 0.453), (20, 0.493), (30, 0.52)),
        3.0: ((5, 0.591), (10, 0.523), (15, 0.486), (20, 0.482), (30, 0.489), (50, 0.488)),
    },
}
"""r and regret as printed in Tables 1 to 9, by data and exponent of ε."""
EXPONENTS = {
    "grid": (10, (1.1, 0.9, 0.0)),
    "loans": (15, (2.9, 2.0, 1.0)),
    "properties": (15, (2.8, 1.0, 0.5)),
    "branin": (10, (1.1, 0.9, 0.0)),
}
"""r and exponents of ε in Figure 2 a, b and c; for Branin those of the grid."""
_TRIALS = 50
_ROUNDS = {"properties": 100}
_DELTA = {"properties": 1e-4}


def label(exponent: float, dimension: int) -> str:
    """The cell of the paper's curator."""
    return f"ε = e^{exponent:g}, r = {dimension}"


def certified_label(exponent: float) -> str:
    """The cell of the curator that has a proof."""
    return f"certified, ε = e^{exponent:g}"


@lru_cache(maxsize=4)
def _fixed(name: str) -> OutsourcedProblem:
    if name == "loans":
        return loans()
    return properties() if name == "properties" else _branin()


def _branin() -> OutsourcedProblem:
    """The Branin-Hoo function (minimised) on a grid of 100 × 100, in its standard deviations."""
    rows = grid_rows()
    unit = (rows - rows.min(axis=0)) / np.ptp(rows, axis=0)
    x, y = 15.0 * unit[:, 0] - 5.0, 15.0 * unit[:, 1]
    bowl = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    values = -(bowl**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(x) + 10)
    return OutsourcedProblem("branin", rows, (values - values.mean()) / values.std(), 1e-5)


def problem_of(name: str, seed: np.random.SeedSequence | None = None) -> OutsourcedProblem:
    """The data of an experiment; the function on the grid is drawn from the seed."""
    return grid_problem(np.random.default_rng(seed)) if name == "grid" else _fixed(name)


@lru_cache(maxsize=4)
def _cells(name: str) -> dict[str, Cell]:
    given = Hyperparameters(5.0) if name == "grid" else None
    columns, steps, delta = 2 + (name == "loans"), _ROUNDS.get(name, 50), _DELTA.get(name, 1e-5)
    theory = Modeller(given, steps=steps)
    narrow = Modeller(given, steps=steps, width_multiplier=0.7)
    dimension, exponents = EXPONENTS[name]
    pairs = [(exponent, dimension) for exponent in exponents]
    for exponent, row in TABLES.get(name, {}).items():
        pairs += [(exponent, r) for r, _ in row]
    made = {CLEAR: Cell(None, theory)}
    for exponent, r in dict.fromkeys(pairs):
        made[label(exponent, r)] = Cell(Curator(math.exp(exponent), delta, r, columns), theory)
    for exponent in exponents:
        curator = CertifiedCurator(math.exp(exponent), delta, dimension, columns)
        made[certified_label(exponent)] = Cell(curator, narrow)
    return made


def _run(cells: Sequence[str], trial: int, name: str) -> Mapping[str, Array]:
    problem_seed, *seeds = np.random.SeedSequence(0, spawn_key=(trial,)).spawn(3)
    known = _cells(name)
    problem = problem_of(name, problem_seed)
    found = {}
    for cell in cells:
        (curve,) = curves_of(problem, [known[cell]], *seeds)
        found[cell] = curve[known[cell].modeller.initial - 1 :]
    return found


_TITLES = {
    "grid": "Kharkovskii et al., synthetic grid",
    "loans": "Kharkovskii et al., loans",
    "properties": "Kharkovskii et al., properties (Taipei stands in for Singapore)",
    "branin": "Kharkovskii et al., Branin-Hoo",
}
EXPERIMENTS = tuple(
    Experiment(
        f"outsourced-{name}", title, tuple(_cells(name)), partial(_run, name=name), _TRIALS,
        tuple(_cells(name)), rounds="iteration, the start being 1", regret="simple regret",
    )
    for name, title in _TITLES.items()
)  # fmt: skip
