"""Zhou & Tan 2021: Figures 2 and 3, and truncation of sub-Weibull rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from audits.paper_rows.experiments import Experiment
from dpaudit.base.fields import Positive
from private_bo.gp import Matern
from private_bo.gp.types import Array
from private_bo.local.experiments.figure2 import (
    PANELS,
    THEOREM,
    TUNED,
    Algorithm,
    Panel,
    Trial,
    run_trial,
)
from private_bo.local.policies import (
    Constants,
    RewardTruncation,
    Users,
    in_the_clear,
    truncated_gp_ucb,
)
from private_bo.problems import BanditProblem, synthetic
from private_bo.problems.bandit import Noise

STEPS, TRIALS = 1000, 30
APPENDIX = (
    Panel("A", "synthetic-se", 1.0, "synthetic, SE"),
    Panel("B", "sensors", 1.0, "light sensors"),
    Panel("C", "stocks", 0.5, "stocks"),
)
ALL_PANELS = {panel.letter: panel for panel in (*PANELS, *APPENDIX)}
"""Figure 2 in small letters, Figure 3 of the appendix in capital ones."""
THETAS = (0.5, 1.0, 2.0)
"""Tail parameters of Section 4.3: sub-Gaussian, sub-exponential, and heavier."""
_UNIFORM = "uniform play"
_THEOREM = ", theorem's width"


def label(letter: str, algorithm: Algorithm | None, *, theorem: bool = False) -> str:
    """The cell of an algorithm in a panel; of uniform play without one."""
    if algorithm is None:
        return f"{letter}: {_UNIFORM}"
    return f"{letter}: {ALL_PANELS[letter].name_of(algorithm)}{_THEOREM if theorem else ''}"


_PLAYED = {
    label(letter, algorithm, theorem=theorem): (panel, algorithm, theorem)
    for letter, panel in ALL_PANELS.items()
    for algorithm in Algorithm
    for theorem in (False, True)
}


def _panel_trial(panel: Panel, algorithm: Algorithm, theorem: bool, trial: int) -> Trial:
    setting = THEOREM if theorem else TUNED[algorithm, panel.epsilon is not None]
    seed = np.random.SeedSequence(0, spawn_key=(ord(panel.letter), trial))
    return run_trial(panel, algorithm, setting, STEPS, seed)


def _panels(cells: Sequence[str], trial: int) -> Mapping[str, Array]:
    found: dict[str, Array] = {}
    for cell in cells:
        if cell.endswith(_UNIFORM):
            panel = ALL_PANELS[cell[0]]
            each = _panel_trial(panel, Algorithm.TGP, False, trial).uniform
            found[cell] = each * np.arange(1.0, STEPS + 1)
        else:
            found[cell] = _panel_trial(*_PLAYED[cell], trial).regret
    return found


@dataclass(frozen=True)
class SubWeibull(Noise):
    """P(|X| > x) = exp(−x^{1/θ}), symmetric: sub-Weibull with tail parameter θ (equation 5).

    Attributes:
        theta: θ.
    """

    theta: Positive = 1.0

    def draw(self, rng: np.random.Generator) -> float:
        """One draw."""
        return float(rng.choice([-1.0, 1.0]) * rng.exponential() ** self.theta)

    @property
    def bound(self) -> float:
        """Infinite."""
        return math.inf

    @property
    def second_moment(self) -> float:
        """Γ(1 + 2θ)."""
        return math.gamma(1 + 2 * self.theta)


@dataclass(frozen=True)
class _LogTruncation(RewardTruncation):
    """TGP-UCB that truncates at B + (ln t)^θ, as Section 4.3 proposes."""

    theta: float = 1.0

    def threshold(self, t: int) -> float:
        return self.constants.B + math.pow(math.log(max(t, 1)), self.theta)


def _truncated(cells: Sequence[str], trial: int) -> Mapping[str, Array]:
    found = {}
    for cell in cells:
        how, theta = cell.split(", θ = ")
        seeds = np.random.SeedSequence(0, spawn_key=(ord("w"), trial)).spawn(2)
        noise = SubWeibull(float(theta))
        problem = synthetic(Matern(0.2, nu=2.5), noise, np.random.default_rng(seeds[0]))
        if how == _UNIFORM:
            gap = float(problem.f.max() - problem.f.mean())
            found[cell] = gap * np.arange(1.0, STEPS + 1)
        else:
            found[cell] = _one_truncated(how, noise.theta, problem, seeds[1])
    return found


def _one_truncated(
    how: str, theta: float, problem: BanditProblem, seed: np.random.SeedSequence
) -> Array:
    public = Constants(STEPS, problem.B, math.inf, problem.v, problem.c, 0.1, 1.0, 0.3)
    slow = _LogTruncation(public, theta)
    schedule = slow if how == "at (ln t)^θ" else RewardTruncation(public)
    rng = np.random.default_rng(seed)
    outcome = truncated_gp_ucb(Users(problem, in_the_clear, rng, 1), schedule, rng)
    return problem.regret(outcome.choices)


_SHOWN = tuple(_PLAYED) + tuple(label(letter, None) for letter in ALL_PANELS)
_WEIBULL = tuple(
    f"{how}, θ = {theta:g}" for theta in THETAS for how in ("at (ln t)^θ", "at t^(1/4)", _UNIFORM)
)
EXPERIMENTS = (
    Experiment(
        "local-panels", "Zhou & Tan, Figures 2 and 3", _SHOWN, _panels, TRIALS, _SHOWN,
        rounds="response",
    ),
    Experiment(
        "local-sub-weibull", "Zhou & Tan, truncation of sub-Weibull rewards", _WEIBULL, _truncated,
        TRIALS, _WEIBULL, rounds="response",
    ),
)  # fmt: skip
