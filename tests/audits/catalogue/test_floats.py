"""Samplers whose floats leak."""

from pathlib import Path

from dpaudit.auditing.catalogue.entries import (
    load_catalogue,
)
from dpaudit.auditing.catalogue.floats import run_floats

FOLDER = Path(__file__).parents[3] / "audits" / "catalogue"
CATALOGUE = load_catalogue(FOLDER)


def test_samplers_leak_exactly_where_they_should():
    rows = run_floats(CATALOGUE.floats, draws=5_000)
    assert all(row.as_expected for row in rows)
    numpy_laplace = rows[0]
    assert numpy_laplace.rules == ("float-lsb",)
    assert numpy_laplace.draws <= 100
