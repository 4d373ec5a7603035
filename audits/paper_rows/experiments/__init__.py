"""The papers' experiments, cell by cell and trial by trial, so that any one can be run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from private_bo.gp.types import Array

__all__ = ["Experiment", "Run", "experiments"]

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
    from audits.paper_rows.experiments import federated, joint, local, outsourced

    made = [*local.EXPERIMENTS, *outsourced.EXPERIMENTS, *joint.EXPERIMENTS, *federated.EXPERIMENTS]
    return {each.name: each for each in made}
