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
from pathlib import Path

import numpy as np

from dpaudit import files, validate
from dpaudit.errors import InputError
from private_bo.outsourced import Curator, grid_problem
from private_bo.outsourced.experiments.cells import Cell, Setting, grid_cells, real_cells
from private_bo.outsourced.experiments.trials import run_trial

__all__ = ["Outcome", "branch_table", "main", "regrets", "table"]

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
        regrets: simple regret after the last round of each trial.
    """

    cell: Cell
    regrets: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over trials."""
        return float(np.mean(self.regrets))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(np.std(self.regrets, ddof=1) / math.sqrt(len(self.regrets)))


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
    from joblib import Parallel, delayed, parallel_config

    validate.integer_at_least(2, trials=trials)
    validate.integer_at_least(1, workers=workers)
    seeds = np.random.SeedSequence(seed).spawn(trials)
    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        rows = Parallel()(delayed(run_trial)(setting, cells, child) for child in seeds)
    columns = zip(*rows, strict=True)
    return [Outcome(cell, values) for cell, values in zip(cells, columns, strict=True)]


def branch_table() -> str:
    """ω against σ_min on the grid, and the largest r of the paper's tables without inflation."""
    rows = grid_problem(np.random.default_rng(0)).rows
    least = float(np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)[-1])
    lines = [f"σ_min = {least:.2f}", "", "| ε | ω(r) | largest r with σ_min ≥ ω |", "|---|---|---|"]
    for exponent in _EXPONENTS:
        omegas = {
            r: Curator(math.exp(exponent), 1e-5, dimension=r).omega for r in _DIMENSIONS[exponent]
        }
        shown = ", ".join(f"{r}: {omega:.0f}" for r, omega in omegas.items())
        largest = max(r for r, omega in omegas.items() if least >= omega)
        lines.append(f"| e^{exponent} | {shown} | {largest} |")
    return "\n".join(lines) + "\n"


def table(title: str, outcomes: Sequence[Outcome]) -> str:
    """A Markdown table with standard errors."""
    trials = len(outcomes[0].regrets)
    lines = [
        f"## {title} ({trials} runs)",
        "",
        "| curator | ε | modeller | regret |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {o.cell.curator_name} | {o.cell.epsilon_name} | {o.cell.modeller_name} "
        f"| {o.mean:.3f} ± {o.error:.3f} |"
        for o in outcomes
    ]
    return "\n".join(lines) + "\n"


def _tables(options: argparse.Namespace) -> str:
    run = {"trials": options.trials, "seed": options.seed, "workers": options.workers}
    parts = []
    for setting in map(Setting, options.data):
        if setting is Setting.GRID:
            parts.append("## Branch\n\n" + branch_table())
            cells = grid_cells(_DIMENSIONS)
        else:
            cells = real_cells(setting)
        parts.append(table(setting.heading, regrets(setting, cells, **run)))
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 3 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m private_bo.outsourced.experiments.tables")
    names = [str(setting) for setting in Setting]
    parser.add_argument("--data", nargs="+", choices=names, default=[str(Setting.GRID)])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    try:
        text = _tables(options)
        if options.output is not None:
            files.write(options.output, text)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
