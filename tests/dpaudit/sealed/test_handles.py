"""Handles: what the author's code holds of private data can be asked about, and not read."""

from __future__ import annotations

import copy
import json
import math
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sealed_tables import WARDS, Asked, held

from dpaudit import (
    AddRemove,
    Contribution,
    DiscreteLaplace,
    Gaussian,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    TrustModel,
)
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.ledger import SecureNoise

ABOUT = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
ROWS = [
    {"who": "a", "ward": "A1", "town": "Ulm", "age": "20", "cost": "1.5"},
    {"who": "a", "ward": "Ünï", "town": "Köln", "age": "30"},
    {"who": "b", "ward": "A1", "age": "40", "cost": "2.25"},
]


def declared(mechanism: Any, bound: float, at: str, **facts: Any) -> Invocation:
    return Invocation.bounded(mechanism, Contribution(bound, rows=3), *ABOUT, at=at, **facts)


PLAN = Plan.of(
    declared(Laplace(1.0), 500.0, "sum", count=4),
    declared(DiscreteLaplace(1.0), 3.0, "count", count=4),
    declared(Gaussian(1.0), 3.0, "cells", count=2),
)


@pytest.mark.parametrize("kind", ["rows", "vectors"])
@pytest.mark.parametrize(
    "look",
    [
        len,
        list,
        bool,
        int,
        float,
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        np.asarray,
        sorted,
        lambda handle: handle[0],
        lambda handle: 3 in handle,
        lambda handle: handle == handle,
        lambda handle: handle != 1,
        lambda handle: handle < handle,
        operator.index,
    ],
)
def test_a_handle_shows_nothing(look: Callable[[Any], Any], kind: str, tmp_path: Path) -> None:
    with held(tmp_path, ROWS, PLAN) as asked:
        handle = asked.data if kind == "rows" else asked.data.vector("age")
        with pytest.raises(InputError, match="no length, order or content"):
            look(handle)


def test_a_handle_is_shown_by_its_number_and_is_no_key(tmp_path: Path) -> None:
    with held(tmp_path, ROWS, PLAN) as asked:
        assert repr(asked.data) == "<rows 0 of private data>"
        assert repr(asked.data.vector("age")) == "<vectors 1 of private data>"
        with pytest.raises(TypeError, match="unhashable"):
            hash(asked.data)


def test_what_is_public_of_vectors_is_told(tmp_path: Path) -> None:
    with held(tmp_path, ROWS, PLAN) as asked:
        number, both = asked.data.vector("cost"), asked.data.vector(["age", "cost"])
        assert (number.shape, number.step, number.ranges) == ((), 0.01, ((-50.0, 3000.0),))
        assert (both.shape, both.ranges) == ((2,), ((-5.0, 110.0), (-50.0, 3000.0)))
        moved = both.linear([[1, -1], [0, 2], [0, 0]])
        assert moved.shape == (3,)
        assert moved.ranges == ((-3005.0, 160.0), (-100.0, 6000.0), (0.0, 0.0))


def _values(asked: Asked) -> list[Any]:
    return [step.value.tolist() for step in asked.steps]


def test_releases_are_of_what_was_asked(tmp_path: Path) -> None:
    with held(tmp_path, ROWS, PLAN) as asked:
        data, ledger = asked.data, asked.ledger
        ledger.sum(data.vector("cost"), at="sum")
        ledger.sum(data.filter("age < 35").vector(["age", "cost"]), at="sum")
        ledger.mean(data.with_columns(half="age * 0.5").vector("half"))
        ledger.histogram(data, ["ward", {"column": "age", "edges": [0, 25, 50]}], at="cells")
        assert _values(asked)[:4] == [3.75, [50.0, 1.5], 45.0, 3]
        assert _values(asked)[4] == [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
        assert len(ledger) == 5


def test_a_mean_is_its_sum_by_its_count(tmp_path: Path) -> None:
    with held(tmp_path, ROWS, PLAN) as asked:
        found = asked.ledger.mean(asked.data.vector("age"))
        total, count = (step.released for step in asked.steps)
        assert found == total / max(1.0, float(count))
        with pytest.raises(InputError, match="whole numbers"):
            asked.ledger.mean(asked.data.vector("cost"), total="count", count="sum")


def test_a_public_table_is_joined(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("name,region,people\nUlm,south,7\nBonn,west,9\n")
    more = {
        "source": "towns.csv",
        "key": "name",
        "on": "town",
        "columns": {
            "region": {"type": "text", "values": ["north", "south"]},
            "people": {"type": "integer", "range": [0, 9]},
        },
    }
    derived = {"adult": "age >= 18", "crowd": "coalesce(people, 0) * 2"}
    with held(tmp_path, ROWS, PLAN, join=more, derived=derived) as asked:
        asked.ledger.sum(asked.data.filter("adult").vector("crowd"), at="sum")
        asked.ledger.histogram(asked.data, "region", at="cells")
        assert _values(asked) == [14.0, [0.0, 1.0]]


def test_what_cannot_be_sent_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with held(tmp_path, ROWS, PLAN) as asked:
        around: list[Any] = []
        around.append(around)
        for wrong in (math.nan, object(), around, b"x", {1, 2}):
            with pytest.raises(InputError, match="texts and lists of these"):
                asked.data.filter(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="handles of private data; this is a list"):
            asked.ledger.sum([1, 2], at="sum")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="give a vector made of one column"):
            asked.ledger.sum(asked.data, at="sum")  # type: ignore[arg-type]
        with pytest.raises(PlanMismatchError, match="declares nothing at 'no'"):
            asked.ledger.count(asked.data, at="no")


def test_steps_within_steps_end(tmp_path: Path) -> None:
    with held(tmp_path, ROWS, PLAN) as asked:
        rows, wide, last = asked.data, asked.data, "age"
        for _ in range(199):
            rows = rows.filter("age > 0")
        deepest = asked.operations._handles[rows._number]
        assert asked.operations.real.store.codes(deepest).size == 3
        with pytest.raises(InputError, match="too many steps"):
            rows.filter("age > 0").filter("age > 0")
        for number in range(3):
            name, last = last, f"x{number}"
            wide = wide.with_columns(**{last: f"({name} + {name}) % 7"})
        with pytest.raises(InputError, match="simplify it"):
            wide.with_columns(longest=" + ".join([last] * 300))


def test_what_exact_noise_cannot_draw_is_refused_in_words(tmp_path: Path) -> None:
    edges = {"column": "age", "edges": [*range(-5, 111)]}
    with held(tmp_path, ROWS, PLAN, noise=SecureNoise()) as asked:
        by = [edges, {"column": "huge", "edges": [*range(300)]}]
        with pytest.raises(Exception, match="exact normal noise takes at most 16384"):
            asked.ledger.histogram(asked.data, by, at="cells")
        assert len(asked.ledger) == 0
        assert asked.ledger.histogram(asked.data, "ward", at="cells").shape == (len(WARDS),)


def test_the_owner_alone_is_told(tmp_path: Path) -> None:
    with held(tmp_path, ROWS, PLAN) as asked:
        assert asked.data.tell_owner("rows") is None  # type: ignore[func-returns-value]
        asked.data.vector(["age", "cost"]).tell_owner("means")
        asked.data.filter("age > 100").vector("age").tell_owner("none")
        assert json.loads(json.dumps(asked.operations.owner)) == {
            "rows": 3,
            "means": [30.0, 1.25],
            "none": None,
        }
        assert len(asked.ledger) == 0
