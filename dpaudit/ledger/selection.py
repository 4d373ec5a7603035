"""The best of a secret number of runs: what the ledger does for a private selection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from dpaudit.base.errors import InputError, PlanMismatchError
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

    def score(self, within: str, score: float, output: object) -> float:
        """Keep what a run returned, which must follow from its releases; the score that counts."""


def run_of(selection: PrivateSelection, within: str) -> Plan:
    """The plan of one run, with labels of its own."""
    return Plan.of(*(replace(each, at=within + each.at) for each in selection.run.invocations))


def prefix(at: str, selection: int, run: int) -> str:
    """What the labels of one run begin with; no other run has it."""
    return f"{at}{WITHIN}selection {selection}, run {run}{WITHIN}"


def selection_of(at: str) -> str:
    """The label of the selection that a label belongs to, or the label itself."""
    return at.partition(WITHIN)[0]


def losers(scores: Sequence[tuple[str, float, object]]) -> frozenset[str]:
    """What the labels of those runs begin with that were not the best of their selection."""
    best: dict[str, tuple[float, str]] = {}
    for within, score, _ in scores:
        whole = within.rpartition(", run ")[0]
        if whole not in best or _rank(score) > best[whole][0]:
            best[whole] = _rank(score), within
    return frozenset(each for each, _, _ in scores) - {within for _, within in best.values()}


def require_selection(invocation: Invocation, candidates: Sequence[Any]) -> PrivateSelection:
    """The declared mechanism, if it selects.

    Raises:
        PlanMismatchError: if it does not.
        InputError: if there are no candidates.
    """
    if not isinstance(invocation.mechanism, PrivateSelection):
        raise PlanMismatchError(
            f"{invocation.describe()} is not a private selection; declare private-selection."
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
