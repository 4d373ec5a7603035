"""Results of a release as tables: what stands in each column, and what the owner sees besides."""

from dataclasses import replace

from dpaudit import AddRemove, Claim, Laplace, PrivacyUnit, TrustModel, certify
from dpaudit.certificate import ReleaseRecord, SubjectRecord
from dpaudit.plan import Invocation, Plan
from dpaudit.reporting.figures.results import MOST_BARS
from dpaudit.reporting.html import svg
from dpaudit.reporting.results import cut_rows, result_tables

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
        "note": "Bounds that are chosen after reading this are no longer public.",
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
    assert counts.heads[-2:] == ("without noise", "without bounds")
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
