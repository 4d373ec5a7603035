"""Figure 2 of Zhou & Tan 2021: cumulative regret of the private and the heavy-tail algorithms.

``python -m private_bo.local.experiments.figure2 -o DIR`` writes ``ldp_figure2.md`` (tables and who
wins), ``.png``, ``.svg`` and ``.json`` (curves) to DIR and the tables to the terminal. The panels
on recorded data need ``DPAUDIT_DATA``; without it the synthetic panels are run alone.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.project import RunResult
from private_bo.experiments import (
    Curves,
    command,
    drawing,
    in_parallel,
    mean_and_error,
    options,
    save,
    table,
)
from private_bo.experiments import trial_numbers as checked
from private_bo.gp import SquaredExponential
from private_bo.gp.types import Array
from private_bo.local import ATAGPUCB, LDPATAGPUCB, LDPTGPUCB, TGPUCB, LDPMoMAGPUCB, MoMAGPUCB
from private_bo.problems import BanditProblem, StudentNoise, synthetic
from private_bo.problems.sources import load_problem


class Algorithm(Enum):
    """The three algorithms of a panel, private or not."""

    ATA = "ATA-GP-UCB"
    TGP = "TGP-UCB"
    MOMA = "MoMA-GP-UCB"


_PRIVATE = {Algorithm.ATA: LDPATAGPUCB, Algorithm.TGP: LDPTGPUCB, Algorithm.MOMA: LDPMoMAGPUCB}
_NON_PRIVATE = {Algorithm.ATA: ATAGPUCB, Algorithm.TGP: TGPUCB, Algorithm.MOMA: MoMAGPUCB}


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        letter: as in the paper.
        source: name of the problem, a key of ``private_bo.problems.sources.SOURCES``.
        epsilon: ε of the private algorithms; None for the non-private ones on heavy tails.
        title: what the panel shows.
    """

    letter: str
    source: str
    epsilon: float | None
    title: str

    def problem(self, rng: np.random.Generator) -> BanditProblem:
        """The problem; a synthetic one is drawn anew."""
        if self.source == "synthetic" and self.epsilon is None:
            return synthetic(SquaredExponential(0.2), StudentNoise(3.0), rng)
        return load_problem(self.source, rng)

    def name_of(self, algorithm: Algorithm) -> str:
        """The algorithm's name in this panel."""
        return algorithm.value if self.epsilon is None else f"LDP-{algorithm.value}"


PANELS = (
    Panel("a", "synthetic", 1.0, "synthetic, Matérn"),
    Panel("b", "sensors", 0.5, "light sensors"),
    Panel("c", "stocks", 1.0, "stocks"),
    Panel("d", "synthetic", None, "synthetic, SE, Student t"),
    Panel("e", "sensors", None, "light sensors"),
    Panel("f", "stocks", None, "stocks"),
)


@dataclass(frozen=True)
class Setting:
    """What the theorems leave to scale.

    Attributes:
        width_multiplier: factor on β.
        plays_per_epoch: k of MoMA; None for the theorem's.
    """

    width_multiplier: float = 1.0
    plays_per_epoch: int | None = None


THEOREM = Setting()

# The least mean regret over the three panels, each in units of uniform play, among the settings
# that ``--tune`` tries on ten trials with random numbers of their own (seed 1; the figure has seed
# 0). The private means have standard errors of several per cent, so several settings are as good.
TUNED: dict[tuple[Algorithm, bool], Setting] = {
    (Algorithm.ATA, True): Setting(0.01),
    (Algorithm.TGP, True): Setting(0.001),
    (Algorithm.MOMA, True): Setting(0.01, 3),
    (Algorithm.ATA, False): Setting(0.1),
    (Algorithm.TGP, False): Setting(0.3),
    (Algorithm.MOMA, False): Setting(0.1, 3),
}
"""One setting per algorithm for all private panels (True), one for all others (False)."""


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes:
        regret: cumulative regret after each response, (rounds,).
        uniform: expected regret of one round of uniform play.
        plays: k where there are epochs, else 1.
    """

    regret: Array
    uniform: float
    plays: int

    @property
    def relative(self) -> float:
        """Final regret in units of what uniform play costs in as many rounds."""
        return float(self.regret[-1]) / (self.regret.size * self.uniform)


def missing_data(panel: Panel) -> str | None:
    """Why the panel cannot be run, or None."""
    try:
        panel.problem(np.random.default_rng(0))
    except InputError as error:
        return str(error)
    return None


def run_trial(
    panel: Panel, algorithm: Algorithm, setting: Setting, steps: int, seed: np.random.SeedSequence
) -> Trial:
    """One trial; the algorithms of a trial share problem, answers and noise.

    Args:
        panel: where.
        algorithm: what.
        setting: width multiplier and k.
        steps: T.
        seed: of the trial; it is read, not spawned from.
    """
    problem_rng, rng, noise = seeds(seed)
    problem = panel.problem(problem_rng)
    fields: dict[str, Any] = {"steps": steps, "width_multiplier": setting.width_multiplier}
    if algorithm is Algorithm.MOMA:
        fields["plays_per_epoch"] = setting.plays_per_epoch
    if panel.epsilon is None:
        result = _NON_PRIVATE[algorithm](**fields).run(problem, rng)
    else:
        subject = _PRIVATE[algorithm](
            epsilon=panel.epsilon,
            reward_bound=problem.B,
            noise_bound=problem.R,
            bounds_are_public=problem.bounds_are_public,
            **fields,
        )
        with Ledger(subject.plan(), rng=noise) as ledger:
            result = subject.run(problem, ledger, rng)
    return trial_of(problem, result)


def seeds(seed: np.random.SeedSequence) -> tuple[np.random.Generator, ...]:
    """Of the problem, of the run and of the noise, which all algorithms of a trial share."""
    keys = ((*seed.spawn_key, part) for part in range(3))
    return tuple(
        np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key)) for key in keys
    )


def trial_of(problem: BanditProblem, result: RunResult) -> Trial:
    """What a run on the problem cost."""
    return Trial(
        regret=np.array(result.for_owner.series["cumulative regret"]),
        uniform=float(problem.f[problem.best] - problem.f.mean()),
        plays=int(result.summary.get("plays per epoch", 1)),
    )


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


PanelCurves: TypeAlias = dict[Panel, dict[Algorithm, Curve]]
Choice: TypeAlias = Callable[[Algorithm, Panel], Setting]

_WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
_PLAYS = (3, 10)


def figure2(
    panels: Sequence[Panel],
    setting: Choice,
    *,
    algorithms: Sequence[Algorithm] = tuple(Algorithm),
    trials: int = 10,
    steps: int = 1000,
    seed: int = 0,
    workers: int = 1,
) -> PanelCurves:
    """Run algorithms in panels; the result does not depend on the number of workers.

    Args:
        panels: which.
        setting: width multiplier and k for an algorithm in a panel.
        algorithms: which.
        trials: independent trials, each with its own seed (and synthetic function).
        steps: T.
        seed: root of all randomness.
        workers: processes.

    Raises:
        InputError: if a number is no positive integer, T is below k, or data are missing.
    """
    trials, seed, workers = checked(trials, seed, workers)
    steps = validate.integer_at_least(1, steps=steps)
    keys = [(panel, algorithm) for panel in panels for algorithm in algorithms]
    runs = in_parallel(
        run_trial,
        (
            (
                panel,
                algorithm,
                setting(algorithm, panel),
                steps,
                np.random.SeedSequence(seed, spawn_key=(ord(panel.letter), trial)),
            )
            for panel, algorithm in keys
            for trial in range(trials)
        ),
        workers,
    )
    curves: PanelCurves = {panel: {} for panel in panels}
    for number, (panel, algorithm) in enumerate(keys):
        own = runs[number * trials : (number + 1) * trials]
        curves[panel][algorithm] = Curve(setting(algorithm, panel), own)
    return curves


def tuned(algorithm: Algorithm, panel: Panel) -> Setting:
    """The documented scales: see :data:`~private_bo.local.experiments.figure2.TUNED`."""
    return TUNED[algorithm, panel.epsilon is not None]


def tune(panels: Sequence[Panel], *, seed: int, workers: int, steps: int = 1000) -> str:
    """A table of the mean relative regret of every setting that ``TUNED`` was chosen from.

    Raises:
        InputError: as :func:`figure2`.
    """
    rows = []
    for private, algorithm in itertools.product((True, False), Algorithm):
        chosen = [panel for panel in panels if (panel.epsilon is not None) is private]
        plays = _PLAYS if algorithm is Algorithm.MOMA else (None,)
        for setting in itertools.starmap(Setting, itertools.product(_WIDTHS, plays)):
            curves = figure2(
                chosen,
                lambda *_, fixed=setting: fixed,
                algorithms=[algorithm],
                steps=steps,
                seed=seed,
                workers=workers,
            )
            mean = np.mean([curves[panel][algorithm].relative for panel in chosen])
            name, k = chosen[0].name_of(algorithm), setting.plays_per_epoch or "–"
            rows.append((name, k, f"{setting.width_multiplier:g}", f"{100 * mean:.1f} %"))
    return table(("algorithm", "k", "width ×", "mean of uniform play"), rows) + "\n"


def document(scaled: PanelCurves, theorem: PanelCurves, trials: int, seed: int) -> str:
    """Both tables and who wins, in Markdown."""
    tables = [
        table(HEADS, [cells(panel, *each) for panel in shown for each in shown[panel].items()])
        for shown in (scaled, theorem)
    ]
    return (
        "# Figure 2 of Zhou & Tan 2021\n\n"
        f"Mean of {trials} trials ± standard error, seed {seed}. “width ×” multiplies every "
        "theorem width (private) or published width (non-private); one multiplier, and one k for "
        "MoMA, serve all private panels, and one all others, chosen on other seeds by --tune. "
        "“of uniform play” is the regret against that of uniform play in as many responses; near "
        f"or above 100 % nothing was learnt.\n\n{tables[0]}\n\n## Where MoMA wins\n\n"
        + "\n".join(verdict(panel, curves) for panel, curves in scaled.items())
        + f"\n\n## The same with the parameters of the theorems\n\n{tables[1]}\n"
    )


def _record(curves: PanelCurves) -> dict[str, dict[str, object]]:
    return {
        panel.letter: {panel.name_of(a): curve.to_dict() for a, curve in by_name.items()}
        for panel, by_name in curves.items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "Figure 2 of Zhou & Tan 2021."
    parser = options("private_bo.local.experiments.figure2", about, trials=10)
    parser.set_defaults(output=Path("out"))
    parser.add_argument("--steps", type=int, default=1000, help="T, responses per run")
    parser.add_argument("--tune", action="store_true", help="show how the settings were chosen")
    return command(_run, parser.parse_args(argv))


def _run(given: argparse.Namespace) -> str:
    absent = {panel: missing_data(panel) for panel in PANELS}
    panels = [panel for panel in PANELS if absent[panel] is None]
    if skipped := [panel for panel in PANELS if absent[panel] is not None]:
        letters = ", ".join(f"({panel.letter})" for panel in skipped)
        sys.stderr.write(f"Panels {letters} are left out: {absent[skipped[0]]}\n")
    if given.tune:
        return tune(panels, seed=given.seed + 1, workers=given.workers)
    numbers = {name: getattr(given, name) for name in ("trials", "steps", "seed", "workers")}
    scaled = figure2(panels, tuned, **numbers)
    theorem = figure2(panels, lambda *_: THEOREM, **numbers)
    text = document(scaled, theorem, given.trials, given.seed)
    record = {"seed": given.seed, "scaled": _record(scaled), "theorem": _record(theorem)}
    shown = dict(panel_curves(panel, curves) for panel, curves in scaled.items())
    save(
        given.output,
        "ldp_figure2",
        text,
        record,
        lambda end: drawing(shown, end, rounds="response"),
    )
    return text


if __name__ == "__main__":
    sys.exit(main())
