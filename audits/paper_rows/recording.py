"""Recorded figures: what every trial gave, and whether a trial run today gives the same."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from audits.paper_rows.experiments import Experiment, experiments
from dpaudit.base import files
from dpaudit.base.errors import InputError
from private_bo.experiments import in_parallel, mean_and_error
from private_bo.gp.types import Array

__all__ = ["FOLDER", "VARIABLE", "Cell", "Recording", "Spot", "command_of", "record", "spot_checks"]

FOLDER = Path(__file__).parents[2] / "reports" / "papers"
VARIABLE = "DPAUDIT_DATA"
_POINTS = 41
_DIGITS = 6
_RARE = 1e-6


@dataclass(frozen=True, eq=False)
class Cell:
    """All trials of one cell.

    Attributes:
        final: regret after the last round, by trial.
        average: mean regret over the rounds, by trial.
        rounds: the rounds of the curve, at most 41.
        mean: of the trials after these rounds.
        error: its standard error.
    """

    final: Array
    average: Array
    rounds: Array
    mean: Array
    error: Array

    @classmethod
    def of(cls, curves: Sequence[Array]) -> Cell:
        """From the curve of each trial."""
        values = np.array(curves)
        kept = np.unique(np.linspace(0, values.shape[1] - 1, _POINTS).round().astype(int))
        mean, error = mean_and_error(values[:, kept])
        return cls(values[:, -1], values.mean(axis=1), kept + 1.0, mean, error)

    @property
    def trials(self) -> int:
        """How many."""
        return int(self.final.size)

    @property
    def regret(self) -> tuple[float, float]:
        """Mean final regret and its standard error."""
        mean, error = mean_and_error(self.final)
        return float(mean), float(error)

    @property
    def all_rounds(self) -> tuple[float, float]:
        """Mean regret over all rounds, and its standard error."""
        mean, error = mean_and_error(self.average)
        return float(mean), float(error)


@dataclass(frozen=True, eq=False)
class Recording:
    """What an experiment gave.

    Attributes:
        name: of the experiment.
        cells: by label.
    """

    name: str
    cells: Mapping[str, Cell]

    def cell(self, label: str) -> Cell:
        """One cell.

        Raises:
            InputError: if it was not recorded.
        """
        if label not in self.cells:
            raise InputError(f"record {self.name!r} has no cell {label!r}; make it anew.")
        return self.cells[label]

    def less(self, one: str, other: str, *, average: bool = False) -> tuple[float, float]:
        """Mean of one cell's regret less another's, trial by trial, and its standard error."""
        a, b = self.cell(one), self.cell(other)
        mean, error = mean_and_error(a.average - b.average if average else a.final - b.final)
        return float(mean), float(error)

    @classmethod
    def read(cls, name: str, folder: Path = FOLDER) -> Recording | None:
        """The record of that experiment; None if there is none."""
        path = folder / f"{name}.json"
        if not path.exists():
            return None
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return cls(
            name,
            {
                label: Cell(**{field: np.array(values) for field, values in cell.items()})
                for label, cell in cells.items()
            },
        )

    def write(self, experiment: Experiment, folder: Path = FOLDER) -> None:
        """Write it, with the command that makes it, seed and number of trials."""
        record: dict[str, Any] = {
            "title": experiment.title,
            "command": command_of(experiment.name),
            "seed": 0,
            "trials": max(cell.trials for cell in self.cells.values()),
            "cells": {
                label: {field: _short(values) for field, values in vars(cell).items()}
                for label, cell in self.cells.items()
            },
        }
        files.write(folder / f"{self.name}.json", json.dumps(record, ensure_ascii=False, indent=0))


def command_of(name: str) -> str:
    """The command that makes a record anew."""
    return f"python -m audits.paper_rows --record {name}"


def _short(values: Array) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]


def _trial(name: str, cells: Sequence[str], trial: int) -> Mapping[str, Array]:
    return experiments()[name].run(cells, trial)


def _spot_trial(name: str, cells: Sequence[str], trial: int) -> Mapping[str, Array]:
    """The same; nothing where the data are missing."""
    try:
        return _trial(name, cells, trial)
    except InputError as error:
        if VARIABLE in str(error):
            return {}
        raise


def record(experiment: Experiment, *, trials: int | None = None, workers: int = 1) -> Recording:
    """Run all cells; the result does not depend on the workers.

    Args:
        experiment: which.
        trials: how many; the experiment's own number by default.
        workers: processes.
    """
    numbers = range(experiment.trials if trials is None else trials)
    jobs = ((experiment.name, experiment.cells, trial) for trial in numbers)
    runs = in_parallel(_trial, jobs, workers)
    return Recording(
        experiment.name,
        {label: Cell.of([run[label] for run in runs]) for label in experiment.cells},
    )


@dataclass(frozen=True)
class Spot:
    """A trial that was run again.

    Attributes:
        experiment: of which.
        cell: of which.
        recorded: its final regret as it was recorded; of a chaotic cell the mean of its trials.
        found: as it is now; None where its data are missing.
        allowed: the standard error that the record states; of a chaotic cell half the width of a
            prediction interval for one more trial, which normal ones leave once in a million.
    """

    experiment: str
    cell: str
    recorded: float
    found: float | None
    allowed: float

    @property
    def agrees(self) -> bool:
        """Whether both differ by no more than the stated error, as far as it can be run."""
        if self.found is None:
            return True
        rounding = 10.0 ** (1 - _DIGITS) * abs(self.recorded)
        return abs(self.found - self.recorded) <= self.allowed + rounding


def spot_checks(
    recordings: Mapping[str, Recording], *, workers: int = 1, trial: int = 0
) -> Iterator[Spot]:
    """Run one trial of every experiment again, in the cells that it names for this.

    Args:
        recordings: by the name of the experiment; others are left out.
        workers: processes.
        trial: which.
    """
    jobs = [
        (name, (cell,), trial)
        for name, each in experiments().items()
        if name in recordings
        for cell in each.spot
    ]
    for (name, (label,), _), run in zip(jobs, in_parallel(_spot_trial, jobs, workers), strict=True):
        cell = recordings[name].cell(label)
        found = float(run[label][-1]) if run else None
        if label not in experiments()[name].chaotic:
            yield Spot(name, label, float(cell.final[trial]), found, cell.regret[1])
            continue
        mean, error = cell.regret
        width = float(student_t.isf(_RARE / 2, cell.trials - 1)) * error
        yield Spot(name, label, mean, found, width * math.sqrt(cell.trials + 1))
