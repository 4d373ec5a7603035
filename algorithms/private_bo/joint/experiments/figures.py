"""Figures 1 and 2 of Dubey 2021: cumulative regret against α and against β.

``python -m private_bo.joint.experiments.figures -o DIR`` writes ``joint_figures.md``, ``.json``,
``.png`` and ``.svg`` to DIR, and the table to the terminal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dpaudit import Ledger
from private_bo import experiments
from private_bo.experiments import Curves, command, table
from private_bo.gp.types import Array
from private_bo.joint import Estimate, JointGPUCB, JointServer, Noise
from private_bo.joint.statistics import CentredStatistics, Sums
from private_bo.joint.subject import (
    BENCHMARKS,
    DecisionProblem,
    PrivateApproximateGPUCB,
    benchmark,
    bump,
)

Configurations: TypeAlias = dict[str, tuple[PrivateApproximateGPUCB, bool]]
"""Algorithms by label, with whether each is run privately."""


def nonprivate_regret(config: PrivateApproximateGPUCB, problem: DecisionProblem) -> Array:
    """Cumulative regret of the same algorithm on exact sums, (rounds,); no claim of any kind."""
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
    return np.array(result.for_owner.series["cumulative regret"])


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
    """
    trials, root, workers = experiments.trial_numbers(trials, seed, workers)
    jobs = (
        (
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
    runs = experiments.in_parallel(run_trial, jobs, workers)
    return {
        label: np.array(runs[place * trials : (place + 1) * trials])
        for place, label in enumerate(configs)
    }


def final(curves: Array) -> str:
    """Mean final regret and its standard error, in words."""
    return "{:.0f} ± {:.0f}".format(*experiments.mean_and_error(curves[:, -1]))


def arguments(
    name: str, about: str, argv: Sequence[str] | None, *, steps: int, trials: int
) -> argparse.Namespace:
    """The options of these commands, read."""
    parser = experiments.options(f"private_bo.joint.experiments.{name}", about, trials=trials)
    parser.set_defaults(output=Path("out"))
    parser.add_argument("--steps", type=int, default=steps, help="T")
    return parser.parse_args(argv)


def write(folder: Path, name: str, text: str, panels: Mapping[str, Curves]) -> str:
    """Write the Markdown, the curves and the plots; returns the Markdown.

    Raises:
        InputError: if the folder cannot be made.
    """
    record = {
        title: {
            label: {"mean": values.mean(axis=0).tolist(), "final": values[:, -1].tolist()}
            for label, values in curves.items()
        }
        for title, curves in panels.items()
    }
    experiments.save(
        folder, name, text, record, lambda file_format: experiments.drawing(panels, file_format)
    )
    return text


ALPHAS = (0.1, 0.5, 1.0, 10.0)
BETAS = (0.01, 0.1, 0.5, 0.99)
SMALL_BETA = 1e-5


def figures(
    *, trials: int = 20, steps: int = 1024, seed: int = 0, workers: int = 1
) -> dict[str, Curves]:
    """All curves, by panel."""
    points = [(alpha, 0.1) for alpha in ALPHAS] + [(1.0, beta) for beta in (*BETAS, SMALL_BETA)]
    points = list(dict.fromkeys(points))
    configs: Configurations = {"non-private": (JointGPUCB(steps=steps), False)}
    for noise in Noise:
        for alpha, beta in points:
            config = JointGPUCB(epsilon=alpha, delta=beta, steps=steps, noise=noise)
            configs[_label(noise, alpha, beta)] = (config, True)
    runs = curves_of(configs, trials=trials, steps=steps, seed=seed, workers=workers)
    panels: dict[str, Curves] = {}
    for noise in Noise:
        by_alpha = [_label(noise, alpha, 0.1) for alpha in ALPHAS]
        by_beta = [_label(noise, 1.0, beta) for beta in (SMALL_BETA, *BETAS)]
        panels[f"Figure 1, {noise} noise"] = {x: runs[x] for x in ("non-private", *by_alpha)}
        panels[f"Figure 2, {noise} noise"] = {x: runs[x] for x in ("non-private", *by_beta)}
    return panels


def _label(noise: Noise, alpha: float, beta: float) -> str:
    return f"{noise}, α = {alpha:g}, β = {beta:g}"


def document(panels: dict[str, Curves], given: argparse.Namespace) -> str:
    """The table in Markdown."""
    rows = [
        (title, label, final(values))
        for title, curves in panels.items()
        for label, values in curves.items()
    ]
    return (
        "# Figures 1 and 2 of Dubey 2021\n\n"
        f"Regret at T = {given.steps}, mean of {given.trials} trials ± standard error, seed "
        f"{given.seed}.\n\n{table(('panel', 'run', 'final regret'), rows)}\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "Figures 1 and 2 of Dubey 2021."
    return command(_run, arguments("figures", about, argv, steps=1024, trials=20))


def _run(given: argparse.Namespace) -> str:
    panels = figures(trials=given.trials, steps=given.steps, seed=given.seed, workers=given.workers)
    return write(given.output, "joint_figures", document(panels, given), panels)


if __name__ == "__main__":
    sys.exit(main())
