"""Trials of the joint and local-joint algorithms, and the non-private comparator."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dpaudit import Ledger, files, validate
from dpaudit.errors import InputError
from private_bo.gp.types import Array
from private_bo.joint import Estimate, JointServer
from private_bo.joint.problems import BENCHMARKS, DecisionProblem, benchmark, bump
from private_bo.joint.statistics import CentredStatistics, Sums
from private_bo.joint.subject import PrivateApproximateGPUCB

__all__ = ["Curves", "arguments", "command", "curves_of", "figure", "nonprivate_regret", "save"]

Curves: TypeAlias = dict[str, Array]
"""Cumulative regret by label, (trials, rounds)."""


def nonprivate_regret(config: PrivateApproximateGPUCB, problem: DecisionProblem) -> Array:
    """Cumulative regret of the same algorithm on exact sums; no claim of any kind."""
    statistics = CentredStatistics(config.size, config.reward_range)
    learner = replace(config.learner(), estimate=Estimate.SHRUNK)
    server = JointServer(config.feature_map, learner, config.refresh)
    matrix, vector = np.zeros((config.size, config.size)), np.zeros(config.size)
    choices: list[int] = []
    for turn in range(problem.rounds):
        if turn and server.due(turn):
            server.observe(Sums(turn, vector, matrix, 0.0, 0.0))
        arm, phi = server.choose(problem.decision_set(turn))
        matrix += np.outer(phi, phi)
        vector += statistics.value(problem.reward(turn, arm)) * phi
        choices.append(arm)
    return problem.regret(choices)


def run_trial(
    config: PrivateApproximateGPUCB,
    private: bool,
    source: str,
    steps: int,
    seed: np.random.SeedSequence,
    noise_seed: np.random.SeedSequence,
) -> Array:
    """One trial: cumulative regret, (steps,)."""
    rng = np.random.default_rng(seed)
    problem = benchmark(source, rng, steps) if source in BENCHMARKS else bump(rng, steps)
    if not private:
        return nonprivate_regret(config, problem)
    rng = np.random.default_rng(noise_seed)
    with Ledger(config.plan(), rng=rng) as ledger:
        result = config.run(problem, ledger, rng)
    return np.array(result.series["cumulative regret"])


def curves_of(
    configs: Mapping[str, tuple[PrivateApproximateGPUCB, bool]],
    *,
    source: str = "bump",
    steps: int = 1024,
    trials: int = 20,
    seed: int = 0,
    workers: int = 1,
) -> Curves:
    """Run all configurations on the same problems; the result does not depend on the workers.

    Args:
        configs: by label, with whether it is run privately.
        source: ``bump`` or a benchmark.
        steps: T.
        trials: problems, each with a seed of its own.
        seed: root of all randomness.
        workers: processes.

    Raises:
        InputError: if a number is no positive integer.
    """
    from joblib import Parallel, delayed

    trials = validate.integer_at_least(1, trials=trials)
    workers = validate.integer_at_least(1, workers=workers)
    root = np.random.SeedSequence(validate.integer_at_least(0, seed=seed)).entropy
    jobs = (
        delayed(run_trial)(
            config,
            private,
            source,
            steps,
            np.random.SeedSequence(root, spawn_key=(0, trial)),
            np.random.SeedSequence(root, spawn_key=(1, place, trial)),
        )
        for place, (config, private) in enumerate(configs.values())
        for trial in range(trials)
    )
    runs = Parallel(n_jobs=workers)(jobs)
    return {
        label: np.array(runs[place * trials : (place + 1) * trials])
        for place, label in enumerate(configs)
    }


def final(curves: Array) -> tuple[float, float]:
    """Mean final regret and its standard error."""
    ends = curves[:, -1]
    error = float(ends.std(ddof=1) / np.sqrt(len(ends))) if len(ends) > 1 else 0.0
    return float(ends.mean()), error


def figure(panels: Mapping[str, Curves], file_format: str) -> bytes:
    """Mean cumulative regret with a band of one standard error, one plot a panel."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(5.2 * len(panels), 4.2), layout="constrained")
    for place, (title, curves) in enumerate(panels.items(), start=1):
        axes = drawn.add_subplot(1, len(panels), place)
        for label, values in curves.items():
            mean = values.mean(axis=0)
            error = values.std(axis=0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
            rounds = np.arange(1, mean.size + 1)
            (line,) = axes.plot(rounds, mean, label=label)
            axes.fill_between(
                rounds, mean - error, mean + error, color=line.get_color(), alpha=0.2, lw=0
            )
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("round")
        axes.set_ylabel("cumulative regret")
        axes.legend(fontsize=7, frameon=False)
    content = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if file_format == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "joint"}):
        drawn.savefig(content, format=file_format, dpi=130, metadata=metadata)
    return content.getvalue()


def save(folder: Path, name: str, text: str, panels: Mapping[str, Curves]) -> None:
    """Write the Markdown, the curves and the plots, and show the Markdown.

    Raises:
        InputError: if the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"output {str(folder)!r} cannot be made: {error.strerror}; give a writable folder."
        ) from None
    files.write(folder / f"{name}.md", text)
    if panels:
        record = {
            title: {
                label: {"mean": c.mean(axis=0).tolist(), "final": c[:, -1].tolist()}
                for label, c in curves.items()
            }
            for title, curves in panels.items()
        }
        files.write(folder / f"{name}.json", files.pretty_json(record))
        for file_format in ("png", "svg"):
            files.write(folder / f"{name}.{file_format}", figure(panels, file_format))
    sys.stdout.write(text)


def arguments(
    name: str, about: str, argv: Sequence[str] | None, *, steps: int, trials: int
) -> argparse.Namespace:
    """The options that all these commands have."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("-o", "--output", type=Path, default=Path("out"), metavar="DIR")
    parser.add_argument("--trials", type=int, default=trials)
    parser.add_argument("--steps", type=int, default=steps, help="T")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    return parser.parse_args(argv)


def command(run: Callable[[argparse.Namespace], None], given: argparse.Namespace) -> int:
    """Run a command; returns the exit code, 3 for wrong input."""
    try:
        run(given)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0
