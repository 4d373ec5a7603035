"""Who is drawn stays secret, and a drawn unit adds no more than its proof rests on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sealed_tables import Texts, held

from dpaudit import (
    AddRemove,
    Contribution,
    FixedSizeSampling,
    Gaussian,
    Invocation,
    Laplace,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
)
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.mechanisms import ContinualGaussian, RandomizedResponse
from dpaudit.mechanisms.continual import BinaryTree

pytest.importorskip("duckdb")
PERSON = PrivacyUnit("person")
COLUMNS = {
    "x": {"type": "number", "range": [-1, 1], "step": 1e-6},
    "value": {"type": "number", "range": [-1, 1], "step": 1e-6},
}
CENTRAL = TrustModel.CENTRAL


def regression(data: Any) -> Any:
    found = data.group_rows(1).vector(["x", "value"])
    return found.encode("regression", weight=0.5**0.5)


def norms(
    folder: Path, plan: Plan, rows: Sequence[Texts], ask: Any, **more: Any
) -> list[np.floating[Any]]:
    with held(folder, rows, plan, columns=COLUMNS, **more) as asked:
        ask(asked)
        return [np.linalg.norm(step.value) for step in asked.steps]


ONE = [{"who": "a", "x": "1", "value": "1"}]
"""Whose encoding is longer than half of the distance of two."""


@pytest.mark.parametrize("contribution", [1.0, None])
def test_a_drawn_part_is_no_longer_than_the_contribution_of_its_sample(
    contribution: float | None, tmp_path: Path
) -> None:
    drawn = PoissonSampling(0.999999, contribution=contribution)
    about = PERSON, ReplaceOne(), CENTRAL
    plan = Plan.of(Invocation(Gaussian(1.0), 2.0, *about, sampling=drawn, at="s"))

    def ask(asked: Any) -> None:
        vectors = regression(asked.data)
        asked.ledger.sum(asked.ledger.sample(vectors, at="s"), at="s")

    (norm,) = norms(tmp_path, plan, ONE, ask)
    assert 0.99 < norm <= 1.0


@pytest.mark.parametrize("fixed", [False, True])
def test_a_part_of_a_stream_is_at_most_half_a_change_where_steps_are_a_units_own(
    fixed: bool, tmp_path: Path
) -> None:
    own = ContinualGaussian(
        sigma=1.0, factorization=BinaryTree(2), participations=1, fixed_steps=fixed or None
    )
    plan = Plan.of(Invocation(own, 2.0, PERSON, ReplaceOne(), CENTRAL, at="s"))

    def ask(asked: Any) -> None:
        stream = asked.ledger.stream((2, 2), at="s")
        stream.add(regression(asked.data), units=["a"] if fixed else None)

    norm = norms(tmp_path, plan, ONE, ask, roster=["a"])[0]
    assert (norm > 1.2) if fixed else (norm <= 1.0)


def counted(records: Any, rng: Any, state: Any) -> tuple[float, str]:
    """Minus 1 in the first call of a unit, and 1 in each later one."""
    return (1.0 if state else -1.0), "seen"


def always(records: Any, rng: Any) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("relation", "sampling"),
    [(ReplaceOne(), FixedSizeSampling(1, 3)), (AddRemove(), PoissonSampling(0.5))],
    ids=["fixed size", "poisson"],
)
def test_no_state_of_a_unit_keeps_whether_it_was_drawn(
    relation: Any, sampling: Any, tmp_path: Path
) -> None:
    """A sum of states would else count those who were drawn, at no cost to who was not replaced."""
    part = Contribution(1.0, rows=1)
    about = PERSON, relation, CENTRAL
    plan = Plan.of(
        Invocation.bounded(Laplace(1.0), part, *about, at="drawn", sampling=sampling),
        Invocation.bounded(Laplace(1.0), part, *about, at="all"),
    )
    rows = [{"who": name, "x": "0", "value": "0"} for name in "abc"]
    limits = {"low": -1, "high": 1, "step": 1}
    functions = (counted, always)
    with held(tmp_path, rows, plan, columns=COLUMNS, functions=functions) as asked:
        data, ledger = asked.data, asked.ledger
        drawn = ledger.sample(data, at="drawn")
        with pytest.raises(InputError, match="a state would reveal who was drawn"):
            drawn.per_unit(counted, state="s", **limits)
        ledger.sum(drawn.per_unit(always, **limits), at="drawn")
        ledger.sum(data.per_unit(counted, state="s", **limits), at="all")
        assert [float(step.value) for step in asked.steps][1] == -3.0


def test_no_answer_shows_who_was_drawn(tmp_path: Path) -> None:
    """Who was not drawn would else answer the default, and one unit's place is another's."""
    part = Contribution(1.0, rows=1)
    own = RandomizedResponse.calibrated(epsilon=1.0, k=2)
    local = Invocation(own, 1.0, PERSON, ReplaceOne(), TrustModel.LOCAL, at="own", total=2)
    sampling = FixedSizeSampling(1, 2)
    central = Invocation.bounded(
        Laplace(1.0), part, PERSON, ReplaceOne(), CENTRAL, at="drawn", sampling=sampling
    )
    rows = [{"who": name, "x": "1", "value": "1"} for name in "ab"]
    roster = {"roster": ["a", "b"]}
    with held(tmp_path, rows, Plan.of(local, central), columns=COLUMNS, **roster) as asked:
        ones = asked.data.vector("CASE WHEN x > 0 THEN 1 ELSE 0 END")
        drawn = asked.ledger.sample(asked.data, at="drawn")
        for vectors in (drawn.vector("1"), drawn.filter("x > 0").vector("1")):
            with pytest.raises(PlanMismatchError, match="would show who was drawn"):
                asked.ledger.answers(vectors, at="own")
        asked.ledger.answers(ones, at="own")
        assert [int(step.value) for step in asked.steps] == [1, 1]


@pytest.mark.parametrize("x", ["0", "1"])
def test_no_row_ends_a_stream_of_symmetric_matrices(x: str, tmp_path: Path) -> None:
    """A step that is not symmetric would else end the run, as soon as one unit has such a value."""
    own = ContinualGaussian(
        sigma=1.0, factorization=BinaryTree(2), participations=1, symmetric=True
    )
    plan = Plan.of(Invocation(own, 1.0, PERSON, AddRemove(), CENTRAL, at="s"))

    def ask(asked: Any) -> None:
        asked.ledger.stream((2, 2), at="s").add(asked.data.vector(["0", "x", "0", "0"]))

    rows = [{"who": "a", "x": x, "value": "0"}]
    (norm,) = norms(tmp_path, plan, rows, ask)
    assert norm == pytest.approx(float(x) / 2**0.5)
