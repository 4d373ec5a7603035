"""One trial of the outsourced setting, in whatever process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from private_bo.gp.types import Array
from private_bo.outsourced import OutsourcedProblem, Release, grid_problem, loans, properties
from private_bo.outsourced.experiments.cells import Cell, Setting


def run_trial(
    setting: Setting, cells: Sequence[Cell], seed: np.random.SeedSequence
) -> tuple[float, ...]:
    """The final simple regret of every cell in one trial."""
    problem_seed, *others = seed.spawn(3)
    if setting is Setting.GRID:
        problem = grid_problem(np.random.default_rng(problem_seed))
    else:
        problem = _recorded(setting)
    return tuple(float(curve[-1]) for curve in curves_of(problem, cells, *others))


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


@lru_cache(maxsize=2)
def _recorded(setting: Setting) -> OutsourcedProblem:
    return properties() if setting is Setting.PROPERTIES else loans()
