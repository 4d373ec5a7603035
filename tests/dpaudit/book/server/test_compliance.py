"""The report of a period: what is in it and what is not, on a page and on paper."""

from __future__ import annotations

import pytest
from booking import ask, edited, filled, gaussian
from pages import Page

from dpaudit.base.errors import BudgetExceededError, InputError, TamperedError
from dpaudit.book import record_refusal, verify_book
from dpaudit.book.server import compliance
from dpaudit.book.server.compliance import write


@pytest.fixture
def year(book, clock):
    """Of ρ = 1: an eighth in November, another in December, one refused."""
    filled(book, rho=1.0)
    ask(book, gaussian(2.0), purpose="in november", approved="the board")
    clock.move(days=30)
    ask(book, gaussian(2.0), purpose="in december <b>")
    with pytest.raises(BudgetExceededError):
        ask(book, gaussian(0.1))
    record_refusal(book, "vic", what="reserve", why="no", times=7)
    return book


def test_a_period(year):
    whole = compliance(year, "2026-01-01", "2026-12-31")
    assert (whole.counts.total(), whole.approved, whole.refused, whole.barred) == (2, 1, 1, 7)
    ((_, (use,)),) = whole.rooms
    assert use.charged.startswith("25")
    november = compliance(year, "2026-11-23", "2026-11-23", dataset="visits", verify=False)
    assert (november.counts.total(), november.refused, november.barred) == (1, 0, 0)
    ((_, (use,)),) = november.rooms
    assert (use.charged, use.used[:2]) == ("12.5 %", "25") or use.charged == "12.6 %"
    page = Page(november.html()).text
    assert "in november" in page
    assert "in december" not in page
    assert "were not recomputed" in page
    assert f"{november.seen.lines} lines" in page
    assert compliance(year, "2020-01-01", "2020-01-02").releases == ()


def test_refusals_are_counted_as_verification_does(year):
    for _ in range(4):  # of five the 1st, the 2nd and the 4th have lines
        with pytest.raises(BudgetExceededError):
            ask(year, gaussian(0.1))
    report = compliance(year, "2026-01-01", "2026-12-31")
    assert report.refused == verify_book(year)["refused"] == 4


def test_files(year, tmp_path):
    report = compliance(year, "2026-01-01", "2026-12-31")
    page = write(tmp_path / "a.html", report).read_text("utf-8")
    assert "<link" not in page
    assert "in december &lt;b&gt;" in page
    pdfium = pytest.importorskip("pypdfium2")
    pytest.importorskip("typst")
    with pdfium.PdfDocument(write(tmp_path / "a.pdf", report)) as document:
        text = document[0].get_textpage().get_text_range()
    for said in (
        "in december <b>",
        "2 releases: 2 reserved; 1 of them were approved",
        "Denied attempts",
        "7, for all",
    ):
        assert said in text
    with pytest.raises(InputError, match=r"must end in \.html or \.pdf"):
        write(tmp_path / "a.txt", report)


def test_what_is_wrong(year):
    for days in (("2026-02-30", "2026-03-01"), ("2026-03-02", "2026-03-01"), ("", "")):
        with pytest.raises(InputError, match="it must be two days in order"):
            compliance(year, *days)
    with pytest.raises(InputError, match="does not have"):
        compliance(year, "2026-01-01", "2026-12-31", dataset="visit")
    edited(year, "DELETE FROM spent")
    with pytest.raises(TamperedError):
        compliance(year, "2026-01-01", "2026-12-31")
