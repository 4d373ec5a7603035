"""Whether a batch of runs is what single calls give."""

from __future__ import annotations

import math
from dataclasses import replace

from scipy import stats

from dpaudit.auditing.distinguishing.dependence import some_columns
from dpaudit.auditing.distinguishing.experiment import Chunk, Experiment, Side, Stage
from dpaudit.base.errors import InconclusiveError

ERROR = 1e-6
"""Chance of an alarm about batches that are as they should be."""
FEWEST_SINGLE, MOST_SINGLE = 40, 200
BATCH = 10
"""Runs in a batch for each single call that it is compared with."""


def batches_are_runs(experiment: Experiment, runs: int) -> bool:
    """Tell whether a batch of ``size`` outputs could be that many calls with ``size = 1``.

    Two empirical distributions differ by more than the sum of their DKW bounds (Massart 1990) with
    probability ``ERROR`` at most, of all columns and both sides.

    Args:
        experiment: code that makes batches.
        runs: of the audit, a tenth of which are drawn in single calls.

    Returns:
        False if these are too few to tell, so that no batch should be asked for.

    Raises:
        InconclusiveError: if it differs.
    """
    number = min(MOST_SINGLE, runs // BATCH)
    if number < FEWEST_SINGLE:
        return False
    single = replace(experiment, one_by_one=True).both(Chunk(Stage.CHECK, 10, 0, number))
    batch = experiment.both(Chunk(Stage.CHECK, 11, 0, BATCH * number))
    for side, one, many in zip(Side, single, batch, strict=True):
        if one.shape[1:] != many.shape[1:]:
            raise InconclusiveError(
                f"a batch has outputs of shape {many.shape[1:]} {side.where}, and a call with "
                f"size = 1 one of shape {one.shape[1:]}; size must be a number of runs, so rename "
                "a parameter that is none."
            )
        one, many = (each.reshape(len(each), -1) for each in (one, many))
        columns = some_columns(one.shape[1])
        tails = math.log(4 * 2 * len(columns) / ERROR)
        allowed = sum(math.sqrt(tails / (2 * len(each))) for each in (one, many))
        found = max(
            stats.ks_2samp(one[:, column], many[:, column], method="asymp").statistic
            for column in columns
        )
        if found > allowed:
            raise InconclusiveError(
                f"a batch differs from single calls {side.where} (distance {found:.2f} between "
                f"their distributions, of which {allowed:.2f} may be chance); size must be a "
                "number of independent runs, so rename a parameter that is none."
            )
    return True
