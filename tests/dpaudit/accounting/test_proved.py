"""What an accountant proves, as a record."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from accounting_builders import plan, use

from dpaudit.accounting import AccountantName, CurvePoint, Guarantee, guarantee
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Gaussian, Laplace

RECORD = {
    "epsilon": None,
    "delta": 0.0,
    "accountant": "gaussian",
    "error_bound": None,
    "native": {"mu": 2.0, "reason": "unbounded"},
    "curve": [[0.5, 0.25], [3.0, 1e-9]],
    "compared": {"gaussian": None, "rdp": 7.5},
}


def test_records_keep_their_keys_and_write_infinity_as_null() -> None:
    proved = Guarantee.from_dict(RECORD)
    assert proved.epsilon == proved.compared["gaussian"] == math.inf
    assert proved.curve[1] == CurvePoint(3.0, 1e-9)
    assert proved.accountant is AccountantName.GAUSSIAN
    assert json.dumps(proved.to_dict()) == json.dumps(RECORD)


def test_what_is_proved_comes_back_equal() -> None:
    for proved in (
        guarantee(plan(use(Gaussian(2.0), count=3)), 1e-6),
        guarantee(plan(use(Laplace(2.0)))),
        guarantee(plan(use(Gaussian(2.0)))),
    ):
        record = json.loads(json.dumps(proved.to_dict()))
        assert Guarantee.from_dict(record) == proved
        assert type(record["accountant"]) is str


def test_an_accountant_that_is_not_installed_can_be_read_about() -> None:
    proved = Guarantee.from_dict(RECORD | {"accountant": "of-another-package"})
    assert proved.accountant == "of-another-package"
    assert proved.to_dict()["accountant"] == "of-another-package"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"accountant": ""}, "accountant is ''"),
        ({"accountant": 3}, "accountant is 3"),
        ({"error_bound": -1.0}, "error_bound is -1.0"),
        ({"curve": [[1.0]]}, r"curve has the point \[1.0\]"),
        ({"curve": [1.0]}, "curve has the point 1.0"),
        ({"curve": [[1.0, -0.5]]}, "delta is -0.5"),
        ({"curve": 5}, "curve is 5"),
        ({"ratio": 1.0}, "unknown key 'ratio'"),
    ],
)
def test_a_wrong_record_is_one_sentence(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Guarantee.from_dict(RECORD | fields)


@pytest.mark.parametrize("key", ["epsilon", "delta", "accountant", "error_bound"])
def test_a_missing_field_is_named(key: str) -> None:
    with pytest.raises(InputError, match=f"lacks the key '{key}'"):
        Guarantee.from_dict({name: value for name, value in RECORD.items() if name != key})
    with pytest.raises(InputError, match="it must be a table"):
        Guarantee.from_dict([])  # type: ignore[arg-type]


def test_a_guarantee_is_printed_in_a_line():
    found = guarantee(plan(use(Gaussian(1.0))), 1e-5)
    assert len(str(found)) < 80
    assert str(found).startswith(f"ε = {found.epsilon} at δ = 1e-05, by ")
    assert len(repr(found)) < 200
    assert "curve" not in repr(found)
