"""Accounting: from declared invocations to a proved (ε, δ).

>>> from dpaudit.mechanisms import Laplace
>>> from dpaudit.plan import Invocation, Plan
>>> from dpaudit.plan.relations import AddRemove, PrivacyUnit, TrustModel
>>> plan = Plan.of(
...     Invocation(Laplace(20.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, count=10)
... )
>>> guarantee(plan).epsilon
0.5
"""

from dpaudit.accounting.accountant import Accountant, Composition, Interval, accountant_of
from dpaudit.accounting.amplification import Amplification, amplification
from dpaudit.accounting.budgets import AdaptiveFilter, Filter, RenyiFilter, ZcdpFilter
from dpaudit.accounting.calibration import least_noise
from dpaudit.accounting.closed_forms import (
    GaussianAccountant,
    MomentsAccountant,
    PureAccountant,
    RdpAccountant,
    ZcdpAccountant,
)
from dpaudit.accounting.group import at_radius, for_group, swapped
from dpaudit.accounting.guarantees import compose, epsilon_after_rounds, guarantee, privacy_curve
from dpaudit.accounting.pld import PLDAccountant
from dpaudit.accounting.proved import AccountantName, CurvePoint, Guarantee
from dpaudit.accounting.terms import Term, terms
from dpaudit.accounting.work import MOST_SECONDS, require_affordable, seconds_of_proof

__all__ = [
    "MOST_SECONDS",
    "Accountant",
    "AccountantName",
    "AdaptiveFilter",
    "Amplification",
    "Composition",
    "CurvePoint",
    "Filter",
    "GaussianAccountant",
    "Guarantee",
    "Interval",
    "MomentsAccountant",
    "PLDAccountant",
    "PureAccountant",
    "RdpAccountant",
    "RenyiFilter",
    "Term",
    "ZcdpAccountant",
    "ZcdpFilter",
    "accountant_of",
    "amplification",
    "at_radius",
    "compose",
    "epsilon_after_rounds",
    "for_group",
    "guarantee",
    "least_noise",
    "privacy_curve",
    "require_affordable",
    "seconds_of_proof",
    "swapped",
    "terms",
]
