"""No one-line mistake of a joint or federated form leaks with a premise enforced that it breaks."""

from __future__ import annotations

import pytest

from tests.support.sealed_party_mutants import party_mutants, party_outcome

pytest.importorskip("duckdb")
MUTANTS = {each.name: each for each in party_mutants()}


@pytest.mark.pages
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_becomes_nothing_that_leaks(name, tmp_path):
    found, why = party_outcome(MUTANTS[name], tmp_path)
    assert found is MUTANTS[name].wanted, why


@pytest.mark.parametrize(
    "name", ["FarFeatures", "ArmsSent", "Everybody", "UserInTwoGroups", "by_counts", "SampleKept"]
)
def test_some_of_them(name, tmp_path):
    found, why = party_outcome(MUTANTS[name], tmp_path)
    assert found is MUTANTS[name].wanted, why
