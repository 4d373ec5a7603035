"""The table and the drawing of Figure 2."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_bo.gp.types import Array
from private_bo.local.experiments.panels import Algorithm, Panel, Setting, Trial

__all__ = ["Curve", "drawing", "table", "verdict"]

_COLOURS = {Algorithm.ATA: "#0072b2", Algorithm.TGP: "#e69f00", Algorithm.MOMA: "#009e73"}


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
        """A JSON record."""
        return {
            "width multiplier": self.setting.width_multiplier,
            "plays per epoch": self.trials[0].plays,
            "mean": self.regret.mean(axis=0).tolist(),
            "standard error": standard_error(self.regret).tolist(),
            "final": self.final.tolist(),
            "in units of uniform play": self.relative,
        }


def standard_error(values: Array) -> Array:
    """Standard error of the mean over the first axis; 0 for one trial."""
    count = values.shape[0]
    if count == 1:
        return np.zeros(values.shape[1:])
    return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(count))


def table(panel: Panel, curves: Mapping[Algorithm, Curve]) -> str:
    """The Markdown rows of one panel."""
    rows = []
    for algorithm, curve in curves.items():
        final, error = curve.final.mean(), float(standard_error(curve.final))
        plays = curve.trials[0].plays
        rows.append(
            f"| ({panel.letter}) {panel.title} | {panel.name_of(algorithm)} "
            f"| {'–' if panel.epsilon is None else f'{panel.epsilon:g}'} "
            f"| {curve.setting.width_multiplier:g} "
            f"| {plays if algorithm is Algorithm.MOMA else '–'} "
            f"| {curve.regret.shape[1]} | {final:,.0f} ± {error:,.0f} "
            f"| {100 * curve.relative:.0f} % |"
        )
    return "\n".join(rows)


def verdict(panel: Panel, curves: Mapping[Algorithm, Curve]) -> str:
    """Whether MoMA wins the panel, by paired differences of the final regret per round."""
    per_round = {name: curve.final / curve.regret.shape[1] for name, curve in curves.items()}
    best_other = min(
        (name for name in curves if name is not Algorithm.MOMA),
        key=lambda name: float(per_round[name].mean()),
    )
    difference = per_round[Algorithm.MOMA] - per_round[best_other]
    mean, error = float(difference.mean()), float(standard_error(difference))
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


def drawing(results: Mapping[Panel, Mapping[Algorithm, Curve]], file_format: str) -> bytes:
    """Mean cumulative regret with a band of one standard error, one plot a panel."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7), layout="constrained")
    for place, (panel, curves) in enumerate(results.items(), start=1):
        axes = figure.add_subplot(2, 3, place)
        longest = max(curve.regret.shape[1] for curve in curves.values())
        for algorithm, curve in curves.items():
            mean, error = curve.regret.mean(axis=0), standard_error(curve.regret)
            rounds = np.arange(1, mean.size + 1)
            colour = _COLOURS[algorithm]
            axes.plot(rounds, mean, color=colour, label=panel.name_of(algorithm))
            axes.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
        uniform = np.mean([trial.uniform for curve in curves.values() for trial in curve.trials])
        axes.plot([0, longest], [0, longest * uniform], "k:", lw=1, label="uniform play")
        epsilon = "non-private" if panel.epsilon is None else f"ε = {panel.epsilon:g}"
        axes.set_title(f"({panel.letter}) {epsilon}, {panel.title}", fontsize=10)
        axes.set_xlabel("responses")
        axes.set_ylabel("cumulative regret")
        axes.legend(fontsize=7, frameon=False)
    content = io.BytesIO()
    metadata = {"Date": None} if file_format == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "ldp-figure2"}):
        figure.savefig(content, format=file_format, dpi=130, metadata=metadata)
    return content.getvalue()
