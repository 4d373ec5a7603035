"""Groups are disjoint, whatever a program says of them; and one sample serves one release."""

from dataclasses import replace

import numpy as np
import pytest
from examples import LAPLACE, RESPONSE, gaussian_invocation

from dpaudit import (
    AddRemove,
    FixedSizeSampling,
    Group,
    InputError,
    Invocation,
    Laplace,
    Ledger,
    Membership,
    MetricBall,
    Plan,
    PlanMismatchError,
    PoissonSampling,
    ReplaceOne,
    TrustModel,
    ZeroOut,
    guarantee,
)
from dpaudit.base.errors import ClosedLedgerError
from dpaudit.certificate import SubjectRecord, certify
from dpaudit.checker import prove
from dpaudit.mechanisms import ExponentialMechanism
from dpaudit.plan import TruncatedPoissonSampling, WithReplacementSampling

NOISE = Laplace(1.0)


def grouped(groups=20, relation=None, membership=Membership.POSITION, count=1, total=3):
    return Plan.of(
        *(
            Invocation(
                NOISE,
                1.0,
                RESPONSE,
                relation or AddRemove(),
                TrustModel.CENTRAL,
                count=count,
                total=total,
                group=Group(f"round {number}", membership),
                at=f"sum {number}",
            )
            for number in range(groups)
        )
    )


def test_a_named_unit_stays_in_the_group_of_its_first_release():
    ledger = Ledger(grouped(), rng=np.random.default_rng(0))
    ledger.release(NOISE, 1.0, unit="ann", at="sum 0")
    with pytest.raises(
        PlanMismatchError, match="this response belongs to 'round 0' since its first"
    ):
        ledger.release(NOISE, 1.0, unit="ann", at="sum 1")
    ledger.release(NOISE, 1.0, unit="bob", at="sum 1")
    assert guarantee(ledger.spent()).epsilon == guarantee(ledger.plan).epsilon == 1.0


def test_a_release_without_a_unit_touches_its_group_alone():
    ledger = Ledger(grouped(3), rng=np.random.default_rng(0))
    for number in range(3):
        ledger.release(NOISE, 1.0, at=f"sum {number}")
    with pytest.raises(PlanMismatchError, match="this one has been charged that often"):
        ledger.release(NOISE, 1.0, unit="ann", at="sum 0")
    spent = ledger.spent()
    assert {str(each.group) for each in spent.invocations} == {"round 0", "round 1", "round 2"}
    assert guarantee(spent).epsilon == 1.0


def test_what_a_named_unit_and_its_group_had_adds_up():
    ledger = Ledger(grouped(2, count=2), rng=np.random.default_rng(0))
    ledger.release(NOISE, 1.0, unit="ann", at="sum 0")
    ledger.release(NOISE, 1.0, at="sum 0")
    ledger.release(NOISE, 1.0, at="sum 1")
    assert guarantee(ledger.spent()).epsilon == 2.0


def test_a_unit_named_outside_groups_may_be_in_any_of_them():
    plan = Plan.of(*grouped(2).invocations, gaussian_of_one())
    ledger = Ledger(plan, rng=np.random.default_rng(0))
    ledger.release(NOISE, 1.0, at="sum 0")
    ledger.release(NOISE, 1.0, at="sum 1")
    ledger.release(NOISE, 1.0, unit="ann", at="own")
    assert guarantee(ledger.spent()).epsilon == 2.0


def gaussian_of_one():
    return Invocation(
        NOISE, 1.0, RESPONSE, AddRemove(), TrustModel.CENTRAL, count=1, total=3, at="own"
    )


@pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne()])
def test_a_unit_that_moves_between_groups_costs_two(relation):
    by_position = grouped(5, relation)
    by_value = grouped(5, relation, Membership.VALUE)
    assert guarantee(by_position).epsilon == 1.0
    moved = 2.0 if isinstance(relation, ReplaceOne) else 1.0
    assert guarantee(by_value).epsilon == moved
    assert guarantee(grouped(1, relation, Membership.VALUE)).epsilon == 1.0


@pytest.mark.parametrize(("mechanism", "cost"), [(NOISE, 1.0), (ExponentialMechanism(1.0), 2.0)])
def test_a_zeroed_unit_is_seen_in_two_groups_where_it_is_no_absent_one(mechanism, cost):
    declared = grouped(3, ZeroOut(), Membership.VALUE).invocations
    plan = Plan.of(*(replace(each, mechanism=mechanism) for each in declared))
    assert guarantee(plan).epsilon == cost
    made = certify(plan, subject=SubjectRecord("tests:Groups"), delta=0.0)
    assert float(prove(made.to_dict()).epsilon) == pytest.approx(cost)


def test_many_groups_that_are_alike_are_two():
    assert len(grouped(500, ReplaceOne(), Membership.VALUE).by_unit()) == 1
    assert len(grouped(500, AddRemove(), Membership.VALUE).by_unit()) == 500


def test_of_different_groups_every_two_count():
    plan = Plan.of(
        *grouped(2, ReplaceOne(), Membership.VALUE).invocations,
        Invocation(
            Laplace(0.25),
            1.0,
            RESPONSE,
            ReplaceOne(),
            TrustModel.CENTRAL,
            group=Group("large", Membership.VALUE),
            at="large",
        ),
    )
    assert guarantee(plan).epsilon == 5.0


def test_one_group_has_one_membership():
    one, other = grouped(2).invocations[0], grouped(2, membership=Membership.VALUE).invocations[0]
    with pytest.raises(InputError, match="by position and by value"):
        Plan((one, Invocation(**(vars(other) | {"at": "again"}))))


def test_groups_are_written_and_read():
    for membership in Membership:
        plan = grouped(2, membership=membership)
        assert Plan.from_dict(plan.to_dict()) == plan
    assert grouped(1).to_dict()["invocations"][0]["group"] == "round 0"
    with pytest.raises(InputError, match="did you mean 'membership'"):
        Group.from_dict({"name": "a", "membrship": "value"})
    with pytest.raises(InputError, match="membership is 'luck'"):
        Group.from_dict({"name": "a", "membership": "luck"})


def test_a_different_mechanism_of_the_same_kind_is_no_match():
    class Noiseless(Laplace):
        def _sample(self, values, rng):
            return values

        def __eq__(self, other):
            return True

        __hash__ = Laplace.__hash__

    ledger = Ledger(Plan.of(gaussian_of_one()), rng=np.random.default_rng(0))
    with pytest.raises(PlanMismatchError, match="declares Laplace"):
        ledger.release(Noiseless(1.0), 5.0, unit="ann")
    with pytest.raises(InputError, match="no registered mechanism"):
        gaussian_invocation(mechanism=Noiseless(1.0))


def test_a_local_clip_is_wider_than_the_sensitivity():
    wide = Laplace(10.0, clip=(0.0, 10.0))
    for relation, declared in ((ReplaceOne(), 10.0), (ZeroOut(), 10.0)):
        with pytest.raises(InputError, match="moves by up to 10"):
            Invocation(wide, 1.0, RESPONSE, relation, TrustModel.LOCAL)
        Invocation(wide, declared, RESPONSE, relation, TrustModel.LOCAL)
    for radius, moved in ((3.0, 3.0), (100.0, 10.0)):
        with pytest.raises(InputError, match=f"moves by up to {moved:g}"):
            Invocation(wide, 0.9 * moved, RESPONSE, MetricBall(radius), TrustModel.LOCAL)
        near = Invocation(wide, moved, RESPONSE, MetricBall(radius), TrustModel.LOCAL)
        with pytest.raises(InputError, match="of 4 entries"):
            near.require_covered(4)  # all of which may move, by the radius in L2
    assert LAPLACE.clip == (-2.0, 2.0)


def sampled_ledger(sampling):
    use = gaussian_invocation(relation=ReplaceOne(), sampling=sampling, count=2, at="sum")
    return Ledger(Plan.of(use), rng=np.random.default_rng(0)), use.mechanism


def test_every_release_of_a_sampled_label_has_a_sample_of_its_own():
    ledger, noise = sampled_ledger(PoissonSampling(0.5))
    ledger.sample("ab", at="sum")
    with pytest.raises(PlanMismatchError, match="sample that waits for its release"):
        ledger.sample("ab")
    ledger.release(noise, 0.0, at="sum")
    with pytest.raises(PlanMismatchError, match="needs a sample for each release"):
        ledger.release(noise, 0.0)
    assert len(ledger) == 1
    ledger.sample("ab")
    ledger.release(noise, 0.0)
    ledger.check()


def test_who_samples_without_the_ledger_is_let_through():
    ledger, noise = sampled_ledger(PoissonSampling(0.5))
    ledger.release(noise, 0.0)
    ledger.release(noise, 0.0)
    ledger.check()


@pytest.mark.parametrize(
    ("sampling", "units", "error", "sentence"),
    [
        (None, "ab", PlanMismatchError, "'sum' is not declared with sampling"),
        (FixedSizeSampling(1, 3), "ab", InputError, "the declared population of 3"),
        (TruncatedPoissonSampling(0.5, 1, 2), "abc", InputError, "at most the population of 2"),
        (WithReplacementSampling(2, 2), "ab", PlanMismatchError, "none that the ledger draws"),
        (PoissonSampling(0.5), "aba", InputError, "names one of them twice"),
        (PoissonSampling(0.5), ["a", 1], InputError, "unit is a int"),
    ],
)
def test_samples_are_of_named_units_as_declared(sampling, units, error, sentence):
    ledger, noise = sampled_ledger(sampling)
    with pytest.raises(error, match=sentence):
        ledger.sample(units, at="sum")
    ledger.release(noise, 0.0)  # nothing waits


def test_a_closed_ledger_draws_no_samples():
    ledger, _ = sampled_ledger(PoissonSampling(0.5))
    ledger.close()
    with pytest.raises(ClosedLedgerError):
        ledger.sample("ab")
