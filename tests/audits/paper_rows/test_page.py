"""The page, its pictures, and what it is compared with."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest

from audits.paper_rows.checking import RESULTS, changes
from audits.paper_rows.experiments import experiments
from audits.paper_rows.measured import Measured, Number, Verdict
from audits.paper_rows.page import Page, headlines, html, markdown, number_text, value_text
from audits.paper_rows.panels import pictures_of
from audits.paper_rows.pictures import Line, drawn
from audits.paper_rows.recording import FOLDER, Recording, Spot
from audits.paper_rows.rows import Outcome, Row, rows_of

HOSTILE = Measured((Number("<b>x</b>|", 1.5, 0.25, 4, 2.0),), Verdict.REFUTED, "a | <script> `b`")


@pytest.fixture(scope="module")
def page() -> Page:
    outcomes = {row.id: Outcome(row, HOSTILE) for row in rows_of()}
    record = Recording.read("outsourced-branin")
    assert record is not None
    return Page(outcomes, {record.name: record}, (Spot("e", "c", 1.0, 1.0, 0.1),))


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (470446.0, 34538.0, "470 000 ± 35 000"),
        (0.0381554, 0.0142826, "0.038 ± 0.014"),
        (-1.5, 0.25, "−1.50 ± 0.25"),
        (1030.88, 0.0, "1031"),
        (2.65e-6, 0.0, "2.65e-06"),
    ],
)
def test_numbers_have_the_digits_of_their_error(value: float, error: float, text: str) -> None:
    assert value_text(value, error) == text


def test_a_number_says_runs_and_what_is_printed() -> None:
    text = number_text(Number("regret", 1.5, 0.25, 4, 2.0))
    assert text == "regret: 1.50 ± 0.25 (4 runs); paper: 2"


def test_every_row_is_on_both_pages(page: Page) -> None:
    text, shown = markdown(page), html(page)
    for row in rows_of():
        assert f"**{row.id}**" in text
        assert f'id="{row.id}"' in shown
        assert row.command in text


def test_text_of_rows_means_nothing_to_a_page(page: Page) -> None:
    assert "<script>" not in markdown(page)
    assert "<script>" not in html(page)
    assert "<b>x" not in html(page)


def test_the_html_is_whole_and_loads_nothing(page: Page) -> None:
    opened: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            assert tag not in ("script", "img", "link", "iframe")
            assert not any(name in ("src", "onclick") for name, _ in attrs)
            if tag in ("table", "svg", "ul", "small"):
                opened.append(tag)

        def handle_endtag(self, tag):
            if tag in ("table", "svg", "ul", "small"):
                assert opened.pop() == tag

    Reader().feed(html(page))
    assert opened == []


def test_headlines_count_verdicts_and_spots(page: Page) -> None:
    first, second = headlines(page)
    assert f"{len(rows_of())} rows" in first
    assert f"{len(rows_of())} refuted" in first
    assert second.startswith("Spot checks: 1 of 1")


@pytest.mark.parametrize("name", experiments())
def test_pictures_are_whole_and_show_what_was_recorded(name: str) -> None:
    record = Recording.read(name)
    assert record is not None
    found = list(pictures_of({name: record}, name))
    assert found
    for picture in found:
        root = ElementTree.fromstring(picture)
        lines = root.findall("{http://www.w3.org/2000/svg}polyline")
        assert len(lines) >= 2
        assert "nan" not in picture
    assert list(pictures_of({}, name)) == []


def test_a_line_is_drawn_to_scale() -> None:
    line = Line("x", np.array([1.0, 2.0]), np.array([0.0, 10.0]))
    root = ElementTree.fromstring(drawn("t", [line], "round", "regret"))
    (polyline,) = root.findall("{http://www.w3.org/2000/svg}polyline")
    first, last = (tuple(map(float, pair.split(","))) for pair in polyline.get("points").split())
    assert first == (52.0, 176.0)
    assert last == (332.0, 22.0)


def outcome(name: str, ours: float, verdict: Verdict = Verdict.REFUTED) -> Outcome:
    row = Row(name, "place", "claim.", "joint.lemma_2")
    return Outcome(row, Measured((Number("x", ours),), verdict, ""))


def test_what_changes_is_named(tmp_path) -> None:
    assert list(changes([outcome("A", 1.0)], tmp_path)) == []
    before = {"rows": {"A": outcome("A", 1.0).to_dict(), "B": outcome("B", 1.0).to_dict()}}
    (tmp_path / RESULTS).write_text(json.dumps(before), encoding="utf-8")
    now = [outcome("A", 1.0), outcome("B", 1.1)]
    assert list(changes(now, tmp_path)) == ["B: x was 1, is 1.1."]
    now = [outcome("A", 1.0, Verdict.REPRODUCED)]
    assert list(changes(now, tmp_path)) == ["A: was refuted, is reproduced."]


def test_the_page_on_disk_is_light_and_of_these_results() -> None:
    text = FOLDER.with_suffix(".html").read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    results = json.loads((FOLDER / RESULTS).read_text(encoding="utf-8"))
    assert all(f'id="{name}"' in text for name in results["rows"])
