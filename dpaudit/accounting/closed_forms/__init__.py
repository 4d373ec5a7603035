"""Accountants that add numbers: pure, Gaussian, zCDP, Rényi and moments; and a recursion."""

from dpaudit.accounting.closed_forms.bounded_range import BoundedRangeAccountant
from dpaudit.accounting.closed_forms.gaussian import GaussianAccountant
from dpaudit.accounting.closed_forms.moments import MomentsAccountant
from dpaudit.accounting.closed_forms.pure import PureAccountant
from dpaudit.accounting.closed_forms.rdp import RdpAccountant
from dpaudit.accounting.closed_forms.zcdp import ZcdpAccountant

__all__ = [
    "BoundedRangeAccountant",
    "GaussianAccountant",
    "MomentsAccountant",
    "PureAccountant",
    "RdpAccountant",
    "ZcdpAccountant",
]
