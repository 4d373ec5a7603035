"""Figures 2 and 3 of Dai, Low & Jaillet 2021, and what an equal certified ε buys.

``python -m private_bo.federated.experiments.figures figure2`` prints Figure 2 a–d on synthetic
functions; ``figure3`` the privacy and utility of Figure 3 a on landmine fields (``DPAUDIT_DATA``)
or, with ``--task digits``, on digits; ``equal`` compares the paper's noise with the least noise
whose certified ε is the loss that the paper publishes; ``--task rugged`` has functions that 40
rounds do not exhaust. ``-o DIR`` also writes Markdown, JSON and plots.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import files
from dpaudit.accounting import compose
from dpaudit.errors import InputError
from private_bo.federated import DPFTSDE
from private_bo.federated.experiments.cells import (
    Algorithm,
    Cells,
    Experiment,
    Task,
    comparisons,
    panels,
)
from private_bo.federated.experiments.runs import (
    Curves,
    curves_of,
    difference,
    mean_and_error,
    problem_of,
)

__all__ = ["document", "main"]


def document(
    title: str,
    shown: Mapping[str, Cells],
    curves: Curves,
    pairs: Sequence[tuple[str, str]],
) -> str:
    """The tables in Markdown: regret after some rounds, its mean, and paired differences."""
    trials, columns = next(iter(curves.values())).shape
    T = columns - 1
    marks = sorted({max(1, T // 8), max(1, T // 4), max(1, T // 2), T})
    lines = [f"# {title}", "", f"Simple regret ± standard error of {trials} trials.", ""]
    heads = ["run", "ε by moments", "ε certified", *(f"t = {t}" for t in marks)]
    heads.append(f"mean of t = 1…{T}")
    for panel, cells in shown.items():
        lines += [f"## {panel}", "", _row(heads), _row(["---"] * len(heads))]
        for label, algorithm in cells.items():
            regrets = [_number(*mean_and_error(curves[algorithm][:, t])) for t in marks]
            regrets.append(_number(*mean_and_error(curves[algorithm][:, 1:].mean(axis=1))))
            lines.append(_row([label, *_losses(algorithm), *regrets]))
        lines.append("")
    cells = {label: each for panel in shown.values() for label, each in panel.items()}
    lines += _differences(cells, curves, pairs, T)
    return "\n".join(lines)


def _differences(
    cells: Cells, curves: Curves, pairs: Sequence[tuple[str, str]], T: int
) -> list[str]:
    """By how much the second has more regret, on the same functions and seeds."""
    heads = ["second less first", f"at t = {T}", f"mean of t = 1…{T}"]
    lines = ["## Paired differences", "", _row(heads), _row(["---"] * 3)]
    for one, other in pairs:
        if one in cells and other in cells:
            more = difference(curves, cells[one], cells[other])
            ends, means = more[:, -1], more[:, 1:].mean(axis=1)
            found = [_number(*mean_and_error(values)) for values in (ends, means)]
            lines.append(_row([f"{one} against {other}", *found]))
    return [*lines, ""]


def _losses(algorithm: Algorithm) -> tuple[str, str]:
    """ε as papers state it for that z, and as it is certified, both at δ = N^-1.1."""
    if not isinstance(algorithm, DPFTSDE):
        return "–", "–"
    proved = compose(algorithm.plan()).epsilon(algorithm.target_delta).upper
    return f"{algorithm.published_loss:.2f}", f"{proved:.2f}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(mean: float, error: float) -> str:
    return f"{mean:.4f} ± {error:.4f}"


def drawing(shown: Mapping[str, Cells], curves: Curves, file_format: str) -> bytes:
    """Simple regret against rounds, with bands of one standard error, one plot a panel."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(4.8 * len(shown), 4.0), layout="constrained")
    for place, (title, cells) in enumerate(shown.items(), start=1):
        axes = drawn.add_subplot(1, len(shown), place)
        for label, algorithm in cells.items():
            values = curves[algorithm]
            mean, rounds = values.mean(axis=0), np.arange(values.shape[1])
            error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            (line,) = axes.plot(rounds, mean, label=label)
            axes.fill_between(
                rounds, mean - error, mean + error, color=line.get_color(), alpha=0.2, lw=0
            )
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("round")
        axes.set_ylabel("simple regret")
        axes.legend(fontsize=7, frameon=False)
    content = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if file_format == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "federated"}):
        drawn.savefig(content, format=file_format, dpi=130, metadata=metadata)
    return content.getvalue()


def _save(folder: Path, name: str, text: str, shown: Mapping[str, Cells], curves: Curves) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"output {str(folder)!r} cannot be made: {error.strerror}; give a writable folder."
        ) from None
    record = {
        panel: {label: curves[each].tolist() for label, each in cells.items()}
        for panel, cells in shown.items()
    }
    files.write(folder / f"{name}.md", text)
    files.write(folder / f"{name}.json", files.pretty_json(record))
    for file_format in ("png", "svg"):
        files.write(folder / f"{name}.{file_format}", drawing(shown, curves, file_format))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m private_bo.federated.experiments.figures")
    parser.add_argument("experiment", choices=[str(each) for each in Experiment])
    parser.add_argument("--task", choices=[str(each) for each in Task])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, help="T; the paper's by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR")
    given = parser.parse_args(arguments)
    try:
        sys.stdout.write(_run(given) + "\n")
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


def _run(given: argparse.Namespace) -> str:
    experiment = Experiment(given.experiment)
    usual = Task.LANDMINES if experiment is Experiment.FIGURE_3 else Task.SYNTHETIC
    task = Task(given.task or usual)
    shown = panels(experiment, task, given.rounds)
    algorithms = [each for cells in shown.values() for each in cells.values()]
    problem = problem_of(task, algorithms[0].agents, workers=given.workers)
    curves = curves_of(
        algorithms, problem, trials=given.trials, seed=given.seed, workers=given.workers
    )
    text = document(f"{experiment}, {task}", shown, curves, comparisons(experiment))
    if given.output is not None:
        _save(given.output, f"federated_{experiment}_{task}", text, shown, curves)
    return text


if __name__ == "__main__":
    sys.exit(main())
