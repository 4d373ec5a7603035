"""What one bit and a lookahead are worth: Figure 2 of Zhou & Tan 2021 with a learner beside it.

``python -m private_bo.local.experiments.utility -o DIR`` writes ``ldp_utility.md`` and ``.json`` to
DIR, and the table to the terminal: in every panel the paper's three algorithms under the documented
scales of :data:`~private_bo.local.experiments.figure2.TUNED`, and
:class:`~private_bo.local.LDPOneBitGP` (without privacy: :class:`~private_bo.local.LookaheadGP`)
under its defaults. Nothing was tuned on the default seed, and nothing at all on panel g.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.ledger import Ledger
from private_bo.experiments import command, in_parallel, mean_and_error, options, save, table
from private_bo.local import LDPOneBitGP, LookaheadGP
from private_bo.local.experiments.figure2 import (
    PANELS,
    Panel,
    Trial,
    figure2,
    missing_data,
    seeds,
    trial_of,
    tuned,
)
from private_bo.problems import BanditProblem

UNSEEN = Panel("g", "taipei", 1.0, "house prices")
"""Not of the paper: a problem that nobody's setting was chosen on."""


def ahead_trial(panel: Panel, steps: int, seed: np.random.SeedSequence) -> Trial:
    """One trial of the lookahead, on the problem of the paper's algorithms under that seed."""
    problem_rng, rng, noise = seeds(seed)
    problem = panel.problem(problem_rng)
    if panel.epsilon is None:
        return trial_of(problem, LookaheadGP(steps=steps).run(problem, rng))
    settings = {"epsilon": panel.epsilon, "steps": steps}
    subject = one_bit(LDPOneBitGP, panel, problem, problem.B + problem.R, **settings)
    with Ledger(subject.plan(), rng=noise) as ledger:
        return trial_of(problem, subject.run(problem, ledger, rng))


def one_bit(
    kind: type[LDPOneBitGP], panel: Panel, problem: BanditProblem, bound: float, **settings: Any
) -> LDPOneBitGP:
    """The subject for a panel's problem, whose rewards are within ±bound."""
    return kind(
        lower=0.0 if panel.source in ("sensors", "stocks") else -bound,  # these are never negative
        upper=bound,
        bounds_are_public=problem.bounds_are_public,
        **settings,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "Figure 2 of Zhou & Tan 2021, and a learner with one-bit responses beside it."
    parser = options("private_bo.local.experiments.utility", about, trials=20)
    parser.set_defaults(output=Path("out"), seed=2)
    parser.add_argument("--steps", type=int, default=1000, help="T, responses per run")
    return command(_run, parser.parse_args(argv))


def _run(given: Namespace) -> str:
    panels = [panel for panel in (*PANELS, UNSEEN) if missing_data(panel) is None]
    trials, seed, workers = given.trials, given.seed, given.workers
    published = figure2(panels, tuned, trials=trials, steps=given.steps, seed=seed, workers=workers)
    rows, record = [], {}
    for panel, played in published.items():
        keys = ((ord(panel.letter), trial) for trial in range(trials))
        ahead = in_parallel(
            ahead_trial,
            ((panel, given.steps, np.random.SeedSequence(seed, spawn_key=key)) for key in keys),
            workers,
        )
        own = LookaheadGP if panel.epsilon is None else LDPOneBitGP
        shown = {own.__name__: [run.relative for run in ahead]}
        for algorithm, runs in played.items():
            shown[panel.name_of(algorithm)] = [run.relative for run in runs]
        for name, values in shown.items():
            mean, error = mean_and_error(100 * np.array(values))
            epsilon = "–" if panel.epsilon is None else f"{panel.epsilon:g}"
            title = f"({panel.letter}) {panel.title}"
            rows.append((title, name, epsilon, f"{mean:.0f} ± {error:.0f} %"))
        record[panel.letter] = shown
    text = (
        "# One bit and a lookahead, beside Figure 2 of Zhou & Tan 2021\n\n"
        f"Final regret in units of uniform play, mean of {trials} trials of {given.steps} "
        f"responses ± standard error, seed {seed}; uniform play is 100 %.\n\n"
        + table(("panel", "algorithm", "ε", "of uniform play"), rows)
        + "\n"
    )
    save(given.output, "ldp_utility", text, {"seed": seed, "relative": record})
    return text


if __name__ == "__main__":
    sys.exit(main())
