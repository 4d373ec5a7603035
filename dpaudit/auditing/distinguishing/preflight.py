"""What must be true of code before it is attacked: batches of runs give what single calls give."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.dependence import some_columns
from dpaudit.auditing.distinguishing.experiment import Chunk, Experiment, Side, Stage
from dpaudit.auditing.distinguishing.outputs import NotPlainError
from dpaudit.base.errors import InconclusiveError, InputError

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
    from scipy.stats import ks_2samp

    single = replace(experiment, one_by_one=True).both(Chunk(Stage.CHECK, 10, 0, number))
    batch = experiment.both(Chunk(Stage.CHECK, 11, 0, BATCH * number))
    for side, one, many in zip(Side, single, batch, strict=True):
        if one.shape[1:] != many.shape[1:]:
            raise InconclusiveError(
                f"a batch has outputs of shape {many.shape[1:]} {side.where}, but a call with size "
                f"= 1 returns shape {one.shape[1:]}; size must be the number of runs, so rename "
                "this parameter if it means something else."
            )
        one, many = (each.reshape(len(each), -1) for each in (one, many))
        columns = some_columns(one.shape[1])
        tails = math.log(4 * 2 * len(columns) / ERROR)
        allowed = sum(math.sqrt(tails / (2 * len(each))) for each in (one, many))
        found = max(
            ks_2samp(one[:, column], many[:, column], method="asymp").statistic
            for column in columns
        )
        if found > allowed:
            raise InconclusiveError(
                f"a batch differs from single calls {side.where} (their distributions are "
                f"{found:.2f} apart, where chance explains {allowed:.2f}); size must be a "
                "number of independent runs, so rename this parameter if it means something else."
            )
    return True


CHECK_RUNS = 4
"""Runs of a look at the code."""


@dataclass(frozen=True)
class Preflight:
    """The first look at the code: what a few runs show.

    Attributes:
        shape: of one output.
        deterministic: whether outputs were equal for every seed, on both sides.
        repeats: whether every call gave the same batch of different outputs, whatever its seed.
    """

    shape: tuple[int, ...]
    deterministic: bool
    repeats: bool


def preflight(experiment: Experiment) -> Preflight:
    """Run the code a few times, twice with one seed and once with another.

    A mechanism whose output is the same for every seed is deterministic: it can be audited (and is
    as bad as can be). One whose output differs for the same seed draws from elsewhere, and nothing
    about it could be replayed.

    Raises:
        NotPlainError: if it raises, or its outputs are no plain numbers of one shape.
        InputError: if it hangs, draws from elsewhere than its generator, or repeats one draw within
            a batch.
    """
    shapes, deterministic, repeats = set(), True, False
    chunk = Chunk(Stage.CHECK, 0, 0, CHECK_RUNS)
    with experiment.drawing() as draw:
        drawn = zip(draw(chunk), draw(chunk), draw(replace(chunk, number=1)), strict=True)
    for first, again, other in drawn:
        differs = first.shape != again.shape or not np.array_equal(first, again)
        if differs and not experiment.own_randomness:
            raise InputError(
                "the mechanism gave different outputs for the same seed, so it ignores its "
                "rng; draw all randomness from that generator, or accept an audit that "
                "cannot be replayed: --own-randomness (own_randomness=True)."
            )
        if first.shape == other.shape:
            if (
                (first == first[:1]).all()
                and (other == other[:1]).all()
                and (first[0] != other[0]).all()
                and _continuous(first, other)
            ):
                raise InputError(
                    "the mechanism repeated one draw for every run of a batch; each of the `size` "
                    "outputs needs noise of its own."
                )
            same, constant = np.array_equal(first, other), bool((first == first[:1]).all())
            deterministic = deterministic and same
            repeats = repeats or (same and not constant)
        shapes |= {first.shape[1:], other.shape[1:]}
    if len(shapes) > 1:
        shown = " and ".join(map(str, sorted(shapes)))
        raise NotPlainError(
            f"the mechanism returned outputs of shapes {shown}; here all must have the same shape."
        )
    return Preflight(shapes.pop(), deterministic, repeats)


def _continuous(*outputs: NDArray[np.float64]) -> bool:
    """Tell whether there are outputs that are no whole numbers, which do not repeat by chance."""
    return any(bool((array != np.floor(array)).any()) for array in outputs)
