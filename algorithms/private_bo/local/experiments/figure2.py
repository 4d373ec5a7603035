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
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dpaudit import files, validate
from dpaudit.errors import InputError
from private_bo.local.experiments.panels import (
    PANELS,
    THEOREM,
    TUNED,
    Algorithm,
    Panel,
    Setting,
    Trial,
    missing_data,
    run_trial,
)
from private_bo.local.experiments.report import Curve, drawing, table, verdict

__all__ = ["figure2", "main", "tune"]

Curves: TypeAlias = dict[Panel, dict[Algorithm, Curve]]
Choice: TypeAlias = Callable[[Algorithm, Panel], Setting]

_WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
_PLAYS = (3, 10)
_HEADER = (
    "| panel | algorithm | ε | width × | k | responses | final regret ± s.e. | of uniform play |\n"
    "|---|---|---|---|---|---|---|---|\n"
)


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
    from joblib import Parallel, delayed

    trials = validate.integer_at_least(1, trials=trials)
    steps = validate.integer_at_least(1, steps=steps)
    workers = validate.integer_at_least(1, workers=workers)
    root = np.random.SeedSequence(validate.integer_at_least(0, seed=seed))
    seeds = {
        panel: [
            np.random.SeedSequence(root.entropy, spawn_key=(ord(panel.letter), trial))
            for trial in range(trials)
        ]
        for panel in panels
    }
    keys = [(panel, algorithm) for panel in panels for algorithm in algorithms]
    jobs = (
        delayed(run_trial)(panel, algorithm, setting(algorithm, panel), steps, trial_seed)
        for panel, algorithm in keys
        for trial_seed in seeds[panel]
    )
    runs: list[Trial] = Parallel(n_jobs=workers)(jobs)
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
    rows = ["| algorithm | k | width × | mean of uniform play |", "|---|---|---|---|"]
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
            rows.append(
                f"| {chosen[0].name_of(algorithm)} | {setting.plays_per_epoch or '–'} "
                f"| {setting.width_multiplier:g} | {100 * mean:.1f} % |"
            )
    return "\n".join(rows) + "\n"


def document(scaled: Curves, theorem: Curves, trials: int, seed: int) -> str:
    """Both tables and who wins, in Markdown."""
    return (
        "# Figure 2 of Zhou & Tan 2021\n\n"
        f"Mean of {trials} trials ± standard error, seed {seed}. “width ×” multiplies every "
        "theorem width (private) or published width (non-private); one multiplier, and one k for "
        "MoMA, serve all private panels, and one all others, chosen on other seeds by --tune. "
        "“of uniform play” is the regret against that of uniform play in as many responses; near "
        "or above 100 % nothing was learnt.\n\n"
        + _HEADER
        + "\n".join(table(panel, curves) for panel, curves in scaled.items())
        + "\n\n## Where MoMA wins\n\n"
        + "\n".join(verdict(panel, curves) for panel, curves in scaled.items())
        + "\n\n## The same with the parameters of the theorems\n\n"
        + _HEADER
        + "\n".join(table(panel, curves) for panel, curves in theorem.items())
        + "\n"
    )


def _record(curves: Curves) -> dict[str, dict[str, object]]:
    return {
        panel.letter: {panel.name_of(a): curve.to_dict() for a, curve in by_name.items()}
        for panel, by_name in curves.items()
    }


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ldp_figure2", description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("out"), metavar="DIR")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1000, help="T, responses per run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--tune", action="store_true", help="show how the settings were chosen")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    arguments = _arguments(argv)
    try:
        _run(arguments)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


def _run(arguments: argparse.Namespace) -> None:
    absent: Mapping[Panel, str | None] = {panel: missing_data(panel) for panel in PANELS}
    panels = [panel for panel in PANELS if absent[panel] is None]
    if skipped := [panel for panel in PANELS if absent[panel] is not None]:
        letters = ", ".join(f"({panel.letter})" for panel in skipped)
        sys.stderr.write(f"Panels {letters} are left out: {absent[skipped[0]]}\n")
    if arguments.tune:
        sys.stdout.write(tune(panels, seed=arguments.seed + 1, workers=arguments.workers))
        return
    numbers = {name: getattr(arguments, name) for name in ("trials", "steps", "seed", "workers")}
    scaled = figure2(panels, tuned, **numbers)
    theorem = figure2(panels, lambda *_: THEOREM, **numbers)
    text = document(scaled, theorem, arguments.trials, arguments.seed)
    record = {"seed": arguments.seed, "scaled": _record(scaled), "theorem": _record(theorem)}
    _make(arguments.output)
    files.write(arguments.output / "ldp_figure2.md", text)
    files.write(arguments.output / "ldp_figure2.json", files.pretty_json(record))
    for file_format in ("png", "svg"):
        content = drawing(scaled, file_format)
        files.write(arguments.output / f"ldp_figure2.{file_format}", content)
    sys.stdout.write(text)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"output {str(folder)!r} cannot be made: {error.strerror}; give a writable folder."
        ) from None


if __name__ == "__main__":
    sys.exit(main())
