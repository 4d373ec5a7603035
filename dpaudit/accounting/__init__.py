"""Accounting: from declared invocations to a proved (ε, δ).

>>> from dpaudit.accounting import guarantee
>>> from dpaudit.mechanisms import Laplace
>>> from dpaudit.plan import Invocation, Plan
>>> from dpaudit.plan.relations import AddRemove, PrivacyUnit, TrustModel
>>> plan = Plan.of(
...     Invocation(Laplace(20.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL, count=10)
... )
>>> guarantee(plan).epsilon
0.5
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
