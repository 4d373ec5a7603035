"""The tables of mutants name lines that are there: else a mutant would test nothing."""

import pytest

from tests.benchmarks import accounting_mutants, ledger_mutants

PACKAGE = ledger_mutants.ROOT / "dpaudit"


@pytest.mark.parametrize("mutant", ledger_mutants.MUTANTS, ids=lambda each: each.name)
def test_a_mutant_breaks_one_line_and_names_tests(mutant):
    assert (PACKAGE / mutant.file).read_text("utf-8").count(mutant.old) == 1
    assert all((PACKAGE.parent / each.partition("::")[0]).exists() for each in mutant.tests.split())


@pytest.mark.parametrize("mutant", accounting_mutants.MUTANTS, ids=lambda each: each.name)
def test_a_mutant_of_the_accounting_breaks_one_line(mutant):
    assert (PACKAGE / "accounting" / mutant.file).read_text("utf-8").count(mutant.old) == 1
