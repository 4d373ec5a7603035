"""Simple regrets of Kharkovskii, Dai & Low 2020 beside those of a curator that is private.

``python -m private_bo.outsourced.experiments.tables`` prints the branch and the regret tables
of the synthetic grid; ``--data properties loans`` adds the real data (loans need ``DPAUDIT_DATA``).
``-o FILE`` writes them to a file as well. Regrets are in standard deviations of f.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.base import files, validate
from private_bo import experiments
from private_bo.gp.types import Array
from private_bo.outsourced import Curator, grid_problem
from private_bo.outsourced.experiments.cells import Cell, Setting, grid_cells, real_cells
from private_bo.outsourced.experiments.trials import run_trial

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
