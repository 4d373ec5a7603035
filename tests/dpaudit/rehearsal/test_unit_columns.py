"""A column says whose row it is by its name; by its values it only may."""

import numpy as np
import pytest

from dpaudit.rehearsal.columns import Columns, whose
from dpaudit.rehearsal.frames import column_of, shared

IDS = np.array([3, 1, 3, 2])
TEXTS = np.array(["c", "a", "c", "b"], dtype=object)
AMOUNTS = np.array([0.5, 1.5, 2.5, 0.5])


NAMES = ["customer", "Customer", "CUSTOMER_ID", "customerId", "customer no", "cust_key"]


@pytest.mark.parametrize("name", [*NAMES, "CustName", "customers_id", "anon_customer_id"])
@pytest.mark.parametrize("ids", [IDS, TEXTS, IDS.astype(float)])
def test_names_are_matched_loosely(name, ids):
    assert column_of({"amount": AMOUNTS, name: ids}, "customer") == name
    assert column_of({"amount": AMOUNTS, name: ids}, "customers_id") == name


@pytest.mark.parametrize(
    "name", ["customers", "customer_age", "cu_id", "order_id", "custom", "id", "no", "_", "7"]
)
def test_other_names_are_not(name):
    assert column_of({"amount": AMOUNTS, name: IDS}, "customer") is None


def test_what_is_no_label_is_nobody_s_name():
    for column in (AMOUNTS, IDS > 1, np.array([[1, 2]] * 4), np.array([None, None], dtype=object)):
        assert column_of({"customer_id": column}, "customer") is None
    assert column_of({"customer": AMOUNTS}, "customer") == "customer"


def test_the_nearest_name_wins():
    columns = dict.fromkeys(("anon_user_id", "use_no", "user_id", "User"), IDS)
    while columns:
        found = column_of(columns, "user")
        assert found == max(columns, key=["use_no", "anon_user_id", "user_id", "User"].index)
        del columns[found]


def test_labels_that_repeat_a_little_may_say_whose_rows_they_are():
    assert shared({"when": AMOUNTS, "email": TEXTS}) == "email"
    assert shared({"value": np.column_stack([AMOUNTS, IDS])}) == "value 1"
    assert shared({"email": TEXTS}) == ""
    assert shared({"when": AMOUNTS, "email": np.arange(4)}) == ""
    many = np.repeat([1, 2], 50)
    assert shared({"when": np.arange(100.0), "class": many}) == ""


def test_a_table_is_read_by_units_of_a_similar_name():
    rows = [{"Cust_No": int(each), "amount": 1.0} for each in IDS]
    table = Columns.of(rows, "customer")
    assert table.unit == "Cust_No"
    assert [each.tolist() for each in table.units()] == [[0, 2], [1], [3]]
    assert whose(rows, "customer") == ""
    assert Columns.of(rows, "row").unit is None
    once = Columns.of([{"Cust_No": n, "amount": 1.0} for n in range(4)], "customer")
    assert once.unit == once.key == "Cust_No"  # nothing says that one may have several rows


def test_rows_may_share_an_owner_unless_a_unit_has_no_more_than_one():
    rows = [(text, 1.5) for text in TEXTS]
    assert whose(rows, "customer") == "0"
    assert whose(rows, "row") == whose(rows, "response") == ""
    assert whose([{"order": f"o{n}", "email": e} for n, e in enumerate(TEXTS)], "user") == "email"
    assert whose({f"u{n}": {"a": 1.5, "zip": e} for n, e in enumerate(TEXTS)}, "user") == ""
    assert whose(object(), "user") == ""
