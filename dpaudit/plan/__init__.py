"""What an algorithm declares before it has seen any data: invocations, relations, sampling."""

from dpaudit.plan.contribution import Contribution
from dpaudit.plan.groups import Group, Membership
from dpaudit.plan.invocation import Invocation
from dpaudit.plan.plan import Plan
from dpaudit.plan.relations import (
    AddRemove,
    MetricBall,
    PrivacyUnit,
    Relation,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.plan.sampling import (
    CyclicPoissonSampling,
    FixedSizeSampling,
    PoissonSampling,
    RandomAllocation,
    Sampling,
    TruncatedPoissonSampling,
    WithReplacementSampling,
)

__all__ = [
    "AddRemove",
    "Contribution",
    "CyclicPoissonSampling",
    "FixedSizeSampling",
    "Group",
    "Invocation",
    "Membership",
    "MetricBall",
    "Plan",
    "PoissonSampling",
    "PrivacyUnit",
    "RandomAllocation",
    "Relation",
    "ReplaceOne",
    "Sampling",
    "TruncatedPoissonSampling",
    "TrustModel",
    "WithReplacementSampling",
    "ZeroOut",
]
