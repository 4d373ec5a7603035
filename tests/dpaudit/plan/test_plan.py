import json
import math

import pytest
from examples import RESPONSE, gaussian_invocation, response_plan

from dpaudit import (
    FixedSizeSampling,
    InputError,
    Invocation,
    Laplace,
    MetricBall,
    Opaque,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitivity": -1}, "sensitivity is -1"),
        ({"sensitivity": math.nan}, "sensitivity is nan"),
        ({"sensitivity": math.inf}, "sensitivity is inf"),
        ({"count": 0}, "count is 0"),
        ({"count": 1.5}, "count is 1.5"),
        ({"count": 5, "total": 4}, "total is 4"),
        ({"group": ""}, "group"),
        ({"mechanism": "gaussian"}, "mechanism is 'gaussian'"),
        ({"unit": "row"}, "unit is 'row'; it must be a PrivacyUnit"),
        ({"relation": "add-remove"}, "it must be a Relation"),
        ({"trust": "nobody"}, "trust is 'nobody'"),
        ({"sampling": "poisson"}, "it must be a Sampling"),
    ],
)
def test_bad_invocations(change, message):
    with pytest.raises(InputError, match=message):
        gaussian_invocation(**change)


def test_plans_that_speak_of_two_things_are_refused():
    with pytest.raises(InputError, match="mixes the relations replace-one and zero-out"):
        Plan.of(gaussian_invocation(), gaussian_invocation(relation=ZeroOut()))
    with pytest.raises(InputError, match="mixes the units"):
        Plan.of(gaussian_invocation(), gaussian_invocation(unit=PrivacyUnit("user")))
    with pytest.raises(InputError, match="two invocations at 'x'"):
        Plan.of(gaussian_invocation(at="x"), gaussian_invocation(at="x"))
    with pytest.raises(InputError, match="at least one"):
        Plan.of()


def test_bad_records():
    record = response_plan().to_dict()["invocations"][0]
    for change, message in [
        ({"colour": 1}, "unknown key 'colour'"),
        ({"relation": "cousin"}, "relation is 'cousin'"),
        ({"relation": {"kind": "metric-ball", "size": 1}}, "one of radius"),
        ({"trust": "nobody"}, "trust is 'nobody'"),
        ({"sampling": {"scheme": "snowball"}}, "scheme is 'snowball'"),
        ({"sampling": {"scheme": "poisson", "rate": 1.5}}, "rate is 1.5"),
        ({"mechanism": "laplace"}, "lacks the key 'scale'"),
    ]:
        with pytest.raises(InputError, match=message):
            Invocation.from_dict(record | change)
    for missing in ("mechanism", "relation", "sensitivity"):
        with pytest.raises(InputError, match=f"lacks the key '{missing}'"):
            Invocation.from_dict({k: v for k, v in record.items() if k != missing})


def test_unit_and_relation_are_checked():
    with pytest.raises(InputError, match="unit"):
        PrivacyUnit("")
    with pytest.raises(InputError, match="81 characters"):
        PrivacyUnit("x" * 81)
    with pytest.raises(InputError, match="radius is 0"):
        MetricBall(0)
    with pytest.raises(InputError, match="size is 5"):
        FixedSizeSampling(5, 4)
    assert Invocation(Laplace(1.0), 1, RESPONSE, ReplaceOne(), TrustModel.LOCAL).releases == 1


@pytest.mark.parametrize("sampling", [PoissonSampling(0.01), FixedSizeSampling(1, 100)])
def test_sampling_is_no_secret_under_local_trust(sampling):
    """Who sees that nothing was sent knows who was not drawn; the noise alone protects the rest."""
    with pytest.raises(InputError, match=r"local trust.*leave sampling out") as raised:
        gaussian_invocation(trust=TrustModel.LOCAL, sampling=sampling)
    assert str(raised.value).count(".") == 1
    for trust in set(TrustModel) - {TrustModel.LOCAL}:
        assert gaussian_invocation(trust=trust, sampling=sampling).sampling == sampling
    declared = gaussian_invocation(sampling=sampling).to_dict()
    with pytest.raises(InputError, match="local trust"):
        Invocation.from_dict({**declared, "trust": "local"})


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
