"""Results of a release as tables: what stands in each column, and what the owner sees besides."""

from dataclasses import replace

import pytest

from dpaudit import AddRemove, Claim, Laplace, PrivacyUnit, TrustModel, certify
from dpaudit.certificate import ReleaseRecord, SubjectRecord
from dpaudit.plan import Invocation, Plan
from dpaudit.reporting import render_to
from dpaudit.reporting.figures.results import MOST_BARS, MOST_LABELS
from dpaudit.reporting.html import svg
from dpaudit.reporting.results import cut_rows, result_tables
from dpaudit.reporting.wording import words

ABOUT = (1.0, PrivacyUnit("patient"), AddRemove(), TrustModel.CENTRAL)
COUNTS = {
    "query": "visits: all",
    "kind": "count",
    "columns": ["ward"],
    "rows": [
        {"cell": ["A1"], "value": 12, "low": 9.0, "high": 15.0},
        {"cell": ["other"], "value": -1, "low": 0.0, "high": 2.0},
    ],
}
CHOSEN = {
    "query": "median",
    "kind": "quantiles",
    "columns": ["quantile"],
    "rows": [{"cell": ["0.5"], "value": 1.5, "note": "within 3 rows"}],
}
OWNER = {
    "series": {},
    "summary": {
        "rows": {"rows": 2000, "rows without a unit": 3},
        "rows that the bounds left out": {"visits: all": 7, "median: sum": 5, "median: count": 5},
        "ranges": {"cost": {"mean as read": 20.5, "mean within its range": 10}},
        "queries": {
            "visits: all": [
                {"cell": ["A1"], "with bounds": 11, "without bounds on rows and groups": 40},
                {"cell": ["other"], "with bounds": 0, "without bounds on rows and groups": 0},
            ],
            "median": [],
        },
        "note": "Bounds that somebody chooses after reading this are no longer public.",
    },
}


def released(*results):
    plan = Plan.of(Invocation(Laplace(2.0), *ABOUT, at="visits: all"))
    record = ReleaseRecord("v.csv", ("visits: all: counts of rows", "median: a median"), "a" * 64)
    about = {"subject": SubjectRecord("v.toml"), "claim": Claim(1.0), "release": record}
    run = {"results": list(results), "summary": {}, "series": {}}
    return replace(certify(plan, **about), run=run)


def test_a_table_has_the_keys_the_number_and_its_interval():
    counts, chosen = result_tables(released(COUNTS, CHOSEN))
    assert (counts.query, counts.what) == ("visits: all", "counts of rows")
    assert counts.heads == ("ward", "released", "from", "to")
    assert counts.rows == (("A1", "12", "9", "15"), ("other", "-1", "0", "2"))
    assert (chosen.heads, chosen.rows) == (("quantile", "released"), (("0.5", "1.5"),))
    assert chosen.note == "within 3 rows"


def test_the_owner_sees_besides_what_the_bounds_cut():
    certificate = replace(released(COUNTS), owner=OWNER)
    (counts,) = result_tables(certificate)
    assert counts.heads[-2:] == ("private: without noise", "private: without bounds")
    assert [row[-2:] for row in counts.rows] == [("11", "40"), ("0", "0")]
    assert cut_rows(certificate) == (
        ("rows", "2,000"),
        ("rows without a unit", "3"),
        ("rows that the bounds left out of visits: all", "7"),
        ("rows that the bounds left out of median", "5"),
        ("cost: mean as read", "20.5"),
        ("cost: mean within its range", "10"),
    )
    assert cut_rows(released(COUNTS)) == ()


def test_numbers_are_drawn_where_they_can_be_told_apart():
    (counts,) = result_tables(released(COUNTS))
    plot = counts.figure.plot
    assert [tuple(line.x) for line in plot.lines] == [(9, 15), (0, 2)]
    assert [(dot.x, dot.y) for dot in plot.dots] == [(12, 1), (-1, 2)]
    assert svg.markup(plot, "a") == svg.markup(plot, "a")
    many = COUNTS | {"rows": COUNTS["rows"] * MOST_BARS}
    (table,) = result_tables(released(many), most=10)
    assert table.figure is None
    assert (len(table.rows), table.left) == (10, 2 * MOST_BARS - 10)
    (single,) = result_tables(released(CHOSEN))
    assert single.figure is None


def test_a_number_outside_its_interval_is_explained():
    (counts,) = result_tables(released(COUNTS))
    assert counts.note == words.OUTSIDE
    above = COUNTS | {"rows": COUNTS["rows"][:1]}
    (within,) = result_tables(released(above))
    assert within.note == ""


def labels(*cells):
    rows = [{"cell": list(cell), "value": 1, "low": 0.0, "high": 2.0} for cell in cells]
    (table,) = result_tables(released(COUNTS | {"rows": rows}))
    return table.figure.plot


def test_rows_of_a_figure_are_labelled_by_their_keys():
    plot = labels(
        ("A1", "0 to 18"), ("a" * 40, "x"), ("<b>",), ("$x^2$",), ("外科",), ("Chirurgía",)
    )
    long = "a" * 19 + "…"
    assert plot.labels == ("A1, 0 to 18", long, "row 3", "row 4", "row 5", "Chirurgía")
    assert plot.vertical == ""
    drawn = svg.markup(plot, "a")
    assert all(f">{label}</text>" in drawn for label in plot.labels)


def test_many_rows_of_a_figure_are_numbered():
    plot = labels(*[("A1",)] * (MOST_LABELS + 1))
    assert (plot.labels, plot.vertical) == ((), "row of the table")
    assert labels((), ()).labels == ()


@pytest.mark.parametrize("ending", ["html", "md", "json", "pdf"])
def test_what_the_owner_alone_may_see_says_so_at_the_top_and_in_the_title(tmp_path, ending):
    if ending == "pdf":
        pytest.importorskip("typst")
    public = render_to(released(COUNTS), tmp_path / f"public.{ending}")
    owned = render_to(replace(released(COUNTS), owner=OWNER), tmp_path / f"owner.{ending}")
    assert owned.stat().st_mode & 0o777 == 0o600
    assert public.stat().st_mode & 0o077
    if ending in ("html", "md"):
        shown = owned.read_text()
        assert words.OWNER not in public.read_text()
        assert shown.index(words.OWNER) < shown.index("Privacy report of")
    if ending == "html":
        assert f"<title>{words.OWNER}. " in shown
        assert f'<p class="private refuted"><strong>{words.OWNER}</strong></p>' in shown
    if ending == "pdf":
        title = words.OWNER.encode("utf-16-be")
        assert title in owned.read_bytes() or words.OWNER.encode() in owned.read_bytes()
