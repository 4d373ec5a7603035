"""Wrong trainings in the form of a loss of one example: each ends as its table says."""

from collections import Counter

import pytest

from audits.opacus.trainings import TRAININGS
from tests.benchmarks.wrong_trainings import ASSUMED, CASES, FURTHER, IMPOSSIBLE, OF_OPACUS


@pytest.mark.pages
@pytest.mark.parametrize("case", [each for each in CASES if each.attempt], ids=lambda one: one.name)
def test_a_wrong_training_ends_as_is_said(case):
    assert case.said() == ""


def test_they_are_those_that_are_tried_with_opacus():
    """In their order; the page has the sums."""
    wrong = [each.subject for each in TRAININGS if not each.subject.startswith("honest")]
    assert [each.name for each in OF_OPACUS] == wrong
    assert len(FURTHER) >= 20
    assert Counter(each.becomes for each in OF_OPACUS)[IMPOSSIBLE] == 25
    assert {each.name for each in OF_OPACUS if each.becomes == ASSUMED} == {
        "another optimizer beside it",
        "exact gradients put back",
    }
