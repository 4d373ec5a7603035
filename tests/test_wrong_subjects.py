"""Rows that were made of everybody's: no premise that a unit's data break reads *enforced*."""

import pytest

from dpaudit.certificate import Premise, Rehearsal, Standing, Verdict, verify
from dpaudit.project.targets import certified, find_target
from tests.benchmarks.wrong_subjects.__main__ import certificate_of, stated, subjects

pytestmark = pytest.mark.pages
ALL = subjects()
PANDAS = {"NumberColumns", "ProductCodes"}
SILENT = ("RegionMeans", "SessionsAsCustomers", "CapAtImport")
"""Of those that a rehearsal on the purchases does not find, one of each kind."""


def named(names):
    return [kind for kind in ALL if kind.__name__ in names]


@pytest.mark.parametrize("kind", ALL, ids=lambda each: each.__name__)
def test_one_unit_moves_more_than_what_is_declared(kind):
    if kind.__name__ in PANDAS:
        pytest.importorskip("pandas")
    assert kind().excess() > 1.1


@pytest.mark.parametrize("kind", ALL, ids=lambda each: each.__name__)
def test_the_best_rehearsal_enforces_no_premise_that_is_broken(kind):
    target = find_target(f"{kind.__module__}:{kind.__name__}", {})
    counts = {label.at: 9 for label in target.plan.invocations}
    best = Rehearsal(
        data="purchases",
        releases=1,
        neighbours=("a unit removed",),
        draws=1000,
        loads=9,
        public=1,
        exercised=dict.fromkeys(map(str, Premise), counts),
    )
    made = certified(target).with_rehearsal(best)
    assert made.verdict is Verdict.CERTIFIED
    known = {each.premise: each.standing for each in made.assumptions}
    assert Standing.ENFORCED not in {known[each] for each in kind.breaks}


@pytest.mark.parametrize("kind", named(SILENT), ids=lambda each: each.__name__)
def test_a_certificate_of_it_says_no_more_than_tested(kind):
    made = certificate_of(kind)
    verify(made)
    assert made.verdict is Verdict.CERTIFIED
    assert stated(kind, made) in (Standing.TESTED, Standing.NOT_EXERCISED, Standing.ASSUMED)


def test_there_are_those_that_users_wrote_and_twelve_more():
    assert len(ALL) >= 7 + 12
