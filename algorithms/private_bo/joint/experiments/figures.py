"""Figures 1 and 2 of Dubey 2021: cumulative regret against α and against β.

``python -m private_bo.joint.experiments.figures -o DIR`` writes ``joint_figures.md``, ``.json``,
``.png`` and ``.svg`` to DIR, and the table to the terminal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from private_bo.experiments import Curves, command, table
from private_bo.joint import JointGPUCB, Noise
from private_bo.joint.experiments.trials import Configurations, arguments, curves_of, final, write

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
