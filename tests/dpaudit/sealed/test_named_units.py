"""Rows of named units of a roster, rows of numbers, and made-up rows of a roster."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from sealed_tables import COLUMNS, UNITS, held, random_table, write

from dpaudit import (
    AddRemove,
    DiscreteGaussian,
    DiscreteLaplace,
    Group,
    Invocation,
    Laplace,
    Membership,
    Plan,
    PrivacyUnit,
    TrustModel,
)
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.plan import Contribution
from dpaudit.sealed.store import ReadTable, opened, tables_to_try, with_data

pytest.importorskip("duckdb")
ROSTER = [unit for unit in UNITS if unit]


def counted(times: int = 9) -> Plan:
    part = Contribution(1e4, rows=10_000)
    about = (PrivacyUnit("patient"), AddRemove(), TrustModel.CENTRAL)
    counts = Invocation.bounded(DiscreteLaplace(1e4), part, *about, at="rows", count=times)
    sums = Invocation.bounded(Laplace(1e9), Contribution(1e9), *about, at="sum", count=times)
    return Plan.of(counts, sums)


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_named_units_are_theirs_alone(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    table = random_table(rng)
    named = rng.sample(ROSTER, 3)
    with held(tmp_path, table, counted(), roster=ROSTER) as asked:
        asked.ledger.count(asked.data.of_units(named), at="rows")
        asked.ledger.count(asked.data.filter("age >= 18").of_units(named), at="rows")
        asked.ledger.count(asked.data.of_units(named).filter("age >= 18"), at="rows")
        every, *adults = [int(step.value) for step in asked.steps]
    assert every == sum(row["who"] in named for row in table)
    assert adults[0] == adults[1] <= every


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_numbers_have_them_as_columns(seed: int, tmp_path: Path) -> None:
    table = random_table(random.Random(seed))
    with held(tmp_path, table, counted()) as asked:
        numbers, one = asked.data.vector(["age", "cost"]), asked.data.vector("cost")
        asked.ledger.sum(numbers.rows().vector("value_1 + 2 * value_2"), at="sum")
        asked.ledger.sum(asked.data.vector("coalesce(age, 0) + 2 * coalesce(cost, 0)"), at="sum")
        asked.ledger.sum(one.rows().filter("value > 3").vector("value - 1"), at="sum")
        asked.ledger.sum(asked.data.filter("cost > 3").vector("cost - 1"), at="sum")
        two, same, above, again = [float(step.value) for step in asked.steps]
        clipped = numbers.encode("clip", bound=2)
        with pytest.raises(InputError, match="encoded; call rows before encode"):
            clipped.rows()
    assert (two, above) == (same, again)


@pytest.mark.parametrize(
    ("units", "sentence"),
    [
        (["somebody"], "units must be a list of names of the roster"),
        ([], "units must be a list"),
        (["6", "6"], "units has a name twice"),
        (["x' OR 1 = 1 --"], "units must be a list"),
    ],
)
def test_other_names_are_refused(units: list[str], sentence: str, tmp_path: Path) -> None:
    with (
        held(tmp_path, [], counted(), roster=ROSTER) as asked,
        pytest.raises(InputError, match=sentence),
    ):
        asked.data.of_units(units)


def test_made_up_rows_are_of_the_roster(tmp_path: Path) -> None:
    write(tmp_path / "rows.csv", [])
    record = {"source": "rows.csv", "unit": "who", "columns": dict(COLUMNS), "roster": ROSTER}
    table = ReadTable.of(record, tmp_path)
    with ExitStack() as stack:
        made = with_data(table, "synthetic 50", tmp_path, np.random.default_rng(0))
        assert opened(made, b"key", stack).units() == sorted(ROSTER)
        assert [each.units() for each in tables_to_try(table, counted(), stack)] == [
            sorted(ROSTER)
        ] * 2


LAPLACE, NORMAL = DiscreteLaplace(0.7), DiscreteGaussian(1.317)
"""Of a unit's own group: at ε = 1.9085 both have δ = 0.01 after discrete Laplace noise of scale 2.
Whoever chooses one of them by what that release lost has 0.01024."""


def grouped(membership: Membership, first: object, second: object) -> Plan:
    """A sum of all units, and one of each of two groups."""
    about = PrivacyUnit("patient"), AddRemove(), TrustModel.CENTRAL
    laws = {"all": (DiscreteLaplace(2.0), None)}
    laws |= {
        name: (law, Group(name, membership)) for name, law in (("true", first), ("false", second))
    }
    return Plan.of(
        *(
            Invocation(law, 1.0, *about, group=group, at=name)  # type: ignore[arg-type]
            for name, (law, group) in laws.items()
        )
    )


@pytest.mark.parametrize("membership", list(Membership))
def test_no_release_of_all_units_decides_on_unlike_groups(
    membership: Membership, tmp_path: Path
) -> None:
    rows = [{"who": unit, "ward": "A1", "age": "1"} for unit in ROSTER[:2]]
    one = "CASE WHEN age > 0 THEN 1 ELSE 0 END"
    roster = {"roster": ROSTER} if membership is Membership.POSITION else {}

    def ask(plan: Plan, *, before: bool) -> None:
        with held(tmp_path, rows, plan, **roster) as asked:
            data, ledger = asked.data, asked.ledger
            if not before:
                ledger.sum(data.vector(one), at="all")
            if membership is Membership.POSITION:
                ledger.sum(data.vector(one), units=ROSTER[:1], at="true")
            else:
                named = data.with_columns(of="CASE WHEN age > 0 THEN 'true' ELSE 'false' END")
                own = named.partition("of", ["true", "false"])["true"]
            if before:
                ledger.sum(data.vector(one), at="all")
            if membership is Membership.VALUE:
                ledger.sum(own.vector(one), at="true")

    ask(grouped(membership, LAPLACE, NORMAL), before=True)
    ask(grouped(membership, LAPLACE, LAPLACE), before=False)
    with pytest.raises(PlanMismatchError, match="choose them before"):
        ask(grouped(membership, LAPLACE, NORMAL), before=False)
