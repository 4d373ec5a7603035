"""One unit moves what is released by at most what is declared, whatever the table holds."""

import random
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_releases import neighbour_of, random_release
from unit_moves import largest_move

from dpaudit.ledger import Ledger
from dpaudit.tables.engines.duck import measured
from dpaudit.tables.queries import Noise
from dpaudit.tables.release_file import read_release

pytest.importorskip("duckdb")
SECRET = bytes(range(32))


@settings(max_examples=examples(15, 2000), deadline=None)
@given(seed=st.integers(0, 2**63))
def test_a_unit_that_leaves_or_is_replaced_moves_no_number_further_than_declared(seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        made = random_release(seed, Path(folder), largest=rng.choice([3, 30, 200]))
        release = made.release
        if not made.rows:
            return

        def found():
            return measured(release.source, release.layout, release.measures, SECRET)

        whole = found()
        made.write(neighbour_of(made, rng))
        moves = largest_move(release, (whole, found()))
        assert all(share <= 1 for share in moves.values()), (moves, made.content)


# -- the bounds are reached ------------------------------------------------------------------------

EXTREMES = {
    "counts": {"count": True, "by": "g"},
    "count of all": {"count": True},
    "units": {"count_units": True, "by": "g", "groups_per_unit": 1},
    "unit": {"count_units": True},
    "sums": {"sum": "x", "by": "g"},
    "sum": {"sum": "x"},
    "positive sum": {"sum": "x + 10"},
    "positive sums": {"sum": "x + 10", "by": "g"},
    "mean": {"mean": "x", "groups_per_unit": 1},
    "quantiles": {"quantiles": "x", "at": [0.25, 0.5], "candidates": [-10, 0, 20]},
    "top": {"top": "g"},
    "keys": {"keys": "g", "groups_per_unit": 2},
}
OTHERS = "".join(f"you {n},{g},-10\n" * 3 for n in range(9) for g in "ab")
LEFT, RIGHT, LOW = ("a,20\n" * 3, "b,20\n" * 3, "a,-10\n" * 3)
NEIGHBOURS = [
    ("add-remove", LEFT, "", {"counts", "count of all", "sums", "sum", "unit", "positive sum"}),
    ("add-remove", LOW, "", {"mean", "quantiles", "top"}),
    ("add-remove", "a,1\nb,2\nb,3\n", "", {"top", "keys"}),
    ("replace-one", LEFT, RIGHT, {"counts", "positive sums", "units", "top"}),
    ("replace-one", LEFT, LOW, {"sum", "mean", "quantiles"}),
    ("replace-one", LEFT, "", {"count of all", "unit", "positive sum"}),
    ("replace-one", "a,1\nb,1\n", "c,1\nd,1\n", {"keys"}),
    ("replace-one", LEFT, "b,-10\n" * 3, {"quantiles", "top"}),
]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("relation", "own", "replaced", "reached"), NEIGHBOURS)
def test_extreme_units_reach_what_is_declared_and_no_more(
    tmp_path, relation, own, replaced, reached, noise
):
    data = {
        "source": "t.csv",
        "unit": "u",
        "columns": {
            "g": {"type": "text", "values": ["a", "b"]},
            "x": {"type": "integer", "range": [-10, 20]},
        },
    }
    privacy = {
        "relation": relation,
        "claim": {"epsilon": 1.0, "delta": 1e-6},
        "rows_per_unit": 3,
        "noise": noise,
    }
    queries = [{"name": name, **each} for name, each in EXTREMES.items()]
    release = read_release({"data": data, "privacy": privacy, "query": queries}, tmp_path)
    tables = []
    for rows in (own, replaced):
        mine = "".join(f"me,{line}\n" for line in rows.split())
        (tmp_path / "t.csv").write_text("u,g,x\n" + OTHERS + mine)
        tables.append(measured(release.source, release.layout, release.measures, SECRET))
    moves = largest_move(release, tables)
    assert all(share <= 1 for share in moves.values())
    assert {name for name in reached if moves[name] < Fraction(999_999, 1_000_000)} == set()


# -- exact to the last float -----------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("noise", [*Noise])
@pytest.mark.parametrize("rows", [1, 3, 7, 999_999])
def test_sensitivities_are_rounded_up_and_kept_by_what_is_cut_to_floats(relation, noise, rows):
    high = 2**53 - 1
    data = {
        "source": "t.csv",
        "unit": "u",
        "columns": {
            "g": {"type": "boolean"},
            "x": {"type": "integer", "range": [-5, high]},
        },
    }
    privacy = {"relation": relation, "claim": {"epsilon": 1.0}, "rows_per_unit": rows}
    asked = [{"sum": "x", "by": "g"}, {"sum": "x"}, {"count_units": True, "by": "g"}]
    release = read_release({"data": data, "privacy": privacy, "query": asked})
    sums, single, units = release.queries
    replaced = relation == "replace-one"
    exact = {
        sums: (2 * (rows * high) ** 2, 2 * rows * high)
        if replaced
        else ((rows * high) ** 2, rows * high),
        single: ((rows * (high + 5 * replaced)) ** 2, rows * (high + 5 * replaced)),
        units: (units.moved, units.moved),
    }
    for query, (square, far) in exact.items():
        for part in query.parts(1.0, noise, 0.0):
            declared = Fraction(part.sensitivity)
            reached = declared**2 - square if noise is Noise.GAUSSIAN else declared - far
            assert 0 <= reached <= (square if noise is Noise.GAUSSIAN else far) / Fraction(10**15)
    (part,) = sums.parts(1.0, noise, 0.0)
    for value in (2**53, 2**53 + 1, 2**70, -(2**80)):
        one, other = (
            sums.private_value("", np.array([v, 0, 0], dtype=object), part)[0].tolist()
            for v in (value, value + 3)
        )
        assert abs(Fraction(one[0]) - Fraction(other[0])) <= 3


def test_a_constant_has_a_sum_and_a_mean():
    data = {"source": "t.csv", "unit": "u", "columns": {"g": {"type": "boolean"}}}
    for relation in ("add-remove", "replace-one"):
        privacy = {"relation": relation, "claim": {"epsilon": 1.0}, "rows_per_unit": 2}
        queries = [{"sum": "0"}, {"mean": "7"}]
        release = read_release({"data": data, "privacy": privacy, "query": queries})
        for query in release.queries:
            assert all(part.sensitivity > 0 for part in query.parts(1.0, Noise.LAPLACE, 0.0))


# -- cells of several releases ---------------------------------------------------------------------


def test_a_ledger_spends_what_the_plan_admits_where_a_unit_touches_several_cells(tmp_path):
    """Medians of six cells, of which a unit moves two, cost twice one of them, and not once."""
    (tmp_path / "t.csv").write_text("u,g,x\nme,a,5\nme,b,6\n")
    values = ["a", "b", "c", "d", "e"]
    data = {
        "source": "t.csv",
        "unit": "u",
        "columns": {
            "g": {"type": "text", "values": values},
            "x": {"type": "integer", "range": [0, 9]},
        },
    }
    privacy = {"relation": "add-remove", "claim": {"epsilon": 1.0}, "rows_per_unit": 2}
    queries = [
        {"name": "m", "median": "x", "by": "g"},
        {"name": "q", "quantiles": "x", "at": [0.1, 0.9], "by": "g", "groups_per_unit": 1},
        {"name": "n", "count": True},
    ]
    release = read_release({"data": data, "privacy": privacy, "query": queries}, tmp_path)
    plan = release.plan()
    with Ledger(plan, rng=np.random.default_rng(0)) as ledger:
        release.run(release.load(np.random.default_rng(0)), ledger)
        spent = ledger.spent()
    cost = dict.fromkeys(["m: 0.5", "q: 0.1", "q: 0.9", "n"], 0)
    for invocation in spent.invocations:
        at = invocation.at.partition(" (")[0]
        cost[at] = max(cost[at], invocation.count)
    assert cost == {each.at: each.count for each in plan.invocations}
    assert cost["m: 0.5"] == 2
    groups = {each.group.name for each in spent.invocations if each.group is not None}
    together = [
        {e.at.partition(" (")[0] for e in spent.invocations if e.group and e.group.name == name}
        for name in groups
    ]
    assert {"m: 0.5", "q: 0.1", "q: 0.9"} in [each - {"n"} for each in together]


def test_no_query_takes_what_another_measures():
    """A mean named x sums at x: sum, where quantiles of that name would count."""
    data = {
        "source": "t.csv",
        "unit": "u",
        "columns": {"x": {"type": "integer", "range": [0, 9]}},
    }
    privacy = {"relation": "add-remove", "claim": {"epsilon": 1.0}, "rows_per_unit": 2}
    for other in ({"median": "x"}, {"count": True}, {"sum": "x"}):
        queries = [{"name": "x", "mean": "x"}, {"name": "x: sum", **other}]
        with pytest.raises(ValueError, match="one name or label, 'x: sum'"):
            read_release({"data": data, "privacy": privacy, "query": queries})
