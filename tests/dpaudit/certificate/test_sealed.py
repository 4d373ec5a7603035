"""Certificates of sealed runs: what they rest on, and what no file may say of a seal."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from examples import response_plan
from seals import CODE, RUN, SEAL, sealed, visits

from dpaudit import Claim, Finding, Laplace, PoissonSampling, Severity, certify
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.files import digest
from dpaudit.certificate import (
    Certificate,
    Premise,
    Rehearsal,
    ReleaseRecord,
    Scope,
    Standing,
    SubjectRecord,
    load_certificate,
    verify,
)
from dpaudit.certificate.certificate import written_as
from dpaudit.certificate.records import MEANS, NEVER_SEALED, TRIES
from dpaudit.mechanisms import PureBlackBox
from dpaudit.sealed.sealable import require_sealable

ASSUMED = {Premise.UNITS, Premise.PERSONS, Premise.PUBLIC_FACTS}


def known(certificate):
    return {each.premise: each for each in certificate.assumptions}


def test_it_is_written_read_and_verified(tmp_path):
    made = sealed()
    again = load_certificate(made.save(tmp_path / "certificate.json"))
    verify(again)
    assert again.to_dict() == made.to_dict()
    assert again.seal == SEAL
    assert (again.scope, str(again.scope)) == (Scope.SEALED, "sealed")


def test_a_certificate_without_a_seal_says_nothing_of_one():
    made = certify(response_plan(), subject=CODE, claim=Claim(1.0))
    assert "seal" not in made.to_dict()
    assert made.scope is Scope.PLAN


def test_older_schemas_know_no_seal():
    for number in (1, 2):
        name = f"dpaudit-certificate/{number}"
        assert "seal" not in written_as(name, sealed().to_dict() | {"schema": name})


def test_what_was_tested_is_enforced():
    made = sealed()
    assert {
        each for each, one in known(made).items() if one.standing is Standing.ASSUMED
    } == ASSUMED
    assert known(made)[Premise.SAMPLING].standing is Standing.NOT_APPLICABLE
    others = {*Premise} - ASSUMED - {Premise.SAMPLING}
    assert {known(made)[each].standing for each in others} == {Standing.ENFORCED}
    for each in (Premise.CONTROL_FLOW, Premise.RESULTS, Premise.ONE_DOOR):
        said = "The code ran in a process that holds handles and has no way to the rows."
        assert said in known(made)[each].evidence


def test_a_release_and_a_seal_assume_the_same():
    release = ReleaseRecord("visits.csv", ("visits: counts of rows",), "cd" * 32)
    released = certify(visits(), subject=SubjectRecord("visits.toml"), release=release)
    one, other = known(sealed()), known(released)
    assert {each: one[each].standing for each in one} == {
        each: other[each].standing for each in other
    }
    assert one[Premise.UNITS] == other[Premise.UNITS]
    assert one[Premise.OWN_VALUES] == other[Premise.OWN_VALUES]


def test_the_ledger_draws_the_samples_unless_a_stated_seed_tells_them():
    plan = visits(sampling=PoissonSampling(0.5))
    sampled = known(sealed(plan))[Premise.SAMPLING]
    assert sampled.standing is Standing.ENFORCED
    assert "holds a handle" in sampled.evidence
    seeded = sealed(plan, run=RUN | {"ledger": RUN["ledger"] | {"seeded": True}}, seed=1)
    assert known(seeded)[Premise.SAMPLING].standing is Standing.ASSUMED
    assert known(seeded)[Premise.NOISE].standing is Standing.ASSUMED


def test_a_finding_still_says_what_does_not_hold():
    error = Finding("result-not-from-releases", Severity.ERROR, "x")
    made = replace(sealed(), findings=(error,)).restated()
    assert known(made)[Premise.RESULTS].standing is Standing.VIOLATED


def test_time_memory_and_what_a_kernel_shares_are_not_covered():
    assert sealed().not_covered == ("Trends.", *NEVER_SEALED)
    told = " ".join(NEVER_SEALED)
    assert "How long" in told
    assert "whether a run fails for want of memory or room" in told.lower()
    assert "kernel shares" in told


def test_which_scopes_will_do():
    wanted = {each: {other for other in Scope if each.keeps(other)} for each in Scope}
    assert wanted == {
        Scope.PLAN: {Scope.PLAN},
        Scope.CODE: {Scope.CODE},
        Scope.SEALED: {Scope.SEALED, Scope.CODE},
        Scope.RELEASE: {Scope.RELEASE, Scope.SEALED},
    }


# A seal lifts what is known: nothing else may bear one


def without(name):
    return {each: failed for each, failed in SEAL.tries.items() if each != name}


RELEASE = ReleaseRecord("visits.csv", ("visits: counts of rows",), "cd" * 32)
UNMADE = Finding("made-up-data", Severity.WARNING, "x")


def lacking(means):
    """What is left of the means without one of them."""
    return replace(SEAL, means=tuple(each for each in SEAL.means if means not in each))


def run_with(**changes):
    return RUN | {"ledger": RUN["ledger"] | changes}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"seal": replace(SEAL, tries={})}, r"seal\.tries lacks the attempt 'open what"),
        *(({"seal": replace(SEAL, tries=without(each))}, f"attempt '{each}'") for each in TRIES),
        (
            {"seal": replace(SEAL, tries=SEAL.tries | {"fork": "succeeded"})},
            "attempt 'fork' failed",
        ),
        (
            {"seal": replace(SEAL, tries=SEAL.tries | {"fly": "Succeeded"})},
            "how the attempt 'fly' failed",
        ),
        ({"seal": replace(SEAL, tries=SEAL.tries | {"fork": ""})}, "attempt 'fork' failed"),
        ({"seal": replace(SEAL, means=())}, r"seal\.means lacks Landlock"),
        *(({"seal": lacking(each)}, f"means lacks {each}") for each in MEANS),
        ({"seal": replace(SEAL, source="other.csv")}, "the run is of 'visits.csv', and the find"),
        ({"release": RELEASE}, "seal is stated together with a release"),
        ({"subject": SubjectRecord("visits.toml")}, "but the subject has no code"),
        (
            {"rehearsal": Rehearsal("numbers", 3, 5, ("row 1 removed",))},
            "together with a rehearsal",
        ),
        ({"run": None}, "seal is stated without a run"),
        ({"run": {"summary": {}, "series": {}}}, "seal is stated without a run"),
        ({"run": run_with(external={"numpy": 1})}, "whose noise was drawn elsewhere"),
        ({"findings": (UNMADE,)}, "the findings say that its rows were made up"),
        ({"not_covered": ("Trends.",)}, "not_covered lacks the sentences that every sealed run"),
    ],
)
def test_an_edited_seal_does_not_verify(changes, told):
    with pytest.raises(TamperedError, match=told):
        verify(replace(sealed(), **changes).restated())


def test_a_seal_put_beside_a_certificate_does_not_lift_what_it_says():
    record = certify(visits(), subject=CODE, claim=Claim(1.0)).to_dict() | {"seal": SEAL.to_dict()}
    rest = {name: value for name, value in record.items() if name != "digest"}
    with pytest.raises(TamperedError, match="scope is 'plan'"):
        Certificate.from_dict(rest | {"digest": digest(rest)})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"table": "x"}, "seal.table"),
        ({"files": {"a.csv": "x"}}, "seal.files"),
        ({"tries": {"fork": 1}}, "seal.tries"),
        ({"system": ""}, "seal.system"),
        ({"more": 1}, "seal"),
    ],
)
def test_bad_structure_is_named(change, place):
    record = sealed().to_dict()
    rest = {name: value for name, value in record.items() if name != "digest"}
    rest["seal"] = rest["seal"] | change
    with pytest.raises(InputError, match=f"{place}.* does not follow the schema"):
        Certificate.from_dict(rest | {"digest": digest(rest)})


# Nobody is taken at their word


@dataclass(frozen=True)
class Mine(Laplace):
    """A law of an author's own."""

    kind: ClassVar[str] = "mine-sealed"


@pytest.mark.parametrize("law", [Mine(2.0), PureBlackBox(0.5)], ids=["foreign", "black box"])
def test_a_seal_goes_with_no_law_that_its_author_states(law):
    plan = visits(law, contribution=None)
    with pytest.raises(
        InputError, match=r"only an author states the cost of .*; such a run cannot be sealed"
    ):
        sealed(plan)
    made = certify(plan, subject=CODE, claim=Claim(1.0))
    made = replace(made, seal=SEAL, not_covered=NEVER_SEALED).with_run(RUN, None)
    with pytest.raises(TamperedError, match="takes the word of others"):
        verify(made)


def test_a_plan_with_a_black_box_is_refused_before_anything_is_read():
    plan = visits(PureBlackBox(0.5), contribution=None)
    with pytest.raises(InputError, match="is a black box; a run with one cannot be sealed"):
        require_sealable(plan, table=None)
