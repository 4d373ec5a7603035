"""Figures 2 and 3 of Dai, Low & Jaillet 2021, and what an equal certified ε buys.

``python -m private_bo.federated.experiments.figures figure2`` prints Figure 2 a–d on synthetic
functions; ``figure3`` the privacy and utility of Figure 3 a on landmine fields (``DPAUDIT_DATA``)
or, with ``--task digits``, on digits; ``equal`` compares the paper's noise with the least noise
whose certified ε is the loss that the paper publishes; ``--task rugged`` has functions that 40
rounds do not exhaust. ``-o DIR`` also writes Markdown, JSON and plots.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from dpaudit.accounting import compose
from private_bo.experiments import command, drawing, mean_and_error, options, save, table
from private_bo.federated import DPFTSDE
from private_bo.federated.experiments.cells import (
    Algorithm,
    Cells,
    Experiment,
    Regrets,
    Task,
    comparisons,
    panels,
    problem_of,
    regrets_of,
)
from private_bo.gp.types import Array


def document(
    title: str, shown: Mapping[str, Cells], regrets: Regrets, pairs: Sequence[tuple[str, str]]
) -> str:
    """The tables in Markdown: regret after some rounds, its mean, and paired differences."""
    trials, columns = next(iter(regrets.values())).shape
    T = columns - 1
    marks = sorted({max(1, T // 8), max(1, T // 4), max(1, T // 2), T})
    heads = ["run", "ε by moments", "ε certified", *(f"t = {t}" for t in marks)]
    heads.append(f"mean of t = 1…{T}")
    lines = [f"# {title}", "", f"Simple regret ± standard error of {trials} trials.", ""]
    for panel, cells in shown.items():
        rows = [
            (label, *_stated_and_certified_epsilon(each), *_numbers(regrets[each], marks))
            for label, each in cells.items()
        ]
        lines += [f"## {panel}", "", table(heads, rows), ""]
    # By how much the second has more regret, on the same functions and seeds.
    known = {label: each for panel in shown.values() for label, each in panel.items()}
    rows = [
        (f"{one} against {other}", *_numbers(regrets[known[other]] - regrets[known[one]], [T]))
        for one, other in pairs
        if one in known and other in known
    ]
    heads = ["second less first", f"at t = {T}", f"mean of t = 1…{T}"]
    return "\n".join([*lines, "## Paired differences", "", table(heads, rows), ""])


def _stated_and_certified_epsilon(algorithm: Algorithm) -> tuple[str, str]:
    """ε as papers state it for that z, and as it is certified, both at δ = N^-1.1."""
    if not isinstance(algorithm, DPFTSDE):
        return "–", "–"
    proved = compose(algorithm.plan()).epsilon(algorithm.target_delta).upper
    return f"{algorithm.published_loss:.2f}", f"{proved:.2f}"


def _numbers(values: Array, marks: Sequence[int]) -> list[str]:
    """Means with standard errors after these rounds, and of the mean over all rounds."""
    shown = [values[:, t] for t in marks] + [values[:, 1:].mean(axis=1)]
    return ["{:.4f} ± {:.4f}".format(*mean_and_error(each)) for each in shown]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "Figures 2 and 3 of Dai, Low & Jaillet 2021."
    parser = options("private_bo.federated.experiments.figures", about, trials=20)
    parser.add_argument("experiment", choices=[str(each) for each in Experiment])
    parser.add_argument("--task", choices=[str(each) for each in Task])
    parser.add_argument("--rounds", type=int, help="T; the paper's by default")
    return command(_run, parser.parse_args(arguments))


def _run(given: argparse.Namespace) -> str:
    experiment = Experiment(given.experiment)
    usual = Task.LANDMINES if experiment is Experiment.FIGURE_3 else Task.SYNTHETIC
    task = Task(given.task or usual)
    shown = panels(experiment, task, given.rounds)
    algorithms = [each for cells in shown.values() for each in cells.values()]
    problem = problem_of(task, algorithms[0].agents, workers=given.workers)
    regrets = regrets_of(
        algorithms, problem, trials=given.trials, seed=given.seed, workers=given.workers
    )
    text = document(f"{experiment}, {task}", shown, regrets, comparisons(experiment))
    if given.output is not None:
        curves = {
            panel: {label: regrets[each] for label, each in cells.items()}
            for panel, cells in shown.items()
        }
        record = {
            panel: {label: values.tolist() for label, values in by_label.items()}
            for panel, by_label in curves.items()
        }
        save(
            given.output,
            f"federated_{experiment}_{task}",
            text,
            record,
            lambda end: drawing(curves, end, regret="simple regret", first=0),
        )
    return text + "\n"


if __name__ == "__main__":
    sys.exit(main())
