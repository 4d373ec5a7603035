"""What experiments share: trials in processes, means, tables and a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import DpAuditError, InputError
from dpaudit.base.optional_import import optional_import
from private_bo.gp.types import Array


def trial_numbers(trials: int, seed: int, workers: int) -> tuple[int, int, int]:
    """The numbers that every experiment takes, checked."""
    return (
        validate.integer_at_least(1, trials=trials),
        validate.integer_at_least(0, seed=seed),
        validate.integer_at_least(1, workers=workers),
    )


def in_parallel(
    function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], workers: int
) -> list[Any]:
    """What the function returns for each tuple of arguments, in their order.

    Args:
        function: of a module, so that processes find it.
        arguments: one tuple a call.
        workers: processes; the results do not depend on them.

    Raises:
        UnsupportedError: if joblib is not installed (extra ``learn``).
    """
    joblib = optional_import("learn", "joblib", what="an experiment")
    with joblib.parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        return list(joblib.Parallel()(joblib.delayed(function)(*each) for each in arguments))


def mean_and_error(values: Array) -> tuple[Any, Any]:
    """Mean over the trials, which are the first axis, and its standard error: 0 for one trial."""
    spread = values.std(axis=0, ddof=min(1, len(values) - 1))
    return values.mean(axis=0), spread / np.sqrt(len(values))


def row(*cells: object) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table.

    >>> print(table(("run", "regret"), [("a", 1)]))
    | run | regret |
    |---|---|
    | a | 1 |
    """
    return "\n".join([row(*heads), "|---" * len(heads) + "|", *(row(*cells) for cells in rows)])


def made_folder(folder: Path, *, new: bool = False) -> Path:
    """The folder, made unless it is there and need not be new.

    Raises:
        InputError: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=not new)
    except OSError as error:
        raise InputError(
            f"folder {str(folder)!r} cannot be made: {error.strerror}; give a "
            f"{'new' if new else 'writable'} one."
        ) from None
    return folder


def command(run: Callable[[argparse.Namespace], str], given: argparse.Namespace) -> int:
    """Run an experiment and print its text; returns the exit code, 3 for wrong input."""
    try:
        text = run(given)
    except DpAuditError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    sys.stdout.write(text)
    return 0
