"""A JSON record as a flat list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.reporting.machine.leaves import leaves, scalar

RECORDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("record", "flat"),
    [
        ({"a": []}, [("a", "[]")]),
        ({"a": [1, [2]]}, [("a[0]", "1"), ("a[1]", "[2]")]),
        ({"a": [True, 1]}, [("a[0]", "true"), ("a[1]", "1")]),
        (["x", {"b": 1}], [("[0]", "x"), ("[1].b", "1")]),
        ("x", [("", "x")]),
    ],
)
def test_paths(record, flat):
    assert list(leaves(record)) == flat


@given(RECORDS)
def test_order_of_names_does_not_matter(record):
    turned = dict(reversed(record.items())) if isinstance(record, dict) else record
    assert list(leaves(record)) == list(leaves(turned))


def test_text_stays_as_it_is():
    assert scalar('"') == '"'
    assert scalar(None) == "null"
