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

from dpaudit.accounting.accountant import Accountant, Composition, Interval
from dpaudit.accounting.budgets import (
    AdaptiveFilter,
    Filter,
    Odometer,
    RenyiFilter,
    ZcdpFilter,
    filter_for,
)
from dpaudit.accounting.calibration import Calibration, Parameter, calibrate
from dpaudit.accounting.group import at_radius, for_group, for_users
from dpaudit.accounting.guarantees import compose, epsilon_after_rounds, guarantee, privacy_curve
from dpaudit.accounting.proved import AccountantName, CurvePoint, Guarantee

__all__ = [
    "Accountant",
    "AccountantName",
    "AdaptiveFilter",
    "Calibration",
    "Composition",
    "CurvePoint",
    "Filter",
    "Guarantee",
    "Interval",
    "Odometer",
    "Parameter",
    "RenyiFilter",
    "ZcdpFilter",
    "at_radius",
    "calibrate",
    "compose",
    "epsilon_after_rounds",
    "filter_for",
    "for_group",
    "for_users",
    "guarantee",
    "privacy_curve",
]
