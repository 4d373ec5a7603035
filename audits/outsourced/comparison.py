"""What noise and its reading are worth to a modeller: simple regret on the synthetic grid.

Kharkovskii, Dai & Low 2020 have the paper's curator alone; its tables are rows of
``audits.paper_rows``, which runs :func:`curves_of` too. Here stands the certified curator, with
both kinds of noise, and what a modeller makes of them. Regrets are in standard deviations of f.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from private_bo.experiments import in_parallel, mean_and_error, table, trial_numbers
from private_bo.gp.types import Array
from private_bo.outsourced import (
    CertifiedCurator,
    Curator,
    Hyperparameters,
    InputModel,
    Modeller,
    OutsourcedProblem,
    Release,
    RowNoise,
    grid_problem,
)

EXPONENTS = (0.0, 0.9, 1.1, 1.3)
_DELTA, _LENGTH = 1e-5, 5.0
_MODEL_NOISE = 0.05
"""Variance that an ordinary kernel is given for the noise of its inputs."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Attributes:
        curator: who releases; None for the rows themselves.
        modeller: who searches.
    """

    curator: Curator | CertifiedCurator | None
    modeller: Modeller


def curves_of(
    problem: OutsourcedProblem,
    cells: Sequence[Cell],
    release_seed: np.random.SeedSequence,
    search_seed: np.random.SeedSequence,
) -> tuple[Array, ...]:
    """Simple regret of every cell after each query, initial ones included.

    Args:
        problem: whose rows are released.
        cells: who releases and who searches.
        release_seed: of what is released, the same for every cell.
        search_seed: of initial rows and measurements, the same for every cell.
    """
    found = []
    for cell in cells:
        release = Release(problem.rows)
        if cell.curator is not None:
            (points,) = cell.curator.releases(problem.rows, 1, np.random.default_rng(release_seed))
            release = Release(points, cell.curator.noise_variance)
        rng = np.random.default_rng(search_seed)
        search = cell.modeller.run(release, partial(problem.measure, rng=rng), rng)
        found.append(problem.regret(search.rows))
    return tuple(found)


def cells_of(epsilon: float) -> Mapping[str, Cell]:
    """Both kinds of noise, read as what they are; and the Gaussian read as if it were none."""
    laplace = CertifiedCurator(epsilon, _DELTA, noise=RowNoise.LAPLACE)
    gaussian = CertifiedCurator(epsilon, _DELTA, noise=RowNoise.GAUSSIAN, rows=10_000)
    given = Hyperparameters(_LENGTH)
    theory, narrow = Modeller(given), Modeller(given, width_multiplier=0.7)
    noisy = Hyperparameters(_LENGTH, noise_variance=_MODEL_NOISE)
    return {
        "Laplace, expected kernel, 0.7 × width": Cell(laplace, narrow),
        "Laplace, expected kernel, theory width": Cell(laplace, theory),
        "Gaussian, expected kernel, 0.7 × width": Cell(gaussian, narrow),
        "Gaussian, expected kernel, theory width": Cell(gaussian, theory),
        "Gaussian, ordinary kernel": Cell(gaussian, Modeller(noisy, inputs=InputModel.ORDINARY)),
        "rows in the clear, theory width": Cell(None, theory),
    }


def compared(trials: int, seed: int, workers: int) -> str:
    """A Markdown table of S₅₀; trial k of every cell has the same function and initial rows.

    Raises:
        InputError: if a number is out of its range.
    """
    trials, seed, workers = trial_numbers(trials, seed, workers)
    kinds = {exponent: cells_of(math.exp(exponent)) for exponent in EXPONENTS}
    each = [cell for cells in kinds.values() for cell in cells.values()]
    seeds = np.random.SeedSequence(seed).spawn(trials)
    found = np.array(in_parallel(_finals, ((each, child) for child in seeds), workers))
    shown = ["{:.3f} ± {:.3f}".format(*mean_and_error(column)) for column in found.T]
    labels = list(kinds[EXPONENTS[0]])
    rows = [(label, *shown[place :: len(labels)]) for place, label in enumerate(labels)]
    return table(("certified", *(f"ε = e^{exponent:g}" for exponent in EXPONENTS)), rows)


def _finals(cells: Sequence[Cell], seed: np.random.SeedSequence) -> list[float]:
    problem_seed, *others = seed.spawn(3)
    problem = grid_problem(np.random.default_rng(problem_seed))
    return [float(curve[-1]) for curve in curves_of(problem, cells, *others)]
