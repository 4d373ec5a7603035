"""What is found is what holds the words, page by page."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

from booking import ABOUT, ask, filled, gaussian

from dpaudit.base.errors import InputError
from dpaudit.book import Book, DataSet
from dpaudit.book.server.api import find

PURPOSES = ("a dashboard", "Ein Überblick", 'say "hi" 100 %', "under_score \\ back", "dataset")


@pytest.fixture
def asked(book: Book):
    filled(book, rho=1000.0)
    for n, purpose in enumerate(PURPOSES):
        ask(book, gaussian(), purpose=purpose, by=f"name{n}", request=f"q{n}")
    return book


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", "43210"),
        ("DASH", "0"),
        ("überblick", "1"),
        ("ÜBERBLICK ein", "1"),
        ('"hi"', "2"),
        ("%", "2"),
        ("_", "3"),
        ("\\", "3"),
        ("name2 say", "2"),
        ("name2 dash", ""),
        ("charged", ""),  # a key of the record, and no word of it
        ("status", ""),
        ("' OR 1=1 --", ""),
    ],
)
def test_words(asked, words, found):
    assert "".join(each.request[1] for each in find(asked, words=words).releases) == found


def test_filters_and_pages(asked):
    asked.add(DataSet("other", *ABOUT), by="officer")
    assert find(asked, dataset="other").releases == ()
    assert find(asked, dataset="visits' OR '1'='1").releases == ()
    assert find(asked, status="closed").releases == ()
    assert len(find(asked, status="reserved").releases) == 5
    first = find(asked, most=2)
    second = find(asked, most=2, before=first.before)
    third = find(asked, most=2, before=second.before)
    told = [each.request for page in (first, second, third) for each in page.releases]
    assert told == ["q4", "q3", "q2", "q1", "q0"]
    assert third.before == 0
    for wrong in ({"most": 0}, {"most": 10**6}, {"before": -1}, {"before": 2**63}):
        with pytest.raises(InputError, match="it must be from 1 to 1000"):
            find(asked, **wrong)
