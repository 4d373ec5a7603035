"""What a proof takes from outside of the package, and how it is known."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from examples import gaussian_invocation

from dpaudit import Gaussian, Laplace, Plan, certify
from dpaudit.accounting import PureAccountant
from dpaudit.certificate import Certificate, ForeignLaw, Premise, Rehearsal, Standing, SubjectRecord
from dpaudit.certificate.laws import is_defined_here
from dpaudit.mechanisms import ContinualGaussian, Mechanism, PureBlackBox, SquareRootToeplitz
from dpaudit.plan import PoissonSampling

CODE = SubjectRecord("survey:Survey", {}, "0" * 64, "survey.py:3")
DONE = Rehearsal("numbers", 3, 5, ("row 1 removed",), draws=700)


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


def test_a_law_of_the_author_s_own_is_assumed_until_it_is_attacked():
    made = certify(plan_of(Silent(1000.0)), subject=CODE)
    assert made.foreign.mechanisms == (ForeignLaw("outside-silent", __name__, ("mean",)),)
    assert law_of(made).standing is Standing.ASSUMED
    assert "'outside-silent'" in law_of(made).evidence
    assert law_of(made.with_rehearsal(DONE)).standing is Standing.ASSUMED
    tried = made.with_rehearsal(replace(DONE, laws={"mean": 4000}))
    assert law_of(tried).standing is Standing.TESTED
    assert Certificate.from_dict(tried.to_dict()) == tried


def test_a_black_box_is_assumed_whatever_was_drawn():
    plan = Plan.of(gaussian_invocation(mechanism=PureBlackBox(0.001), sensitivity=1.0, at="box"))
    made = certify(plan, subject=CODE)
    assert law_of(made).standing is Standing.ASSUMED
    tried = made.with_rehearsal(replace(DONE, laws={"box": 4000}))
    assert law_of(tried).standing is Standing.ASSUMED


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
def test_a_part_of_others_counts_too_and_no_draw_tests_it(given, kind):
    plan = Plan.of(gaussian_invocation(**given, at="mean"))
    found = certify(plan, subject=CODE, delta=1e-5)
    assert [each.kind for each in found.foreign.mechanisms] == [kind]
    tried = found.with_rehearsal(replace(DONE, laws={"mean": 4000}))
    assert law_of(tried).standing is Standing.ASSUMED


def test_an_accountant_of_others_is_named():
    made = certify(plan_of(Laplace(4.0)), subject=CODE, accountant="outside-cheap", delta=0.0)
    assert made.foreign.accountants == ("outside-cheap",)
    assert law_of(made).standing is Standing.ASSUMED


def test_a_class_is_the_package_s_own_by_where_it_is_defined():
    assert all(is_defined_here(each) for each in (Gaussian, Mechanism, PoissonSampling))
    posing = type("Gaussian", (Gaussian,), {"__module__": Gaussian.__module__})
    assert not is_defined_here(posing)
