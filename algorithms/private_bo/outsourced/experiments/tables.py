"""Simple regrets of Kharkovskii, Dai & Low 2020 beside those of a curator that is private.

``python -m private_bo.outsourced.experiments.tables`` prints the branch and the regret tables
of the synthetic grid; ``--data properties loans`` adds the real data (loans need ``DPAUDIT_DATA``).
``-o FILE`` writes them to a file as well. Regrets are in standard deviations of f.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial

import numpy as np

from dpaudit.base import files, validate
from private_bo import experiments
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
    loans,
    properties,
)

_DELTA = 1e-5
_LENGTH = 5.0
_MODEL_NOISE = 0.05  # variance that an ordinary kernel is given for the noise of its inputs
_WIDTH = 0.7


class Setting(StrEnum):
    """The data of an experiment."""

    GRID = "grid"
    PROPERTIES = "properties"
    LOANS = "loans"

    @property
    def heading(self) -> str:
        """Title of its table, with the number of rounds."""
        return {
            Setting.GRID: "Synthetic grid, S₅₀",
            Setting.PROPERTIES: "Properties in Taipei, S₁₀₀",
            Setting.LOANS: "Loans, S₅₀",
        }[self]


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Attributes:
        curator: who releases; None for the rows themselves.
        modeller: who searches.
    """

    curator: Curator | CertifiedCurator | None
    modeller: Modeller

    @property
    def curator_name(self) -> str:
        """Who releases, for the table."""
        if self.curator is None:
            return "none (rows in the clear)"
        if isinstance(self.curator, Curator):
            return f"paper (refuted), r = {self.curator.dimension}"
        return f"certified, {self.curator.mechanism.kind}"

    @property
    def epsilon_name(self) -> str:
        """ε as a power of e, for the table."""
        if self.curator is None:
            return "∞"
        exponent = round(math.log(self.curator.epsilon), 6)
        return "1" if exponent == 0 else f"e^{exponent:g}"

    @property
    def modeller_name(self) -> str:
        """Kernel and width of the modeller, for the table."""
        width = self.modeller.width_multiplier
        kernel = "" if not isinstance(self.curator, CertifiedCurator) else self.modeller.inputs
        return f"{kernel or 'ordinary'} kernel, {'theory' if width == 1 else f'{width:g} ×'} width"


def grid_cells(dimensions: Mapping[float, Sequence[int]]) -> list[Cell]:
    """All of the synthetic experiment: T = 50 after 10 initial rows.

    Args:
        dimensions: r of the paper's tables, by the exponent of ε.
    """
    given = Hyperparameters(_LENGTH)
    theory, narrow = Modeller(given), Modeller(given, width_multiplier=_WIDTH)
    cells = [Cell(None, theory), Cell(None, narrow)]
    for exponent, choices in dimensions.items():
        for r in choices:
            curator = Curator(math.exp(exponent), _DELTA, dimension=r)
            cells.append(Cell(curator, theory))
    for exponent in (0.0, 0.9, 1.1, 1.3):
        cells.extend(_certified(math.exp(exponent), theory, narrow))
    return cells


def _certified(epsilon: float, theory: Modeller, narrow: Modeller) -> Iterator[Cell]:
    """Both kinds of noise under the expected kernel, and the Gaussian under the simpler ones."""
    laplace = CertifiedCurator(epsilon, _DELTA, noise=RowNoise.LAPLACE)
    gaussian = CertifiedCurator(epsilon, _DELTA, noise=RowNoise.GAUSSIAN, rows=10_000)
    yield Cell(laplace, narrow)
    yield Cell(laplace, theory)
    yield Cell(gaussian, narrow)
    yield Cell(gaussian, theory)
    noisy = Hyperparameters(_LENGTH, noise_variance=_MODEL_NOISE)
    yield Cell(gaussian, Modeller(noisy, inputs=InputModel.DEBIASED))
    yield Cell(gaussian, Modeller(noisy, inputs=InputModel.ORDINARY))


def real_cells(setting: Setting) -> list[Cell]:
    """The real data: r = 15, hyperparameters by maximum likelihood on what was released."""
    columns, steps = (2, 100) if setting is Setting.PROPERTIES else (3, 50)
    exponents = (0.5, 1.0, 2.8) if setting is Setting.PROPERTIES else (1.0, 2.0, 2.9)
    delta = 1e-4 if setting is Setting.PROPERTIES else _DELTA
    modeller = Modeller(None, steps=steps)
    narrow = Modeller(None, steps=steps, width_multiplier=_WIDTH)
    cells = [Cell(None, modeller), Cell(None, narrow)]
    for exponent in exponents:
        epsilon = math.exp(exponent)
        cells.append(Cell(Curator(epsilon, delta, 15, columns), modeller))
        cells.append(Cell(CertifiedCurator(epsilon, delta, 15, columns), modeller))
        cells.append(Cell(CertifiedCurator(epsilon, delta, 15, columns), narrow))
    return cells


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


_EXPONENTS = (1.1, 1.3, 1.5)
_DIMENSIONS = {
    1.1: (3, 6, 8, 10, 15, 20),
    1.3: (3, 9, 12, 15, 20, 30),
    1.5: (5, 10, 15, 20, 30, 50),
}


@dataclass(frozen=True)
class Outcome:
    """Regrets of one cell.

    Attributes:
        cell: what was run.
        regrets: simple regret after the last round of each trial, (trials,).
    """

    cell: Cell
    regrets: Array


def regrets(
    setting: Setting, cells: Sequence[Cell], *, trials: int = 50, seed: int = 0, workers: int = 1
) -> list[Outcome]:
    """Run all cells; trial k of every cell has the same function and initial rows.

    The result does not depend on the number of workers.

    Args:
        setting: which data.
        cells: what to run on them.
        trials: runs of each cell, at least 2.
        seed: of everything.
        workers: processes.
    """
    validate.integer_at_least(2, trials=trials)
    _, seed, workers = experiments.trial_numbers(trials, seed, workers)
    seeds = np.random.SeedSequence(seed).spawn(trials)
    rows = experiments.in_parallel(run_trial, ((setting, cells, child) for child in seeds), workers)
    columns = zip(*rows, strict=True)
    return [Outcome(cell, np.array(values)) for cell, values in zip(cells, columns, strict=True)]


def branch_table() -> str:
    """ω against σ_min on the grid, and the largest r of the paper's tables without inflation."""
    grid = grid_problem(np.random.default_rng(0)).rows
    least = float(np.linalg.svd(grid - grid.mean(axis=0), compute_uv=False)[-1])
    rows = []
    for exponent in _EXPONENTS:
        omegas = {
            r: Curator(math.exp(exponent), 1e-5, dimension=r).omega for r in _DIMENSIONS[exponent]
        }
        shown = ", ".join(f"{r}: {omega:.0f}" for r, omega in omegas.items())
        largest = max(r for r, omega in omegas.items() if least >= omega)
        rows.append((f"e^{exponent}", shown, largest))
    heads = ("ε", "ω(r)", "largest r with σ_min ≥ ω")
    return f"σ_min = {least:.2f}\n\n{experiments.table(heads, rows)}\n"


def regret_table(title: str, outcomes: Sequence[Outcome]) -> str:
    """A Markdown table with standard errors."""
    rows = [
        (
            *(o.cell.curator_name, o.cell.epsilon_name, o.cell.modeller_name),
            "{:.3f} ± {:.3f}".format(*experiments.mean_and_error(o.regrets)),
        )
        for o in outcomes
    ]
    heads = ("curator", "ε", "modeller", "regret")
    return f"## {title} ({len(outcomes[0].regrets)} runs)\n\n{experiments.table(heads, rows)}\n"


def _tables(given: argparse.Namespace) -> str:
    run = {"trials": given.trials, "seed": given.seed, "workers": given.workers}
    parts = []
    for setting in map(Setting, given.data):
        if setting is Setting.GRID:
            parts.append("## Branch\n\n" + branch_table())
            cells = grid_cells(_DIMENSIONS)
        else:
            cells = real_cells(setting)
        parts.append(regret_table(setting.heading, regrets(setting, cells, **run)))
    text = "\n".join(parts)
    if given.output is not None:
        files.write(given.output, text)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 3 for wrong input."""
    about = "Simple regrets of the paper's curator and of a private one."
    parser = experiments.options("private_bo.outsourced.experiments.tables", about, trials=50)
    names = [str(setting) for setting in Setting]
    parser.add_argument("--data", nargs="+", choices=names, default=[str(Setting.GRID)])
    return experiments.command(_tables, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
