"""Experiments of the papers, cell by cell and trial by trial, and what every trial gave.

Any trial can be run again, and is compared with its record. Each paper's experiments stand beside
what is measured of them, in ``measures``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.stats import t as student_t

from audits.result_table import Record, ResultTable, in_order
from dpaudit.base.errors import InputError
from private_bo.experiments import mean_and_error
from private_bo.gp.types import Array

Run: TypeAlias = Callable[[Sequence[str], int], Mapping[str, Array]]
"""From cells and the number of a trial to the regret of each cell after every round."""


@dataclass(frozen=True)
class Experiment:
    """Cells that share problems, trial by trial.

    Attributes:
        name: of its record.
        title: what it shows.
        cells: what is run, by label.
        run: one trial of some cells; the same numbers whichever others are run with them.
        trials: how many are recorded.
        spot: cells of which a spot check recomputes the first trial.
        chaotic: cells in which the last bit of a processor decides between arms that are as good:
            on another one, a trial is another draw of the same law.
        rounds: name of the horizontal axis.
        regret: name of the vertical axis.
    """

    name: str
    title: str
    cells: tuple[str, ...]
    run: Run
    trials: int
    spot: tuple[str, ...]
    chaotic: tuple[str, ...] = ()
    rounds: str = "round"
    regret: str = "cumulative regret"


def experiments() -> dict[str, Experiment]:
    """All experiments by name."""
    from audits.paper_rows.measures import federated, joint, local, outsourced

    made = [*local.EXPERIMENTS, *outsourced.EXPERIMENTS, *joint.EXPERIMENTS, *federated.EXPERIMENTS]
    return {each.name: each for each in made}


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
    def record(self) -> Record:
        """To the digits that are worth writing down."""
        return {
            field: [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]
            for field, values in vars(self).items()
        }

    @classmethod
    def recorded(cls, record: Record) -> Cell:
        """The cell of a record."""
        return cls(**{field: np.array(record[field]) for field in cls.__dataclass_fields__})

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
        found = table_of(experiments()[name], folder).found()
        cells = {label: Cell.recorded(record) for label, record in found.items()}
        return cls(name, cells) if cells else None


def table_of(experiment: Experiment, folder: Path = FOLDER) -> ResultTable:
    """The cells of an experiment, with what was recorded of them."""
    facts = {"seed": 0, "trials": experiment.trials}
    cells = {label: label for label in experiment.cells}
    return ResultTable(folder / f"{experiment.name}.json", cells, lambda label: facts)


def command_of(name: str) -> str:
    """The command that makes a record anew."""
    return f"python -m audits.paper_rows --record {name}"


def record(
    experiment: Experiment, folder: Path = FOLDER, *, missing: bool = False, workers: int = 1
) -> None:
    """Run all trials of each cell, and write what they give; it does not depend on the workers.

    Args:
        experiment: which.
        folder: of the records.
        missing: whether cells that are recorded already stay as they are.
        workers: processes.
    """
    table = table_of(experiment, folder)
    names = table.missing() if missing else None
    table.measure(partial(_trials, experiment), names, workers=workers)


def _trials(experiment: Experiment, label: str, _: Record) -> Record:
    runs = [experiment.run((label,), trial)[label] for trial in range(experiment.trials)]
    return Cell.of(runs).record


def _spot_trial(known: Mapping[str, Experiment], asked: tuple[str, str]) -> float | None:
    """The final regret of the first trial of a cell; None where the data are missing."""
    name, label = asked
    try:
        return float(known[name].run((label,), 0)[label][-1])
    except InputError as error:
        if VARIABLE in str(error):
            return None
        raise


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


def spot_checks(recordings: Mapping[str, Recording], *, workers: int = 1) -> Iterator[Spot]:
    """Run the first trial of every recorded experiment again, in the cells that it names."""
    known = experiments()
    jobs = [(name, label) for name in known if name in recordings for label in known[name].spot]
    runs = in_order(partial(_spot_trial, known), jobs, workers)
    for (name, label), found in zip(jobs, runs, strict=True):
        cell = recordings[name].cell(label)
        if label not in known[name].chaotic:
            yield Spot(name, label, float(cell.final[0]), found, cell.regret[1])
            continue
        mean, error = cell.regret
        width = float(student_t.isf(_RARE / 2, cell.trials - 1)) * error
        yield Spot(name, label, mean, found, width * math.sqrt(cell.trials + 1))
