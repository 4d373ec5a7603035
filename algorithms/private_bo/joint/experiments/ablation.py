"""What each improvement of the joint algorithm is worth, at the same certified claim.

``python -m private_bo.joint.experiments.ablation -o DIR`` writes ``joint_ablation.md``, ``.json``
and plots to DIR. One choice at a time is taken back from the default, and a ladder leads from the
paper's algorithm to it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from dpaudit import guarantee
from private_bo.gp import Ball, EigenFeatures, QuadratureFeatures, SquaredExponential
from private_bo.joint import JointGPUCB, LocalJointGPUCB, Noise
from private_bo.joint.experiments.trials import Curves, arguments, command, curves_of, final, save
from private_bo.joint.subject import PrivateApproximateGPUCB

__all__ = ["ABLATIONS", "ablation", "main"]

_KERNEL, _BALL = SquaredExponential(1.0), Ball(2.0, 2)
_UNCENTRED = {"centred": False, "matrix_weight": 2**-0.5}
_TREE = {"continual_noise": "binary-tree"}

ABLATIONS: dict[str, dict[str, Any]] = {
    "the paper's noise and shift": {"noise": "paper"},
    "paper's noise, shrunk estimate": {"noise": "paper", "estimate": "shrunk"},
    "tree, calibrated, without y²": {**_UNCENTRED, **_TREE, "estimate": "shifted"},
    "… and the kernel's sign": {
        **_UNCENTRED,
        **_TREE,
        "estimate": "shifted",
        "nonnegative_kernel": True,
    },
    "… and projection": {
        **_UNCENTRED,
        **_TREE,
        "estimate": "projected",
        "nonnegative_kernel": True,
    },
    "tree, centred, weighted, shifted": {**_TREE, "estimate": "shifted"},
    "tree, centred, weighted, projected": {**_TREE, "estimate": "projected"},
    "tree, centred, weighted, shrunk": {**_TREE, "estimate": "shrunk"},
    "Honaker's tree": {"continual_noise": "honaker-tree"},
    "square root": {"continual_noise": "square-root"},
    "default (buffered Toeplitz)": {},
    "default, shrunk": {"estimate": "shrunk"},
    "default, projected": {"estimate": "projected"},
    "default, not centred": {"centred": False},
    "default, weight 1": {"matrix_weight": 1.0},
    "default, no matrix": {"matrix_weight": 0.0},
    "default, 15 features": {"feature_map": EigenFeatures(_KERNEL, _BALL, 15)},
    "default, 78 features": {"feature_map": EigenFeatures(_KERNEL, _BALL, 78)},
    "default, 144 quadrature features": {"feature_map": QuadratureFeatures(_KERNEL, _BALL, 12)},
    "default, width 1": {"width_multiplier": 1.0},
    "default, theorem's width": {"width": "theorem", "width_multiplier": 1.0},
    "default, doubling": {"doubling": True},
}


def ablation(
    *, alpha: float, trials: int, steps: int, seed: int, workers: int
) -> tuple[Curves, dict[str, tuple[float, float]]]:
    """Curves by name, and (proved ε, deviation of the vector's noise in the last round).

    Raises:
        InputError: if a number is out of range.
    """
    configs: dict[str, tuple[PrivateApproximateGPUCB, bool]] = {
        name: (JointGPUCB(epsilon=alpha, steps=steps, **fields), True)
        for name, fields in ABLATIONS.items()
    }
    configs["local, tight"] = (LocalJointGPUCB(epsilon=alpha, steps=steps), True)
    configs["local, no matrix"] = (
        LocalJointGPUCB(epsilon=alpha, steps=steps, matrix_weight=0.0),
        True,
    )
    configs["local, paper"] = (LocalJointGPUCB(epsilon=alpha, steps=steps, noise=Noise.PAPER), True)
    curves = curves_of(configs, trials=trials, steps=steps, seed=seed, workers=workers)
    facts = {
        name: guarantee(config.plan(), config.delta).epsilon
        for name, (config, _) in configs.items()
    }
    return curves, {name: (epsilon, final(curves[name])[1]) for name, epsilon in facts.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "What each improvement of the joint algorithm is worth."
    return command(_run, arguments("joint_ablation", about, argv, steps=1024, trials=20))


def _run(given: argparse.Namespace) -> None:
    panels: dict[str, Curves] = {}
    facts: dict[float, dict[str, tuple[float, float]]] = {}
    alphas = (0.1, 1.0, 10.0)
    for alpha in alphas:
        title = f"α = {alpha:g}, β = 0.1"
        panels[title], facts[alpha] = ablation(
            alpha=alpha,
            trials=given.trials,
            steps=given.steps,
            seed=given.seed,
            workers=given.workers,
        )
    rows = []
    for name in facts[1.0]:
        cells = [
            "{:.4g} | {:.0f} ± {:.0f}".format(facts[alpha][name][0], *final(curves[name]))
            for alpha, curves in zip(alphas, panels.values(), strict=True)
        ]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    text = (
        "# Ablation of the joint algorithm\n\n"
        f"T = {given.steps}, β = 0.1, mean final regret of {given.trials} trials ± standard error, "
        f"seed {given.seed}; ε is what is proved at β.\n\n"
        "| variant | ε, α = 0.1 | regret | ε, α = 1 | regret | ε, α = 10 | regret |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )
    save(given.output, "joint_ablation", text, panels)


if __name__ == "__main__":
    sys.exit(main())
