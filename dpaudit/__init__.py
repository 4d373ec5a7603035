"""Certify, audit and report the privacy claims of differentially private algorithms.

The names below are the public interface; everything else may change. They are loaded when they are
first used, so that ``import dpaudit`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "dpaudit.accounting": (
        "AccountantName",
        "Guarantee",
        "guarantee",
        "privacy_curve",
    ),
    "dpaudit.certificate": ("AuditRecord", "Certificate", "certify"),
    "dpaudit.claim": ("Claim", "Finding", "Severity", "Verdict"),
    "dpaudit.errors": (
        "BudgetExceededError",
        "ClosedLedgerError",
        "DpAuditError",
        "InputError",
        "PlanMismatchError",
        "TamperedError",
        "UnsupportedError",
    ),
    "dpaudit.ledger": ("Ledger",),
    "dpaudit.mechanisms": (
        "DiscreteGaussian",
        "DiscreteLaplace",
        "Gaussian",
        "Laplace",
        "Mechanism",
        "Opaque",
        "RandomizedResponse",
    ),
    "dpaudit.plan": ("Invocation", "Plan"),
    "dpaudit.relations": (
        "AddRemove",
        "MetricBall",
        "PrivacyUnit",
        "Relation",
        "ReplaceOne",
        "TrustModel",
        "ZeroOut",
    ),
    "dpaudit.sampling": ("FixedSizeSampling", "PoissonSampling", "Sampling"),
    "dpaudit.subject": ("AuditPair", "RunResult", "Subject"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])

if TYPE_CHECKING:
    from dpaudit.accounting import AccountantName as AccountantName
    from dpaudit.accounting import Guarantee as Guarantee
    from dpaudit.accounting import guarantee as guarantee
    from dpaudit.accounting import privacy_curve as privacy_curve
    from dpaudit.certificate import AuditRecord as AuditRecord
    from dpaudit.certificate import Certificate as Certificate
    from dpaudit.certificate import certify as certify
    from dpaudit.claim import Claim as Claim
    from dpaudit.claim import Finding as Finding
    from dpaudit.claim import Severity as Severity
    from dpaudit.claim import Verdict as Verdict
    from dpaudit.errors import BudgetExceededError as BudgetExceededError
    from dpaudit.errors import ClosedLedgerError as ClosedLedgerError
    from dpaudit.errors import DpAuditError as DpAuditError
    from dpaudit.errors import InputError as InputError
    from dpaudit.errors import PlanMismatchError as PlanMismatchError
    from dpaudit.errors import TamperedError as TamperedError
    from dpaudit.errors import UnsupportedError as UnsupportedError
    from dpaudit.ledger import Ledger as Ledger
    from dpaudit.mechanisms import DiscreteGaussian as DiscreteGaussian
    from dpaudit.mechanisms import DiscreteLaplace as DiscreteLaplace
    from dpaudit.mechanisms import Gaussian as Gaussian
    from dpaudit.mechanisms import Laplace as Laplace
    from dpaudit.mechanisms import Mechanism as Mechanism
    from dpaudit.mechanisms import Opaque as Opaque
    from dpaudit.mechanisms import RandomizedResponse as RandomizedResponse
    from dpaudit.plan import Invocation as Invocation
    from dpaudit.plan import Plan as Plan
    from dpaudit.relations import AddRemove as AddRemove
    from dpaudit.relations import MetricBall as MetricBall
    from dpaudit.relations import PrivacyUnit as PrivacyUnit
    from dpaudit.relations import Relation as Relation
    from dpaudit.relations import ReplaceOne as ReplaceOne
    from dpaudit.relations import TrustModel as TrustModel
    from dpaudit.relations import ZeroOut as ZeroOut
    from dpaudit.sampling import FixedSizeSampling as FixedSizeSampling
    from dpaudit.sampling import PoissonSampling as PoissonSampling
    from dpaudit.sampling import Sampling as Sampling
    from dpaudit.subject import AuditPair as AuditPair
    from dpaudit.subject import RunResult as RunResult
    from dpaudit.subject import Subject as Subject


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
