import json

import pytest
from examples import gaussian_invocation

from dpaudit import (
    ExponentialMechanism,
    FixedSizeSampling,
    Group,
    InputError,
    Invocation,
    Laplace,
    Membership,
    MetricBall,
    Opaque,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    TrustModel,
    ZeroOut,
)


def test_plans_serialise_and_come_back_equal():
    plan = Plan.of(
        gaussian_invocation(sampling=PoissonSampling(0.1), count=3, relation=MetricBall(2.0)),
        gaussian_invocation(
            sampling=FixedSizeSampling(2, 10), relation=MetricBall(2.0), group="men"
        ),
        gaussian_invocation(mechanism=Opaque("x", 1.0), relation=MetricBall(2.0), group="women"),
    )
    again = Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert again.hash == plan.hash


def test_hash_sees_every_field():
    base = gaussian_invocation()
    changes = [
        {"sensitivity": 2.0},
        {"count": 2},
        {"total": 2},
        {"group": "g"},
        {"sampling": PoissonSampling(0.5)},
        {"relation": ZeroOut()},
        {"trust": TrustModel.LOCAL},
        {"unit": PrivacyUnit("user")},
        {"at": "x"},
        {"mechanism": Laplace(1.0)},
    ]
    hashes = {Plan.of(gaussian_invocation(**change)).hash for change in changes}
    assert len(hashes | {Plan.of(base).hash}) == len(changes) + 1


def test_groups_are_disjoint_and_ungrouped_invocations_touch_all():
    plan = Plan.of(
        gaussian_invocation(at="all"),
        gaussian_invocation(at="a", group="a"),
        gaussian_invocation(at="b", group="b"),
    )
    assert [[i.at for i in unit] for unit in plan.by_unit()] == [["all", "a"], ["all", "b"]]


def test_who_is_zeroed_may_leave_a_group_of_sums_for_one_that_sees_it():
    about = PrivacyUnit("user"), ZeroOut(), TrustModel.CENTRAL
    a, b, c = (Group(name, Membership.VALUE) for name in "abc")
    plan = Plan.of(
        Invocation(Laplace(1.0), 1.0, *about, at="sum", group=a),
        Invocation(ExponentialMechanism(1.0, 1.0), 1.0, *about, at="choice", group=b),
    )
    assert [[each.at for each in unit] for unit in plan.by_unit()] == [["sum", "choice"]]
    sums = Plan.of(
        *(Invocation(Laplace(1.0), 1.0, *about, at=str(each), group=each) for each in (a, b, c))
    )
    assert [len(unit) for unit in sums.by_unit()] == [1, 1, 1]


def test_plans_that_speak_of_two_things_are_refused():
    with pytest.raises(InputError, match="mixes the relations replace-one and zero-out"):
        Plan.of(gaussian_invocation(), gaussian_invocation(relation=ZeroOut()))
    with pytest.raises(InputError, match="mixes the units"):
        Plan.of(gaussian_invocation(), gaussian_invocation(unit=PrivacyUnit("user")))
    with pytest.raises(InputError, match="two invocations at 'x'"):
        Plan.of(gaussian_invocation(at="x"), gaussian_invocation(at="x"))
    with pytest.raises(InputError, match="at least one"):
        Plan.of()


@pytest.mark.parametrize(
    ("models", "weakest"),
    [
        ("local", "local"),
        ("local central", "central"),
        ("local curator", "curator"),
        ("local joint", "joint"),
        ("central joint", "joint"),
        ("central curator", "central"),
        ("local local central curator joint", "joint"),
    ],
)
def test_the_trust_of_a_plan_is_its_weakest_promise(models, weakest):
    uses = [gaussian_invocation(trust=TrustModel(name)) for name in models.split()]
    for ordered in (uses, uses[::-1]):
        assert Plan.of(*ordered).trust is TrustModel(weakest)
