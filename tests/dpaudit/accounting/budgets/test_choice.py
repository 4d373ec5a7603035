from __future__ import annotations

import pytest

from dpaudit.accounting import (
    AdaptiveFilter,
    RenyiFilter,
    ZcdpFilter,
    filter_for,
)
from dpaudit.errors import InputError, UnsupportedError


@pytest.mark.parametrize("accountant", ["pld", "moments", "gaussian"])
def test_fixed_composition_is_refused_with_the_reason(accountant: str) -> None:
    with pytest.raises(UnsupportedError, match="fixed in advance"):
        filter_for(accountant, 1.0, 1e-6)


def test_each_other_accountant_has_its_filter() -> None:
    assert isinstance(filter_for("pure", 1.0, 0.0), AdaptiveFilter)
    assert isinstance(filter_for("zcdp", 1.0, 1e-6), ZcdpFilter)
    assert isinstance(filter_for("best", 1.0, 1e-6), RenyiFilter)


def test_an_unknown_accountant_is_one_sentence() -> None:
    with pytest.raises(InputError, match="accountant is 'zcpd'; did you mean 'zcdp'"):
        filter_for("zcpd", 1.0, 1e-6)
