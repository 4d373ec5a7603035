"""Invocations: what one may say, and what a record of one must."""

import math

import pytest
from examples import RESPONSE, gaussian_invocation, response_plan

from dpaudit import (
    AddRemove,
    Contribution,
    InputError,
    Invocation,
    Laplace,
    MetricBall,
    Plan,
    PoissonSampling,
    RandomizedResponse,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.plan import Group, TruncatedPoissonSampling


class Told(Contribution):
    """Written as another bound than that which it is."""

    def to_dict(self):
        return {"bound": 1.0}


class Named(Group):
    """A group of another class."""


class Drawn(PoissonSampling):
    """A sampling of another class, of a known kind."""


class Near(ReplaceOne):
    """A relation of another class, of a known kind."""


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
        ({"contribution": Told(5.0)}, "contribution is a Told; it must be a Contribution"),
        ({"group": Named("a")}, "group is a Named; it must be a Group"),
        ({"sampling": Drawn(0.5)}, "sampling is a Drawn, which is not a registered sampling"),
        ({"relation": Near()}, "relation is a Near, which is not a registered relation"),
    ],
)
def test_bad_invocations(change, message):
    with pytest.raises(InputError, match=message):
        gaussian_invocation(**change)


@pytest.mark.parametrize("relation", [ReplaceOne(), MetricBall(1.0), AddRemove()])
@pytest.mark.parametrize(
    "sampling",
    [PoissonSampling(0.5, contribution=3.0), TruncatedPoissonSampling(0.5, 10, 100, 3.0)],
)
def test_a_sensitivity_is_at_most_twice_the_contribution_of_a_sample(relation, sampling):
    facts = {"relation": relation, "sampling": sampling}
    assert Plan.of(gaussian_invocation(sensitivity=6.0, **facts)).invocations[0].sensitivity == 6.0
    longer = gaussian_invocation(sensitivity=6.1, **facts)
    if isinstance(relation, AddRemove):  # where it is not used
        Plan.of(longer)
        return
    with pytest.raises(InputError, match=r"is 6\.1; a contribution of 3 in the sampling"):
        Plan.of(longer)


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


@pytest.mark.parametrize("mechanism", [RandomizedResponse(0.5), Laplace(1.0)])
def test_absence_is_no_secret_under_local_trust(mechanism):
    """Whoever sends nothing is seen: no noise on what is sent hides that."""
    facts = {"mechanism": mechanism, "relation": AddRemove()}
    with pytest.raises(InputError, match=r"'add-remove' under local trust.*declare replace-one"):
        gaussian_invocation(**facts, trust=TrustModel.LOCAL)
    for trust in set(TrustModel) - {TrustModel.LOCAL}:
        assert gaussian_invocation(**facts, trust=trust).trust is trust
    for relation in (ReplaceOne(), ZeroOut(), MetricBall()):
        gaussian_invocation(**facts | {"relation": relation}, trust=TrustModel.LOCAL)


def test_releases_are_those_of_one_unit():
    assert Invocation(Laplace(1.0), 1, RESPONSE, ReplaceOne(), TrustModel.LOCAL).releases == 1
