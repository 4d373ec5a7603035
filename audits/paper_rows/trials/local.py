"""Figure 2 of Zhou & Tan 2021: cumulative regret of the private and the heavy-tail algorithms.

``python -m audits.paper_rows --record local-panels`` runs it, each algorithm at its own width in
every panel; ``python -m audits.paper_rows.trials.local --tune`` prints how one width for all
was chosen. The panels on recorded data need ``DPAUDIT_DATA``; without it the others are run alone.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.project import RunResult
from private_bo.experiments import command, in_parallel, table
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
        source: name of the problem.
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
    """

    regret: Array
    uniform: float

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


def seed_of(panel: Panel, trial: int, seed: int) -> np.random.SeedSequence:
    """Of a trial: every algorithm and setting has the same, and no two panels."""
    return np.random.SeedSequence(seed, spawn_key=(ord(panel.letter), trial))


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
    )


_WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
_PLAYS = (3, 10)
_TRIALS = 10


def tuned(algorithm: Algorithm, panel: Panel) -> Setting:
    """The documented scales: see :data:`~audits.paper_rows.trials.local.TUNED`."""
    return TUNED[algorithm, panel.epsilon is not None]


def tune(panels: Sequence[Panel], *, seed: int, workers: int, steps: int = 1000) -> str:
    """A table of the mean relative regret of every setting that ``TUNED`` was chosen from.

    It does not depend on the number of workers.
    """
    trials, seed, workers = checked(_TRIALS, seed, workers)
    steps = validate.integer_at_least(1, steps=steps)
    rows = []
    for private, algorithm in itertools.product((True, False), Algorithm):
        chosen = [panel for panel in panels if (panel.epsilon is not None) is private]
        plays = _PLAYS if algorithm is Algorithm.MOMA else (None,)
        for setting in itertools.starmap(Setting, itertools.product(_WIDTHS, plays)):
            found = in_parallel(
                run_trial,
                (
                    (panel, algorithm, setting, steps, seed_of(panel, trial, seed))
                    for panel in chosen
                    for trial in range(trials)
                ),
                workers,
            )
            mean = np.mean([trial.relative for trial in found])
            name, k = chosen[0].name_of(algorithm), setting.plays_per_epoch or "–"
            rows.append((name, k, f"{setting.width_multiplier:g}", f"{100 * mean:.1f} %"))
    return table(("algorithm", "k", "width ×", "mean of uniform play"), rows) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "How the widths and k of TUNED were chosen."
    parser = argparse.ArgumentParser(prog="python -m audits.paper_rows.trials.local")
    parser.description = about
    parser.add_argument("--tune", action="store_true", required=True, help="show every setting")
    parser.add_argument("--steps", type=int, default=1000, help="T, responses per run")
    parser.add_argument("--seed", type=int, default=0, help="one below that of the runs")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    return command(_run, parser.parse_args(argv))


def _run(given: argparse.Namespace) -> str:
    absent = {panel: missing_data(panel) for panel in PANELS}
    panels = [panel for panel in PANELS if absent[panel] is None]
    if skipped := [panel for panel in PANELS if absent[panel] is not None]:
        letters = ", ".join(f"({panel.letter})" for panel in skipped)
        sys.stderr.write(f"Panels {letters} are left out: {absent[skipped[0]]}\n")
    return tune(panels, seed=given.seed + 1, workers=given.workers, steps=given.steps)


if __name__ == "__main__":
    sys.exit(main())
