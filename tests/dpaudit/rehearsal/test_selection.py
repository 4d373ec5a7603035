"""A search as it is declared has no finding; a naive one has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.certificate import Premise
from dpaudit.plan import NegativeBinomialRuns, PrivateSelection
from dpaudit.rehearsal.rehearse import rehearse

FACTS = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
FIT, SCORE = Gaussian(4.0), Laplace(5.0)
ONE = Plan.of(Invocation(FIT, 1.0, *FACTS, at="fit"), Invocation(SCORE, 1.0, *FACTS, at="score"))
SHARES = [0.1, 0.3, 0.5, 0.9]
ROWS = np.random.default_rng(5).uniform(0, 1, 30)


def once(rows, share, ledger, reach=1.0):
    clipped = np.clip(np.nan_to_num(np.asarray(rows, dtype=float)), 0, 1)
    fit = ledger.release(FIT, float((clipped * share).sum()) * reach, at="fit")
    return ledger.release(SCORE, float((clipped > share).sum()), at="score"), fit


@dataclass(frozen=True)
class Search(Subject):
    """The best of a declared search."""

    def plan(self):
        selection = PrivateSelection(ONE, NegativeBinomialRuns(0.2))
        return Plan.of(Invocation(selection, 1.0, *FACTS, at="search"))

    def run(self, rows, ledger, rng):
        best = ledger.select(lambda share, own: self.once(rows, share, own), SHARES, at="search")
        return RunResult({"fit": best.output, "share": best.candidate})

    def once(self, rows, share, own):
        return once(rows, share, own)


@dataclass(frozen=True)
class ScoresOnRows(Search):
    """Releases a score, and takes one that is no release."""

    def once(self, rows, share, own):
        _, fit = once(rows, share, own)
        return -abs(fit - np.nansum(np.clip(rows, 0, 1)) * share), fit


@dataclass(frozen=True)
class MovesTooFar(Search):
    """A run beyond its sensitivity."""

    def once(self, rows, share, own):
        return once(rows, share, own, reach=20.0)


@dataclass(frozen=True)
class TellsLosers(Search):
    """Shows all scores beside the best fit."""

    def run(self, rows, ledger, rng):
        seen = []

        def kept(share, own):
            seen.append(once(rows, share, own))
            return seen[-1]

        best = ledger.select(kept, SHARES, at="search")
        return RunResult({"fit": best.output, "scores": [score for score, _ in seen]})


@dataclass(frozen=True)
class Naive(Subject):
    """Declares one training, makes four in ledgers of its own, and keeps the best."""

    def plan(self):
        return ONE

    def run(self, rows, ledger, rng):
        tried = []
        for share in SHARES:
            with Ledger(ONE, noise=ledger.noise) as own:
                tried.append(once(rows, share, own))
        once(rows, 0.5, ledger)
        return RunResult({"fit": max(tried)[1]})


@dataclass(frozen=True)
class NaiveInOne(Naive):
    """The same in the ledger that it is given."""

    def run(self, rows, ledger, rng):
        return RunResult({"fit": max(once(rows, share, ledger) for share in SHARES)[1]})


@dataclass(frozen=True)
class NaiveBeside(Naive):
    """The same with noise of its own."""

    def run(self, rows, ledger, rng):
        clipped = np.clip(np.nan_to_num(np.asarray(rows, dtype=float)), 0, 1)
        fits = [clipped.sum() * share + rng.normal(0, 4) for share in SHARES]
        once(rows, 0.5, ledger)
        return RunResult({"fit": float(max(fits))})


def rules(subject) -> set[str]:
    return {each.rule for each in rehearse(subject, ROWS, "rows").findings}


def test_a_search_as_declared_has_no_finding_and_its_runs_are_exercised():
    outcome = rehearse(Search(), ROWS, "rows")
    assert not outcome.findings
    assert outcome.record.exercised[str(Premise.SENSITIVITY)]["search"] > 0


@pytest.mark.parametrize(
    ("subject", "rule"),
    [
        (ScoresOnRows(), "result-not-from-releases"),
        (MovesTooFar(), "sensitivity-understated"),
        (TellsLosers(), "losers-leave"),
        (Naive(), "touched-too-often"),
        (NaiveInOne(), "plan-not-followed"),
        (NaiveBeside(), "result-not-from-releases"),
    ],
)
def test_a_naive_search_is_found(subject, rule):
    assert rule in rules(subject)
