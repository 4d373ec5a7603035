"""The tables of mutants name lines that are there: else a mutant would test nothing."""

import pytest

from tests.benchmarks.ledger_mutants import MUTANTS, ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_a_mutant_breaks_one_line_and_names_tests(mutant):
    assert (ROOT / "dpaudit" / mutant.file).read_text("utf-8").count(mutant.old) == 1
    assert all((ROOT / each.partition("::")[0]).exists() for each in mutant.tests.split())
