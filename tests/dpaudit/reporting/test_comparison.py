"""Several certificates side by side."""

from dpaudit.reporting.comparison import comparison, tally
from dpaudit.reporting.view import view


def test_rows_side_by_side(certificates):
    views = [view(certificates[kind]) for kind in ("certified", "exceeded", "refuted", "bare")]
    rows = comparison(views)
    assert [str(row["verdict"]) for row in rows] == [
        "certified",
        "unproven",
        "refuted",
        "certified",
    ]
    assert rows[0]["attacked"] == "ε ≥ 0.91 at δ = 0"
    assert rows[2]["attacked"] == "ε ≥ 1.93456 at δ = 0"
    assert rows[3]["attacked"] == "not attacked"
    assert rows[1]["claimed"] == "ε = 0.1, δ = 1e-05"
    assert rows[2]["guess"] == rows[3]["claimed"] == "–"
    assert tally(views) == "4 reports: 1 refuted, 1 unproven, 2 certified."
