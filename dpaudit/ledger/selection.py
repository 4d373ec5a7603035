"""The best of a secret number of runs: what the ledger does for a private selection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.ledger.entry import Entry
from dpaudit.plan import Invocation, Plan, PrivateSelection

WITHIN = " › "
"""Between the label of a selection and those of its runs."""

Run = Callable[[Any, Any], tuple[float, Any]]
"""Takes a candidate and the ledger of one run, and returns a score and an output."""


@dataclass(frozen=True)
class Selected:
    """The best run of a private selection.

    Attributes:
        candidate: what the run was given.
        score: what it returned as its score.
        output: what else it returned.
    """

    candidate: Any
    score: float
    output: Any


@runtime_checkable
class ScoringNoise(Protocol):
    """A noise backend that looks at what each run of a selection returned."""

    def score(self, entry: Entry, score: float, output: object) -> None:
        """Keep a score and an output, which must follow from releases alone."""


def run_of(selection: Invocation, number: int) -> Plan:
    """The plan of one run, with labels of its own."""
    assert isinstance(selection.mechanism, PrivateSelection)
    within = prefix(selection, number)
    own = selection.mechanism.run.invocations
    return Plan.of(*(replace(each, at=within + each.at) for each in own))


def prefix(selection: Invocation, number: int) -> str:
    """What the labels of one run begin with."""
    return f"{selection.at}{WITHIN}run {number}{WITHIN}"


def selection_of(at: str) -> str:
    """The label of the selection that a label belongs to, or the label itself."""
    return at.partition(WITHIN)[0]


def require_selection(invocation: Invocation, candidates: Sequence[Any]) -> PrivateSelection:
    """The declared mechanism, if it selects.

    Raises:
        PlanMismatchError: if it does not.
        InputError: if there are no candidates.
    """
    if not isinstance(invocation.mechanism, PrivateSelection):
        raise PlanMismatchError(
            f"{invocation.describe()} selects nothing; declare private-selection."
        )
    if not len(candidates):
        raise InputError("candidates is empty; give at least one.")
    return invocation.mechanism


def best_of(runs: Sequence[tuple[Any, Callable[[], tuple[float, Any]]]]) -> Selected | None:
    """Make all runs and keep the first of the largest score; None where there are none.

    A run that raises has lost, as has one whose score is no number: which of them did is as private
    as their outputs. So an error leaves only where no run has a score.
    """
    best: Selected | None = None
    failed: Exception | None = None
    for candidate, run in runs:
        try:
            score, output = run()
            score = float(score)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is an output of that run
            failed = failed or error
            continue
        if best is None or _rank(score) > _rank(best.score):
            best = Selected(candidate, score, output)
    if best is None and failed is not None:
        raise failed
    return best


def _rank(score: float) -> float:
    return -math.inf if math.isnan(score) else score
