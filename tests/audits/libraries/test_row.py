"""The rows of the catalogue of libraries: complete, and runnable as printed."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from audits.libraries.row import Attack, Row, unique
from audits.libraries.rows import all_rows
from dpaudit.base.errors import InputError

ROOT = Path(__file__).parents[3]
ROWS = all_rows()
GIVEN = ("a row", "numpy", "laplace", "sum", "numpy/simple.py:total")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_names_a_function_with_a_docstring(row):
    file, _, name = row.target.partition(":")
    parts = {
        each.name: each
        for each in ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        if isinstance(each, ast.FunctionDef)
    }
    assert ast.get_docstring(parts[name])
    assert row.library
    assert row.offers
    assert row.kind


def test_pipelines_import_nothing_of_this_project():
    for file in (ROOT / "audits/libraries/pipelines").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert "dpaudit" not in text, file
        assert "audits" not in text, file


def test_the_command_is_what_a_reader_types():
    row = Row(*GIVEN, attack=Attack([1], [2], 500), claim="epsilon = 1, delta = 1e-5")
    first, second = row.replay("dpaudit")
    assert first == (
        "dpaudit observe audits/libraries/pipelines/numpy/simple.py:total "
        "--data audits/libraries/data/people.csv --relation replace-one "
        "--claim 'epsilon = 1, delta = 1e-5' --seed 0 --rehearse"
    )
    assert "--pair '[1]' '[2]' --claim 'epsilon = 1, delta = 1e-5'" in second


@pytest.mark.parametrize(
    "wrong",
    [
        {"stated": "rumour"},
        {"relation": "swap"},
        {"plan": "missing.toml"},
        {"data": ""},
        {"data": "missing.csv"},
    ],
)
def test_a_wrong_row_is_refused(wrong):
    with pytest.raises(InputError, match="a row"):
        Row(*GIVEN, **wrong)


def test_no_two_rows_have_one_name():
    assert not [name for name, times in Counter(row.name for row in ROWS).items() if times > 1]
    with pytest.raises(InputError, match="two rows"):
        unique([Row(*GIVEN), Row(*GIVEN)])
