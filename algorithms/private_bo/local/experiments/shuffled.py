"""What a trusted shuffler is worth: one-bit responses in batches beside those sent alone.

``python -m private_bo.local.experiments.shuffled -o DIR`` writes ``shuffled.md`` and ``.json`` to
DIR after each problem, and the table to the terminal: the problems of Figure 2 of Zhou & Tan 2021
and house prices, each with :class:`~private_bo.local.LDPOneBitGP` and
:class:`~private_bo.local.ShuffledOneBitGP` at the same ε, on the same problems, trial by trial.
Panels e and f have the problems of b and c.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from math import isfinite
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
from private_bo.gp.types import Array
from private_bo.local import LDPOneBitGP, ShuffledOneBitGP
from private_bo.local.experiments.figure2 import PANELS, Panel, missing_data, seeds, trial_of
from private_bo.local.experiments.utility import UNSEEN, one_bit

PROBLEMS = (UNSEEN, *(PANELS[place] for place in (1, 2, 0, 3)))
_PUBLIC_BOUND = 4.0
"""Of a reward whose noise has none: mean within 1, and Student's noise beyond 3 is clipped."""


def paired_trial(
    panel: Panel, epsilon: float, steps: int, batch: int | None, seed: np.random.SeedSequence
) -> tuple[float, float]:
    """Regret in units of uniform play: of responses sent alone, and through a shuffler."""
    found = []
    for kind in (LDPOneBitGP, ShuffledOneBitGP):
        problem_rng, rng, noise = seeds(seed)
        problem = panel.problem(problem_rng)
        bound = problem.B + problem.R
        more = {} if kind is LDPOneBitGP else {"batch": batch}
        subject = one_bit(
            kind, panel, problem, bound if isfinite(bound) else _PUBLIC_BOUND,
            epsilon=epsilon, steps=steps, **more,
        )  # fmt: skip
        with Ledger(subject.plan(), rng=noise) as ledger:
            found.append(trial_of(problem, subject.run(problem, ledger, rng)).relative)
    return found[0], found[1]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "One-bit responses alone, and in batches through a trusted shuffler."
    parser = options("private_bo.local.experiments.shuffled", about, trials=24)
    parser.set_defaults(output=Path("out"), seed=2)
    parser.add_argument("--steps", type=int, default=2000, help="T, responses per run")
    parser.add_argument("--epsilon", type=float, default=1.0, help="of one user")
    parser.add_argument("--batch", type=int, help="users of the first batch")
    return command(_run, parser.parse_args(argv))


def _run(given: Namespace) -> str:
    trials, seed, workers = trial_numbers(given.trials, given.seed, given.workers)
    record: dict[str, dict[str, list[float]]] = {}
    text = ""
    for panel in PROBLEMS:
        if missing_data(panel) is not None:
            continue
        keys = ((ord(panel.letter), trial) for trial in range(trials))
        settings = panel, given.epsilon, given.steps, given.batch
        each = in_parallel(
            paired_trial,
            ((*settings, np.random.SeedSequence(seed, spawn_key=key)) for key in keys),
            workers,
        )
        alone, shuffled = zip(*each, strict=True)
        title = f"({panel.letter}) {panel.title}"
        record[title] = {"alone": list(alone), "shuffled": list(shuffled)}
        text = _text(given, record)
        save(given.output, "shuffled", text, {"seed": seed, "relative": record})
    return text


def _text(given: Namespace, record: Mapping[str, Mapping[str, list[float]]]) -> str:
    """The table of the problems that are done."""
    rows, ratios = [], []
    for title, found in record.items():
        alone, shuffled = (100 * np.array(found[name]) for name in ("alone", "shuffled"))
        shown = [f"{m:.0f} ± {e:.0f}" for m, e in map(mean_and_error, (alone, shuffled))]
        ratio, error = _ratio(alone, shuffled)
        rows.append((title, *shown, f"{ratio:.2f} ± {error:.2f}"))
        ratios.append(ratio)
    return (
        "# One bit alone, and through a shuffler\n\n"
        f"Final regret in % of uniform play, mean of {given.trials} paired trials of {given.steps} "
        f"responses ± standard error, ε = {given.epsilon:g}, seed {given.seed}.\n\n"
        + table(("problem", "alone, %", "shuffled, %", "shuffled / alone"), rows)
        + f"\n\nMean of the ratios: {np.mean(ratios):.2f}.\n"
    )


def _ratio(alone: Array, shuffled: Array) -> tuple[float, float]:
    """Of the means, and the standard error of it, paired by trial (delta method)."""
    ratio = float(shuffled.mean() / alone.mean())
    _, error = mean_and_error(shuffled - ratio * alone)
    return ratio, float(error / alone.mean())


if __name__ == "__main__":
    sys.exit(main())
