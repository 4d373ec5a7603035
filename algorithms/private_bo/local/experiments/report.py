"""What Figure 2 says in words: the rows of its table, its curves, and where MoMA wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_bo.experiments import Curves, mean_and_error
from private_bo.gp.types import Array
from private_bo.local.experiments.panels import Algorithm, Panel, Setting, Trial

HEADS = (
    *("panel", "algorithm", "ε", "width ×", "k", "responses"),
    *("final regret ± s.e.", "of uniform play"),
)


@dataclass(frozen=True, eq=False)
class Curve:
    """All trials of one algorithm in one panel under one setting.

    Attributes:
        setting: width multiplier and k.
        trials: the runs.
    """

    setting: Setting
    trials: Sequence[Trial]

    @property
    def regret(self) -> Array:
        """Cumulative regret, (trials, rounds)."""
        return np.array([trial.regret for trial in self.trials])

    @property
    def final(self) -> Array:
        """Final regret of every trial."""
        return self.regret[:, -1]

    @property
    def relative(self) -> float:
        """Mean final regret in units of uniform play over as many rounds."""
        return float(np.mean([trial.relative for trial in self.trials]))

    def to_dict(self) -> dict[str, Any]:
        """Setting, mean curve with standard error, and final regrets, as JSON values."""
        mean, error = mean_and_error(self.regret)
        return {
            "width multiplier": self.setting.width_multiplier,
            "plays per epoch": self.trials[0].plays,
            "mean": mean.tolist(),
            "standard error": error.tolist(),
            "final": self.final.tolist(),
            "in units of uniform play": self.relative,
        }


def cells(panel: Panel, algorithm: Algorithm, curve: Curve) -> tuple[str, ...]:
    """One row of the table, under :data:`HEADS`."""
    final, error = mean_and_error(curve.final)
    return (
        f"({panel.letter}) {panel.title}",
        panel.name_of(algorithm),
        "–" if panel.epsilon is None else f"{panel.epsilon:g}",
        f"{curve.setting.width_multiplier:g}",
        str(curve.trials[0].plays) if algorithm is Algorithm.MOMA else "–",
        str(curve.regret.shape[1]),
        f"{final:,.0f} ± {error:,.0f}",
        f"{100 * curve.relative:.0f} %",
    )


def panel_curves(panel: Panel, curves: Mapping[Algorithm, Curve]) -> tuple[str, Curves]:
    """The title of a panel, and its curves beside that of uniform play."""
    longest = max(curve.regret.shape[1] for curve in curves.values())
    uniform = np.mean([trial.uniform for curve in curves.values() for trial in curve.trials])
    shown = {panel.name_of(algorithm): curve.regret for algorithm, curve in curves.items()}
    shown["uniform play"] = uniform * np.arange(1.0, longest + 1)[None]
    epsilon = "non-private" if panel.epsilon is None else f"ε = {panel.epsilon:g}"
    return f"({panel.letter}) {epsilon}, {panel.title}", shown


def verdict(panel: Panel, curves: Mapping[Algorithm, Curve]) -> str:
    """Whether MoMA wins the panel, by paired differences of the final regret per round."""
    per_round = {name: curve.final / curve.regret.shape[1] for name, curve in curves.items()}
    best_other = min(
        (name for name in curves if name is not Algorithm.MOMA),
        key=lambda name: float(per_round[name].mean()),
    )
    mean, error = mean_and_error(per_round[Algorithm.MOMA] - per_round[best_other])
    if abs(mean) <= 2 * error or error == 0:
        result = "is level with"
    else:
        result = "beats" if mean < 0 else "loses to"
    rounds = curves[Algorithm.MOMA].regret.shape[1]
    return (
        f"- ({panel.letter}) {panel.name_of(Algorithm.MOMA)} {result} "
        f"{panel.name_of(best_other)}, the better of the others: difference of the final regret "
        f"{mean * rounds:+,.0f} ± {error * rounds:,.0f} (paired standard error)."
    )
