"""Budgets at run time: filters that refuse in time.

Parameters may be chosen from what was released before. Composition theorems for parameters fixed in
advance do not cover that; those used here do, and each is named where it is used.
"""

from dpaudit.accounting.budgets.adaptive import AdaptiveFilter
from dpaudit.accounting.budgets.base import Filter
from dpaudit.accounting.budgets.renyi import RenyiFilter
from dpaudit.accounting.budgets.zcdp import ZcdpFilter

__all__ = ["AdaptiveFilter", "Filter", "RenyiFilter", "ZcdpFilter"]
