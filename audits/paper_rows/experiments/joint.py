"""Dubey 2021: Figures 1 and 2, Table 1, theorem widths, local privacy and doubling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from audits.paper_rows.experiments import Experiment
from private_bo.gp.types import Array
from private_bo.joint import JointGPUCB, LocalJointGPUCB, Noise
from private_bo.joint.experiments.figures import Configurations, run_trial
from private_bo.joint.experiments.table1 import ALPHAS as TABLE_ALPHAS
from private_bo.joint.experiments.table1 import configuration
from private_bo.joint.statistics import Width
from private_bo.joint.subject import BENCHMARKS, benchmark, bump

ALPHAS, BETAS = (0.1, 0.5, 1.0, 10.0), (0.01, 0.1, 0.5, 0.99)
NON_PRIVATE, UNIFORM = "non-private", "uniform play"
_REFRESH = 0.1  # V is factorised 97 times in 10 000 rounds, not 465: a third less work
_THEORY: dict[str, Any] = {"width": Width.THEOREM, "width_multiplier": 1.0}


def figure_label(noise: str, alpha: float, beta: float) -> str:
    """The cell of Figure 1 or 2."""
    return f"{noise} noise, α = {alpha:g}, β = {beta:g}"


def _figures() -> Configurations:
    points = [(alpha, 0.1) for alpha in ALPHAS] + [(1.0, beta) for beta in BETAS if beta != 0.1]
    made: Configurations = {NON_PRIVATE: (JointGPUCB(), False)}
    for noise in (Noise.PAPER, Noise.TIGHT):
        for alpha, beta in points:
            config = JointGPUCB(epsilon=alpha, delta=beta, noise=noise)
            made[figure_label(noise, alpha, beta)] = (config, True)
    made |= {
        "theorem's width, non-private": (JointGPUCB(**_THEORY), False),
        "theorem's width, tight noise, α = 1": (JointGPUCB(**_THEORY), True),
        "doubling, tight noise, α = 1": (JointGPUCB(doubling=True), True),
        "local, tight noise, α = 1": (LocalJointGPUCB(), True),
        "local, tight noise, α = 10": (LocalJointGPUCB(epsilon=10.0), True),
        "local, paper noise, α = 10": (LocalJointGPUCB(epsilon=10.0, noise=Noise.PAPER), True),
        "local, theorem's width, α = 10": (LocalJointGPUCB(epsilon=10.0, **_THEORY), True),
    }
    return made


def _table(steps: int) -> dict[str, Configurations]:
    found: dict[str, Configurations] = {}
    for name in BENCHMARKS:
        least = replace(configuration(name, steps=steps), refresh=_REFRESH)
        cells: Configurations = {f"{name}, {NON_PRIVATE}": (least, False)}
        for noise in (Noise.PAPER, Noise.TIGHT):
            for alpha in TABLE_ALPHAS:
                config = replace(least, epsilon=alpha, noise=noise)
                cells[f"{name}, {noise} noise, α = {alpha:g}"] = (config, True)
        found[name] = cells
    return found


def _run(cells: Sequence[str], trial: int, table: bool, steps: int) -> Mapping[str, Array]:
    known = _table(steps) if table else {"bump": _figures()}
    seed = np.random.SeedSequence(0, spawn_key=(0, trial))
    found = {}
    for source, configs in known.items():
        for place, (label, (config, private)) in enumerate(configs.items()):
            if label in cells:
                noise = np.random.SeedSequence(0, spawn_key=(1, place, trial))
                found[label] = run_trial(config, private, source, steps, seed, noise)
        label = f"{source}, {UNIFORM}" if table else UNIFORM
        if label in cells:
            rng = np.random.default_rng(seed)
            problem = benchmark(source, rng, steps) if table else bump(rng, steps)
            found[label] = np.linspace(0.0, problem.uniform_regret(), steps + 1)[1:]
    return found


_LONG, _SHORT = 10_000, 1024
_FIGURES = (*_figures(), UNIFORM)
_TABLE = tuple(
    label for name, cells in _table(_LONG).items() for label in (*cells, f"{name}, {UNIFORM}")
)
EXPERIMENTS = (
    Experiment(
        "joint-figures", "Dubey, Figures 1 and 2", _FIGURES,
        partial(_run, table=False, steps=_SHORT), 20, _FIGURES,
        tuple(label for label, (_, private) in _figures().items() if private),
    ),
    Experiment(
        "joint-table", "Dubey, Table 1 at T = 10 000", _TABLE,
        partial(_run, table=True, steps=_LONG), 10,
        ("camelback, paper noise, α = 1", *(f"{name}, {NON_PRIVATE}" for name in BENCHMARKS)),
        ("camelback, paper noise, α = 1",),
    ),
)  # fmt: skip
