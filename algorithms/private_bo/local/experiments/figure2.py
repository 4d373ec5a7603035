"""Figure 2 of Zhou & Tan 2021: cumulative regret of the private and the heavy-tail algorithms.

``python -m private_bo.local.experiments.figure2 -o DIR`` writes ``ldp_figure2.md`` (tables and who
wins), ``.png``, ``.svg`` and ``.json`` (curves) to DIR and the tables to the terminal. The panels
on recorded data need ``DPAUDIT_DATA``; without it the synthetic panels are run alone.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dpaudit.base import validate
from private_bo.experiments import command, drawing, in_parallel, options, save, table
from private_bo.experiments import trial_numbers as checked
from private_bo.local.experiments.panels import (
    HEADS,
    PANELS,
    THEOREM,
    TUNED,
    Algorithm,
    Curve,
    Panel,
    Setting,
    cells,
    missing_data,
    panel_curves,
    run_trial,
    verdict,
)

Curves: TypeAlias = dict[Panel, dict[Algorithm, Curve]]
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
) -> Curves:
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
    curves: Curves = {panel: {} for panel in panels}
    for number, (panel, algorithm) in enumerate(keys):
        own = runs[number * trials : (number + 1) * trials]
        curves[panel][algorithm] = Curve(setting(algorithm, panel), own)
    return curves


def tuned(algorithm: Algorithm, panel: Panel) -> Setting:
    """The documented scales: see :data:`~private_bo.local.experiments.panels.TUNED`."""
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


def document(scaled: Curves, theorem: Curves, trials: int, seed: int) -> str:
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


def _record(curves: Curves) -> dict[str, dict[str, object]]:
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
