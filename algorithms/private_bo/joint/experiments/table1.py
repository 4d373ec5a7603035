"""Table 1 of Dubey 2021: regret on three test functions, T = 10 000.

``python -m private_bo.joint.experiments.table1 -o DIR`` writes ``joint_table1.md``, ``.json``,
``.png`` and ``.svg`` to DIR.

The text does not say how decision sets, rewards and kernels were chosen. Here every round has 25
uniform points of the domain; functions are scaled to [0, 1] by their known extremes; rewards have
normal noise of deviation 0.1 and are clipped to [−0.25, 1.25]; regret is against the best point of
the round. Camelback has 64 eigenfeatures (SE, l = 0.2), Styblinski–Tang-20 additive quadrature
features, 8 a coordinate (SE, l = 0.4), Michalewicz-10 additive eigenfeatures, 20 a coordinate (SE,
l = 0.08).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from private_bo.experiments import Curves, command, table
from private_bo.joint import JointGPUCB, Noise
from private_bo.joint.experiments.figures import (
    Configurations,
    arguments,
    curves_of,
    final,
    write,
)
from private_bo.joint.subject import BENCHMARKS, benchmark, benchmark_features

ALPHAS = (10.0, 1.0, 0.1)
PRINTED = {
    "camelback": (519, 775, 1029, 3324),
    "styblinski-tang-20": (885, 1667, 2680, 4493),
    "michalewicz-10": (901, 1558, 2883, 5002),
}
"""Non-private, then private at α = 10, 1 and 0.1."""


def configuration(
    name: str, *, alpha: float = 1.0, steps: int = 10_000, noise: Noise = Noise.TIGHT
) -> JointGPUCB:
    """The algorithm for one function; β = 0.1."""
    return JointGPUCB(
        epsilon=alpha,
        steps=steps,
        noise=noise,
        reward_range=(-0.25, 1.25),
        feature_map=benchmark_features(name),
        noise_variance=0.005,
        prior_variance=0.05,
    )


def table1(
    *, trials: int = 10, steps: int = 10_000, seed: int = 0, workers: int = 1
) -> dict[str, Curves]:
    """Curves by function."""
    panels: dict[str, Curves] = {}
    for name in BENCHMARKS:
        configs: Configurations = {"non-private": (configuration(name, steps=steps), False)}
        for noise in (Noise.TIGHT, Noise.PAPER):
            for alpha in ALPHAS:
                config = configuration(name, alpha=alpha, steps=steps, noise=noise)
                configs[f"{noise}, α = {alpha:g}"] = (config, True)
        panels[name] = curves_of(
            configs, source=name, steps=steps, trials=trials, seed=seed, workers=workers
        )
    return panels


def document(panels: dict[str, Curves], given: argparse.Namespace) -> str:
    """The table in Markdown, with the printed figures."""
    rows: list[tuple[object, ...]] = []
    for name, curves in panels.items():
        problem = benchmark(name, np.random.default_rng(given.seed), min(given.steps, 1000))
        uniform = problem.uniform_regret() * given.steps / problem.rounds
        rows.append((name, "uniform play", f"{uniform:.0f}"))
        rows += [(name, label, final(values)) for label, values in curves.items()]
    heads = ("function", "non-private", *(f"α = {alpha:g}" for alpha in ALPHAS))
    settings = (__doc__ or "").split("\n\n")[2].replace("\n", " ").strip()
    return (
        "# Table 1 of Dubey 2021\n\n"
        f"Regret at T = {given.steps}, β = 0.1, mean of {given.trials} trials ± standard error, "
        f"seed {given.seed}. {settings}\n\n"
        f"{table(('function', 'run', 'regret'), rows)}\n\n"
        "## What the paper prints\n\n"
        "At T = 10 000, in a scale that it does not state: ratios to its own non-private figure "
        "can be compared, the figures themselves cannot.\n\n"
        f"{table(heads, [(name, *figures) for name, figures in PRINTED.items()])}\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "Table 1 of Dubey 2021."
    return command(_run, arguments("table1", about, argv, steps=10_000, trials=10))


def _run(given: argparse.Namespace) -> str:
    panels = table1(trials=given.trials, steps=given.steps, seed=given.seed, workers=given.workers)
    return write(given.output, "joint_table1", document(panels, given), panels)


if __name__ == "__main__":
    sys.exit(main())
