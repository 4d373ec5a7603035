"""Samplers whose floats leak."""

from audits.catalogue import FLOATS
from audits.catalogue.measuring_floats import run_floats


def test_samplers_leak_exactly_where_they_should():
    rows = run_floats(FLOATS, draws=5_000)
    assert all(row.as_expected for row in rows)
    numpy_laplace = rows[0]
    assert numpy_laplace.rules == ("float-lsb",)
    assert numpy_laplace.draws <= 100
