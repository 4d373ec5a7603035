"""One trial of the outsourced setting, in whatever process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from private_bo.outsourced import OutsourcedProblem, Release, grid_problem, loans, properties
from private_bo.outsourced.experiments.cells import Cell, Setting

__all__ = ["run_trial"]


def run_trial(
    setting: Setting, cells: Sequence[Cell], seed: np.random.SeedSequence
) -> tuple[float, ...]:
    """The final simple regret of every cell in one trial."""
    problem_seed, release_seed, search_seed = seed.spawn(3)
    if setting is Setting.GRID:
        problem = grid_problem(np.random.default_rng(problem_seed))
    else:
        problem = _recorded(setting)
    found = []
    for cell in cells:
        release = Release(problem.rows)
        if cell.curator is not None:
            (points,) = cell.curator.releases(problem.rows, 1, np.random.default_rng(release_seed))
            release = Release(points, cell.curator.noise_variance)
        rng = np.random.default_rng(search_seed)
        search = cell.modeller.run(release, partial(problem.measure, rng=rng), rng)
        found.append(float(problem.regret(search.rows)[-1]))
    return tuple(found)


@lru_cache(maxsize=2)
def _recorded(setting: Setting) -> OutsourcedProblem:
    return properties() if setting is Setting.PROPERTIES else loans()
