"""What a proof rests on, how each premise is known, and what it takes from outside."""

import itertools
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from examples import Answers, gaussian_invocation

from dpaudit import (
    AddRemove,
    Contribution,
    Finding,
    Gaussian,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    Severity,
    TrustModel,
    Verdict,
    certify,
)
from dpaudit.accounting import PureAccountant
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.certificate import (
    Certificate,
    ForeignLaw,
    Premise,
    Rehearsal,
    Scope,
    Standing,
    SubjectRecord,
    verify,
)
from dpaudit.certificate.assumptions import (
    BY_LABEL,
    THIRD,
    assumptions_of,
    is_defined_here,
    limited,
)
from dpaudit.mechanisms import ContinualGaussian, Mechanism, PureBlackBox, SquareRootToeplitz
from dpaudit.plan import PoissonSampling

# What a proof rests on, and how that is known

COUNTS = {str(each): {"mean": 700, "sum": 700} for each in Premise}
DONE = Rehearsal("numbers", 3, 5, ("row 1 removed",), draws=700, exercised=COUNTS)
PLAN = Plan.of(gaussian_invocation(mechanism=Gaussian(4.0), at="mean"))
CODE = SubjectRecord("survey:Survey", {}, "0" * 64, "survey.py:3")


def standings(plan=PLAN, *, code=True, rehearsal=None, findings=(), run=None):
    known = assumptions_of(plan, code=code, rehearsal=rehearsal, findings=findings, run=run)
    assert [each.premise for each in known] == list(Premise)
    assert all(each.evidence for each in known)
    return {each.premise: each.standing for each in known}


def alone(plan=PLAN, **given):
    """How each would stand if all that it rests on held."""
    known = assumptions_of(plan, code=True, findings=(), **({"rehearsal": None} | given))
    return {each.premise: each.alone for each in known}


def test_without_code_nothing_is_known_of_it():
    known = standings(code=False)
    assert known.pop(Premise.LAWS) is Standing.ENFORCED
    assert set(known.values()) == {Standing.NOT_APPLICABLE}


def test_without_a_rehearsal_the_author_is_believed():
    known = standings()
    assert known.pop(Premise.LAWS) is Standing.ENFORCED
    assert known.pop(Premise.SAMPLING) is Standing.NOT_APPLICABLE
    assert set(known.values()) == {Standing.ASSUMED}
    assert alone()[Premise.TOUCHES] is Standing.ENFORCED


def test_a_rehearsal_tests_what_it_can():
    known = standings(rehearsal=DONE)
    for premise in (Premise.SENSITIVITY, Premise.UNITS, Premise.CONTROL_FLOW, Premise.RESULTS):
        assert known[premise] is Standing.TESTED
    assert known[Premise.NOISE] is Standing.ENFORCED
    elsewhere = replace(DONE, external=("opacus 1.5",))
    assert standings(rehearsal=elsewhere)[Premise.NOISE] is Standing.TESTED
    assert standings(rehearsal=replace(elsewhere, draws=99))[Premise.NOISE] is Standing.ASSUMED


def test_a_rehearsal_of_rows_tests_no_units_that_may_have_several():
    shared = replace(DONE, shared="email")
    known = standings(rehearsal=shared)
    assert {each for each in Premise if known[each] is not standings(rehearsal=DONE)[each]} == {
        Premise.UNITS,
        Premise.TOUCHES,
    }
    assert known[Premise.UNITS] is known[Premise.TOUCHES] is Standing.ASSUMED
    (why,) = {
        each.evidence
        for each in assumptions_of(PLAN, code=True, rehearsal=shared, findings=())
        if each.premise in (Premise.UNITS, Premise.TOUCHES)
    }
    assert f"Each row was taken as one {PLAN.unit}, though values of 'email' repeat" in why


def test_what_was_not_done_tests_nothing():
    undone = Rehearsal(reason="There are no data.")
    assert standings(rehearsal=undone) == standings()


def test_a_finding_says_what_does_not_hold():
    for rule, premise in (
        ("sensitivity-understated", Premise.SENSITIVITY),
        ("groups-overlap", Premise.UNITS),
        ("parts-of-others", Premise.OWN_VALUES),
        ("private-control-flow", Premise.CONTROL_FLOW),
        ("result-not-from-releases", Premise.RESULTS),
        ("not-the-declared-noise", Premise.NOISE),
        ("beside-the-ledger", Premise.ONE_DOOR),
    ):
        found = (Finding(rule, Severity.ERROR, "It does not hold."),)
        assumed = assumptions_of(PLAN, code=True, rehearsal=DONE, findings=found)
        known = {each.premise: each.alone for each in assumed}
        assert [each for each in Premise if known[each] is Standing.VIOLATED] == [premise]


@pytest.mark.parametrize("rule", ["sensitivity-understated", "touched-too-often"])
def test_own_values_are_not_tested_where_one_unit_moved_too_much(rule):
    tested = replace(DONE, loads=5)
    assert standings(rehearsal=tested)[Premise.OWN_VALUES] is Standing.TESTED
    found = (Finding(rule, Severity.ERROR, "It moves."),)
    assert standings(rehearsal=tested, findings=found)[Premise.OWN_VALUES] is Standing.ASSUMED
    found = (*found, Finding("parts-of-others", Severity.ERROR, "It is others'."))
    assert standings(rehearsal=tested, findings=found)[Premise.OWN_VALUES] is Standing.VIOLATED


def test_bounded_queries_and_local_clips_are_enforced():
    facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    bounded = Plan.of(Invocation.bounded(Laplace(1.0), Contribution(1.0), *facts, at="sum"))
    assert alone(bounded)[Premise.SENSITIVITY] is Standing.ENFORCED
    assert standings(Answers().plan())[Premise.SENSITIVITY] is Standing.ENFORCED


def test_no_premise_stands_better_than_what_it_rests_on():
    facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    bounded = Plan.of(Invocation.bounded(Laplace(1.0), Contribution(1.0), *facts, at="sum"))
    assert standings(bounded)[Premise.SENSITIVITY] is Standing.ASSUMED  # nothing tests the rows
    loaded = replace(DONE, loads=5)
    for findings, standing in (
        ((), Standing.TESTED),
        ((Finding("load-mixes-rows", Severity.ERROR, "Seen."),), Standing.VIOLATED),
    ):
        known = assumptions_of(bounded, code=True, rehearsal=loaded, findings=findings)
        (own,) = (each for each in known if each.premise is Premise.SENSITIVITY)
        assert (own.standing, own.alone) == (standing, Standing.ENFORCED)
        assert own.rests_on == (Premise.OWN_VALUES, Premise.UNITS)
    for each in known:
        below = [other.standing.rank for other in known if other.premise in each.rests_on]
        assert each.standing.rank == max([each.alone.rank, *below])


def test_what_no_neighbour_exercised_is_not_tested():
    counts = COUNTS | {Premise.SENSITIVITY: {"mean": 0}}
    counted = replace(DONE, exercised=counts)
    known = assumptions_of(PLAN, code=True, rehearsal=counted, findings=())
    found = {each.premise: each for each in known}
    assert found[Premise.SENSITIVITY].standing is Standing.NOT_EXERCISED
    assert ("None of the neighbours (1) exercised it at 'mean'") in found[
        Premise.SENSITIVITY
    ].evidence
    assert found[Premise.RESULTS].standing is Standing.TESTED
    assert Standing.NOT_EXERCISED.rank == Standing.ASSUMED.rank
    made = certify(PLAN, subject=CODE, delta=1e-5).with_rehearsal(counted)
    again = Certificate.from_dict(made.to_dict())
    assert again == made
    verify(again)
    for lacking in ({}, {**counts, Premise.SENSITIVITY: {}}, without(counts, Premise.SENSITIVITY)):
        made = replace(made, rehearsal=replace(counted, exercised=lacking))
        verify(made.restated())
        told = (
            replace(each, standing=Standing.TESTED, alone=Standing.TESTED)
            if each.premise is Premise.SENSITIVITY
            else each
            for each in made.restated().assumptions
        )
        with pytest.raises(TamperedError, match="is said to be tested; it is not exercised"):
            verify(replace(made, assumptions=tuple(told)))


@pytest.mark.parametrize("premise", BY_LABEL)
def test_what_is_not_recorded_was_not_exercised(premise):
    for lacking in ({}, without(COUNTS, premise), {**COUNTS, premise: {"sum": 3}}):
        made = replace(DONE, loads=5, exercised=lacking)
        assert alone(rehearsal=made)[premise] is not Standing.TESTED
        seen = replace(made, external=("opacus 1.5",))
        drawn = Standing.TESTED if lacking else Standing.NOT_EXERCISED
        assert alone(rehearsal=seen)[Premise.NOISE] is drawn


def without(counts, premise):
    return {name: each for name, each in counts.items() if name != premise}


def test_public_facts_are_tested_where_the_file_was_out_of_reach():
    assert standings(rehearsal=DONE)[Premise.PUBLIC_FACTS] is Standing.ASSUMED
    assert standings(rehearsal=replace(DONE, public=2))[Premise.PUBLIC_FACTS] is Standing.TESTED


def test_samples_are_the_author_s():
    sampled = Plan.of(gaussian_invocation(at="mean", sampling=PoissonSampling(0.1)))
    assert standings(sampled, rehearsal=DONE)[Premise.SAMPLING] is Standing.ASSUMED
    told = assumptions_of(sampled, code=True, rehearsal=DONE, findings=())
    (why,) = (each.evidence for each in told if each.premise is Premise.SAMPLING)
    assert "it is not tested whether the draws are independent and secret" in why


def test_a_stated_seed_is_no_secret():
    run = {"ledger": {"seeded": True, "samplers": {"numpy 2": 1}}}
    assert standings(rehearsal=DONE, run=run)[Premise.NOISE] is Standing.ASSUMED


def test_noise_from_outside_is_not_the_ledger_s_whatever_its_name():
    own = {"seeded": False, "samplers": {"numpy 2": 2, "opendp 0.16.0, exact": 1}}
    for ledger, known in (
        (own, Standing.ENFORCED),  # an older record says no more
        (own | {"external": {"numpy 2": 1}}, Standing.ASSUMED),
        (own | {"samplers": {"opendp 0.16.0": 1}}, Standing.ASSUMED),
    ):
        assert standings(run={"ledger": ledger})[Premise.NOISE] is known


def test_a_certificate_speaks_of_code_only_after_a_rehearsal():
    plain = certify(PLAN, subject=CODE, delta=1e-5)
    assert plain.scope is Scope.PLAN
    made = plain.with_rehearsal(DONE)
    assert made.scope is Scope.CODE
    assert made.verdict is Verdict.CERTIFIED
    again = Certificate.from_dict(made.to_dict())
    assert again == made
    verify(again)
    wrong = plain.with_rehearsal(DONE, [Finding("beside-the-ledger", Severity.ERROR, "Seen.")])
    assert wrong.verdict is Verdict.UNPROVEN
    with pytest.raises(InputError, match="is reserved"):
        plain.with_rehearsal(DONE, [Finding("unproven", Severity.ERROR, "It is mine.")])


def test_no_standing_is_better_than_what_is_recorded():
    plain = certify(PLAN, subject=CODE, delta=1e-5)
    for number, each in enumerate(plain.assumptions):
        if each.standing is Standing.ASSUMED:
            better = list(plain.assumptions)
            better[number] = replace(each, standing=Standing.TESTED)
            with pytest.raises(TamperedError, match="it is assumed"):
                verify(replace(plain, assumptions=tuple(better)))


ALONE = dict.fromkeys(Premise, (Standing.ENFORCED, "It is built in."))


@pytest.mark.parametrize(("own", "below"), list(itertools.product(Standing, Standing)))
def test_a_premise_is_known_no_better_than_what_it_rests_on(own, below):
    known = ALONE | {Premise.SENSITIVITY: (own, ""), Premise.OWN_VALUES: (below, "")}
    rests = {Premise.SENSITIVITY: (Premise.OWN_VALUES,)}
    found = {each.premise: each for each in limited(known, rests)}
    here = found[Premise.SENSITIVITY]
    assert here.alone is own
    if own is Standing.NOT_APPLICABLE:  # there is nothing that could rest on anything
        assert here.standing is own
        assert here.rests_on == ()
    else:
        assert here.standing.rank == max(own.rank, below.rank)
        assert here.rests_on == (Premise.OWN_VALUES,)
    assert found[Premise.NOISE].standing is Standing.ENFORCED


def test_a_chain_of_premises_is_as_strong_as_its_weakest():
    known = ALONE | {Premise.UNITS: (Standing.ASSUMED, "")}
    rests = {
        Premise.SENSITIVITY: (Premise.OWN_VALUES,),
        Premise.OWN_VALUES: (Premise.TOUCHES,),
        Premise.TOUCHES: (Premise.UNITS,),
    }
    standings = {each.premise: each.standing for each in limited(known, rests)}
    assert {standings[each] for each in rests} == {Standing.ASSUMED}


def test_what_was_not_exercised_ranks_with_what_is_assumed():
    assert Standing.NOT_EXERCISED.rank == Standing.ASSUMED.rank
    assert Standing.TESTED.rank < Standing.ASSUMED.rank < Standing.VIOLATED.rank
    assert len(Premise) == 12
    assert len(THIRD) == 3


# What a proof takes from outside of the package, and how it is known


@dataclass(frozen=True)
class Silent(Laplace):
    """No noise at all, whatever it states."""

    kind: ClassVar[str] = "outside-silent"

    def sample(self, values, rng):
        return values


@dataclass(frozen=True)
class Rounds(SquareRootToeplitz):
    kind: ClassVar[str] = "outside-rounds"


@dataclass(frozen=True)
class Coins(PoissonSampling):
    kind: ClassVar[str] = "outside-coins"


class Cheap(PureAccountant):
    """The pure accountant under a name of another package."""

    kind: ClassVar[str] = "outside-cheap"


def law_of(certificate):
    (found,) = (each for each in certificate.assumptions if each.premise is Premise.LAWS)
    return found


def plan_of(mechanism, **given):
    return Plan.of(gaussian_invocation(mechanism=mechanism, at="mean", **given))


def test_the_package_s_own_laws_are_enforced_with_and_without_code():
    for subject in (CODE, SubjectRecord("a plan")):
        made = certify(plan_of(Gaussian(4.0)), subject=subject, delta=1e-5)
        assert not made.foreign
        assert law_of(made).standing is Standing.ENFORCED


def test_a_law_of_the_author_s_own_is_assumed():
    made = certify(plan_of(Silent(1000.0)), subject=CODE)
    assert made.foreign.mechanisms == (ForeignLaw("outside-silent", __name__, ("mean",)),)
    assert law_of(made).standing is Standing.ASSUMED
    assert "'outside-silent'" in law_of(made).evidence
    tried = made.with_rehearsal(DONE)
    assert law_of(tried).standing is Standing.ASSUMED
    assert Certificate.from_dict(tried.to_dict()) == tried


def test_a_black_box_is_assumed():
    plan = Plan.of(gaussian_invocation(mechanism=PureBlackBox(0.001), sensitivity=1.0, at="box"))
    made = certify(plan, subject=CODE)
    assert law_of(made).standing is Standing.ASSUMED


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"mechanism": Gaussian(4.0), "sampling": Coins(0.5)}, "outside-coins"),
        (
            {"mechanism": ContinualGaussian(sigma=4.0, factorization=Rounds(4), participations=1)},
            "outside-rounds",
        ),
    ],
)
def test_a_part_of_others_counts_too(given, kind):
    plan = Plan.of(gaussian_invocation(**given, at="mean"))
    found = certify(plan, subject=CODE, delta=1e-5)
    assert [each.kind for each in found.foreign.mechanisms] == [kind]
    assert law_of(found).standing is Standing.ASSUMED


def test_an_accountant_of_others_is_named():
    made = certify(plan_of(Laplace(4.0)), subject=CODE, accountant="outside-cheap", delta=0.0)
    assert made.foreign.accountants == ("outside-cheap",)
    assert law_of(made).standing is Standing.ASSUMED


def test_a_class_is_the_package_s_own_by_where_it_is_defined():
    assert all(is_defined_here(each) for each in (Gaussian, Mechanism, PoissonSampling))
    posing = type("Gaussian", (Gaussian,), {"__module__": Gaussian.__module__})
    assert not is_defined_here(posing)
