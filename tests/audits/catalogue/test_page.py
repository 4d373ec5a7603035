"""The page of a table."""

from dataclasses import replace

from audits.catalogue import ENTRIES
from audits.catalogue.measuring import Row
from audits.catalogue.measuring_floats import FloatEntry, FloatRow
from audits.catalogue.page import markdown
from dpaudit import Claim

WRONG = next(each for each in ENTRIES if "max(|lower|" in each.name)
RIGHT = next(each for each in ENTRIES if each.name == "noisy max index")
EXACT = next(each for each in ENTRIES if each.exact is not None and each.right)
FLOAT = FloatRow(FloatEntry("coin", False, Claim(1.0), 10, lambda d, n, rng: d), (), 10, 0.1)


def test_every_row_is_a_line_of_its_table():
    rows = [Row(WRONG, 59, 60, 80, 0.1, 1.5), Row(RIGHT, 4, 91, 1000, 0.1, 0.5)]
    page = markdown([*rows, Row(EXACT, 0, 1, 0, 0.1, 2.0)], [FLOAT], "make it")
    assert "`make it` makes this page." in page
    name = r"sensitivity max(\|lower\|, \|lower\|)"  # a bar would end the cell
    assert f"| {name} | (1, 0) | ∞ | 1000 | 80 | 59 of 60 | 1.5 |" in page
    assert "| noisy max index | (1, 0) | ≤ 1 | 10000 | 1000 | 4 of 91 | 0.5 |" in page
    assert "| permute-and-flip | (2, 0) | 2 | exact | exact | 0 of 1 | 2 |" in page
    assert "| coin | none | 10 |" in page
    assert "unexpected" not in page
    assert max(map(len, page.split("\n## ")[0].splitlines()[4:])) <= 400


def test_what_is_not_as_it_should_be_is_marked():
    page = markdown([Row(replace(WRONG, name="late"), 5, 60, 80, 0.1, 1.5)], [], "x")
    assert "| late **(unexpected)** |" in page
    assert "rows found in less than 95%: late." in page
    assert "## Right" not in page
