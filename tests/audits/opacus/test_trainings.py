"""Wrong trainings are refused or found, and honest ones are not."""

import logging

import pytest

pytest.importorskip("opacus")

from audits.opacus.trainings import MISSED, TRAININGS


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("opacus").setLevel(logging.ERROR)


@pytest.mark.parametrize("each", TRAININGS, ids=lambda each: each.name)
def test_the_ledger_says_what_is_expected(each):
    assert each.right(each.look(0)), each.look(0)


def test_the_table_is_as_long_as_it_says():
    wrong = [each for each in TRAININGS if each.finds]
    assert len(wrong) == 36
    assert [each.name for each in wrong if each.finds == MISSED] == [
        "inputs normalised by the data",
        "gradients of rows made of all rows",
    ]
    assert len({each.name for each in TRAININGS}) == len(TRAININGS)
