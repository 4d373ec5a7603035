"""What one bit and a lookahead are worth: Figure 2 of Zhou & Tan 2021 with a learner beside it.

``python -m private_bo.local.experiments.utility -o DIR`` writes ``ldp_utility.md`` and ``.json`` to
DIR, and the table to the terminal: in every panel the paper's three algorithms under the documented
scales of :data:`~private_bo.local.experiments.panels.TUNED`, and
:class:`~private_bo.local.LDPOneBitGP` (without privacy: :class:`~private_bo.local.LookaheadGP`)
under its defaults. Nothing was tuned on the default seed, and nothing at all on panel g.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dpaudit.ledger import Ledger
from private_bo.experiments import (
    command,
    in_parallel,
    mean_and_error,
    options,
    save,
    table,
    trial_numbers,
)
from private_bo.local import LDPOneBitGP, LookaheadGP
from private_bo.local.experiments.figure2 import figure2, tuned
from private_bo.local.experiments.panels import PANELS, Panel, Trial, missing_data, seeds, trial_of
from private_bo.problems import BanditProblem

__all__ = ["ahead_trial", "main", "one_bit", "relative"]

_UNSEEN = Panel("g", "taipei", 1.0, "house prices")
"""Not of the paper: a problem that nobody's setting was chosen on."""


def one_bit(panel: Panel, problem: BanditProblem, steps: int) -> LDPOneBitGP:
    """The subject of a private panel: readings and prices have no negative, and at most B + R."""
    assert panel.epsilon is not None
    bound = problem.B + problem.R
    return LDPOneBitGP(
        epsilon=panel.epsilon,
        lower=0.0 if panel.source in ("sensors", "stocks") else -bound,
        upper=bound,
        steps=steps,
        bounds_are_public=problem.bounds_are_public,
    )


def ahead_trial(panel: Panel, steps: int, seed: np.random.SeedSequence) -> Trial:
    """One trial of the lookahead, with the problem of the paper's algorithms under that seed."""
    problem_rng, rng, noise = seeds(seed)
    problem = panel.problem(problem_rng)
    if panel.epsilon is None:
        result = LookaheadGP(steps=steps).run(problem, rng)
    else:
        subject = one_bit(panel, problem, steps)
        with Ledger(subject.plan(), rng=noise) as ledger:
            result = subject.run(problem, ledger, rng)
    return trial_of(problem, result)


def relative(
    panels: Sequence[Panel], *, trials: int, steps: int, seed: int, workers: int
) -> Mapping[Panel, Mapping[str, Sequence[Trial]]]:
    """All trials by panel and algorithm, the lookahead first.

    Raises:
        InputError: as :func:`~private_bo.local.experiments.figure2.figure2`.
    """
    trials, seed, workers = trial_numbers(trials, seed, workers)
    published = figure2(panels, tuned, trials=trials, steps=steps, seed=seed, workers=workers)
    ahead = in_parallel(
        ahead_trial,
        (
            (panel, steps, np.random.SeedSequence(seed, spawn_key=(ord(panel.letter), trial)))
            for panel in panels
            for trial in range(trials)
        ),
        workers,
    )
    shown: dict[Panel, dict[str, Sequence[Trial]]] = {}
    for number, panel in enumerate(panels):
        name = (LookaheadGP if panel.epsilon is None else LDPOneBitGP).__name__
        shown[panel] = {name: ahead[number * trials : (number + 1) * trials]}
        for algorithm, curve in published[panel].items():
            shown[panel][panel.name_of(algorithm)] = curve.trials
    return shown


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "Figure 2 of Zhou & Tan 2021, and a learner with one-bit responses beside it."
    parser = options("private_bo.local.experiments.utility", about, trials=20)
    parser.set_defaults(output=Path("out"), seed=2)
    parser.add_argument("--steps", type=int, default=1000, help="T, responses per run")
    return command(_run, parser.parse_args(argv))


def _run(given: Namespace) -> str:
    panels = [panel for panel in (*PANELS, _UNSEEN) if missing_data(panel) is None]
    numbers = {name: getattr(given, name) for name in ("trials", "steps", "seed", "workers")}
    shown = relative(panels, **numbers)
    rows = []
    for panel, by_name in shown.items():
        for name, runs in by_name.items():
            mean, error = mean_and_error(np.array([100 * run.relative for run in runs]))
            epsilon = "–" if panel.epsilon is None else f"{panel.epsilon:g}"
            title = f"({panel.letter}) {panel.title}"
            rows.append((title, name, epsilon, f"{mean:.0f} ± {error:.0f} %"))
    text = (
        "# One bit and a lookahead, beside Figure 2 of Zhou & Tan 2021\n\n"
        f"Final regret in units of uniform play, mean of {given.trials} trials of {given.steps} "
        f"responses ± standard error, seed {given.seed}; uniform play is 100 %.\n\n"
        + table(("panel", "algorithm", "ε", "of uniform play"), rows)
        + "\n"
    )
    record = {
        panel.letter: {name: [run.relative for run in runs] for name, runs in by_name.items()}
        for panel, by_name in shown.items()
    }
    save(given.output, "ldp_utility", text, {"seed": given.seed, "relative": record})
    return text


if __name__ == "__main__":
    sys.exit(main())
