"""What all studies share: one plan from their invocations, one way from data to a result."""

from __future__ import annotations

from contextlib import closing

import pytest

from dpaudit import InputError, Ledger, Plan
from private_bo import SUBJECTS
from private_bo.base import Study, load_named

MAKERS = {"one": lambda: 1, "two": lambda: 2}


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_shipped_subject_is_a_study_of_its_unit_relation_and_trust(kind):
    study = kind()
    assert isinstance(study, Study)
    assert study.plan() == Plan.of(*study.invocations())
    for each in study.plan().invocations:
        assert each.trust is (study.trust if hasattr(study, "trust") else study.inner.trust)
        assert each.relation == getattr(study, "inner", study).relation
        assert each.unit.name in {study.unit.name, "response"}


@pytest.mark.parametrize("kind", SUBJECTS)
def test_data_that_do_not_fit_release_nothing(kind):
    study = kind()
    with closing(Ledger(study.plan())) as ledger:
        with pytest.raises((InputError, TypeError)):
            study.run(object(), ledger, None)
        assert len(ledger) == 0


def test_data_are_named_or_read_by_suffix():
    assert load_named("two", MAKERS) == 2
    assert load_named("a.csv", MAKERS, {".csv": str.upper}) == "A.CSV"
    with pytest.raises(InputError, match=r"data is 'x'; it must be one of one, two, or a file\."):
        load_named("x", MAKERS, {".csv": str}, files=", or a file")
    with pytest.raises(InputError, match=r"data is 'x'; it must be one\."):
        load_named("x", {"one": lambda: 1})
