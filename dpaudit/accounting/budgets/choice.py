"""Which filter goes with an accountant."""

from __future__ import annotations

from collections.abc import Callable

from dpaudit.accounting.accountant import Accountant
from dpaudit.accounting.budgets.adaptive import AdaptiveFilter
from dpaudit.accounting.budgets.base import Filter
from dpaudit.accounting.budgets.renyi import RenyiFilter
from dpaudit.accounting.budgets.zcdp import ZcdpFilter
from dpaudit.accounting.proved import AccountantName
from dpaudit.errors import UnsupportedError

__all__ = ["filter_for"]

_FILTERS: dict[str, Callable[[float, float], Filter]] = {
    AccountantName.PURE: AdaptiveFilter,
    AccountantName.ZCDP: ZcdpFilter,
    AccountantName.RDP: RenyiFilter,
    AccountantName.BEST: RenyiFilter,
}


def filter_for(accountant: str, epsilon: float, delta: float) -> Filter:
    """The filter of an accountant: pure, zcdp or rdp; best takes rdp.

    Raises:
        InputError: if there is no such accountant.
        UnsupportedError: for accountants whose theorem needs parameters fixed in advance.
    """
    name = Accountant.named(accountant).kind
    if name in _FILTERS:
        return _FILTERS[name](epsilon, delta)
    raise UnsupportedError(
        f"{name} composes parameters that are fixed in advance; where they may be chosen from "
        "earlier releases its composition theorem does not hold, so use zcdp, rdp or pure."
    )
