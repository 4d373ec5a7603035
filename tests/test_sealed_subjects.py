"""Wrong subjects, written sealed, leak nothing; right ones publish what they did."""

import numpy as np
import pytest

from dpaudit.certificate import Premise, Standing
from dpaudit.sealed.sandbox import lacking
from dpaudit.sealed.sums import Side
from tests.benchmarks.sealed_subjects import wrong
from tests.benchmarks.sealed_subjects.outcomes import (
    SEALED_HERE,
    Outcome,
    outcome,
    run_sealed,
    sealed_kinds,
    sealed_outcome,
)
from tests.benchmarks.sealed_subjects.right import PAIRS, both
from tests.benchmarks.wrong_subjects import kept
from tests.benchmarks.wrong_subjects.__main__ import subjects

pytest.importorskip("duckdb")
pytestmark = pytest.mark.pages

SLICE = {
    wrong.ProductCodes: Outcome.HARMLESS,
    wrong.PricesLookedUp: Outcome.ASSUMED,
    wrong.SessionsAsCustomers: Outcome.ASSUMED,
}
REFUSED = (wrong.LatestWindow, wrong.BalancedRegions, wrong.AnswersOverMaximum, wrong.RegionMeans)


def test_every_wrong_subject_is_written():
    written = [kind.of.__name__ for kind in sealed_kinds()] + list(SEALED_HERE)
    assert sorted(written) == sorted(kind.__name__ for kind in subjects())


@pytest.mark.parametrize("kind", REFUSED)
def test_what_makes_values_of_everybodys_rows_is_refused(kind):
    assert outcome(kind).outcome is Outcome.REFUSED


@pytest.mark.parametrize("kind", SLICE)
def test_what_runs_is_harmless_or_assumed(kind):
    assert outcome(kind, most=1).outcome is SLICE[kind]


class Revenue(wrong.Sealed):
    """Of purchases of which one customer has thirty."""

    of = kept.BalancedRegions


def test_a_leak_of_the_operations_would_be_found(monkeypatch):
    assert outcome(Revenue, most=1).outcome is Outcome.HARMLESS

    def as_if_each_row_were_a_unit(side, vectors):
        _, numbers = side.store.values(vectors)
        return numbers, np.arange(len(numbers))

    monkeypatch.setattr(Side, "total", as_if_each_row_were_a_unit)
    assert outcome(Revenue, most=1).outcome is Outcome.LEAKS


@pytest.mark.parametrize("pair", PAIRS[3:7], ids=lambda each: each.of.__name__)
def test_a_right_one_publishes_the_same_at_one_seed(pair):
    rows, handles = both(pair)
    assert rows == handles


@pytest.mark.skipif(bool(lacking()), reason="nothing is sealed here")
def test_a_bound_cannot_be_read_at_import():
    found = sealed_outcome("CapAtImport", SEALED_HERE["CapAtImport"])
    assert found.outcome is Outcome.REFUSED


@pytest.mark.skipif(bool(lacking()), reason="nothing is sealed here")
def test_its_certificate_assumes_what_no_program_can_know():
    known = {each.premise: each.standing for each in run_sealed("caps.py:CapTyped").assumptions}
    assert {known[Premise.PUBLIC_FACTS], known[Premise.PERSONS]} == {Standing.ASSUMED}
