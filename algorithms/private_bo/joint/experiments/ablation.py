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
from private_bo.experiments import Curves, command, table
from private_bo.gp import Ball, EigenFeatures, QuadratureFeatures, SquaredExponential
from private_bo.joint import JointGPUCB, LocalJointGPUCB, Noise
from private_bo.joint.experiments.figures import (
    Configurations,
    arguments,
    curves_of,
    final,
    write,
)

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
) -> tuple[Curves, dict[str, float]]:
    """Curves and the proved ε by name."""
    public: dict[str, Any] = {"epsilon": alpha, "steps": steps}
    configs: Configurations = {
        name: (JointGPUCB(**public, **fields), True) for name, fields in ABLATIONS.items()
    }
    configs["local, tight"] = (LocalJointGPUCB(**public), True)
    configs["local, no matrix"] = (LocalJointGPUCB(**public, matrix_weight=0.0), True)
    configs["local, paper"] = (LocalJointGPUCB(**public, noise=Noise.PAPER), True)
    curves = curves_of(configs, trials=trials, steps=steps, seed=seed, workers=workers)
    return curves, {
        name: guarantee(config.plan(), config.delta).epsilon
        for name, (config, _) in configs.items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "What each improvement of the joint algorithm is worth."
    return command(_run, arguments("ablation", about, argv, steps=1024, trials=20))


def _run(given: argparse.Namespace) -> str:
    panels: dict[str, Curves] = {}
    proved: list[dict[str, float]] = []
    alphas = (0.1, 1.0, 10.0)
    numbers = {name: getattr(given, name) for name in ("trials", "steps", "seed", "workers")}
    for alpha in alphas:
        panels[f"α = {alpha:g}, β = 0.1"], epsilons = ablation(alpha=alpha, **numbers)
        proved.append(epsilons)
    rows = [
        [name]
        + [
            cell
            for epsilons, curves in zip(proved, panels.values(), strict=True)
            for cell in (f"{epsilons[name]:.4g}", final(curves[name]))
        ]
        for name in proved[0]
    ]
    heads = ["variant", *(head for alpha in alphas for head in (f"ε, α = {alpha:g}", "regret"))]
    text = (
        "# Ablation of the joint algorithm\n\n"
        f"T = {given.steps}, β = 0.1, mean final regret of {given.trials} trials ± standard error, "
        f"seed {given.seed}; ε is what is proved at β.\n\n{table(heads, rows)}\n"
    )
    return write(given.output, "joint_ablation", text, panels)


if __name__ == "__main__":
    sys.exit(main())
