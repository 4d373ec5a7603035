"""No one-line mistake of a sealed form is certified with a premise enforced that it breaks."""

from __future__ import annotations

import pytest

from dpaudit.sealed.sandbox import lacking
from tests.support.sealed_mutants import (
    REMEMBERING,
    Mutant,
    Outcome,
    moved_by_one,
    mutants,
    outcome,
)
from tests.support.sealed_studies import bandit

pytest.importorskip("duckdb")
MUTANTS = {each.name: each for each in mutants()}
NOT_CERTIFIED = {"HalfNoise", "SurerBit"}
HARMLESS = {
    *("NoClip", "WideRange", "OtherNoise", "NoCoin", "RoundLess", "Everybody", "OwnersNumber"),
    *("MissingTold", "AnswerForLevel", "NoRange", "shouting", "sulking"),
}
ASSUMED = {"VisitsAsUsers", "RosterOfTheTable"}


def wanted(name: str) -> Outcome:
    known = {
        Outcome.NOT_CERTIFIED: NOT_CERTIFIED,
        Outcome.HARMLESS: HARMLESS,
        Outcome.ASSUMED: ASSUMED,
    }
    return next((each for each, names in known.items() if name in names), Outcome.IMPOSSIBLE)


@pytest.mark.pages
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_becomes_nothing_that_leaks(name, tmp_path):
    found, why = outcome(MUTANTS[name], tmp_path)
    assert found is wanted(name), why


@pytest.mark.parametrize("name", ["NoClip", "NoClipNorRange", "HalfNoise", "RoundMore", "NoRange"])
def test_some_of_them(name, tmp_path):
    assert outcome(MUTANTS[name], tmp_path)[0] is wanted(name)


def test_a_leak_would_be_found(tmp_path, monkeypatch):
    def unbounded(self, value):
        return value

    monkeypatch.setattr("dpaudit.mechanisms.additive.Laplace.checked", unbounded)
    monkeypatch.setattr("dpaudit.sealed.operations.clips", lambda mechanism: True)
    subject = bandit(type(MUTANTS["NoClipNorRange"].subject), 4)
    assert outcome(Mutant("a leak", subject, ""), tmp_path)[0] is Outcome.LEAKS


@pytest.mark.skipif(bool(lacking()), reason="nothing is sealed here")
@pytest.mark.parametrize("objective", REMEMBERING, ids=lambda each: each.__name__)
def test_an_objective_that_remembers_has_nothing_to_remember(objective, tmp_path):
    (tmp_path / "sealed").mkdir()
    assert moved_by_one(objective, tmp_path / "sealed") == 1
    assert moved_by_one(objective, tmp_path, seal=False) > 1  # so that it is a mistake
