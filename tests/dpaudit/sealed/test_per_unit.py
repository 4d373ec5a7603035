"""The author's functions on one unit: what their values are, and of what these follow."""

from __future__ import annotations

import functools
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sealed_tables import Asked, held

from dpaudit import (
    AddRemove,
    Contribution,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    TrustModel,
)
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.project.targets import find_target
from dpaudit.sealed import sandbox
from dpaudit.sealed.handles import code_of
from dpaudit.workflow import sealing
from dpaudit.workflow.running import RunOptions, run_subject, run_target

pytest.importorskip("duckdb")

COLUMNS = {
    "age": {"type": "integer", "range": [0, 110]},
    "cost": {"type": "number", "range": [0, 100], "step": 0.01},
    "ward": {"type": "text"},
    "day": {"type": "date", "range": ["2020-01-01", "2030-01-01"]},
    "sick": {"type": "boolean"},
}
ROWS = [
    {"who": "ann", "age": "20", "cost": "1.5", "ward": "A1", "day": "2024-02-29", "sick": "true"},
    {"who": "ann", "age": "30"},
    {"who": "ben", "age": "40", "cost": "2.25", "ward": "Ünï"},
    {"who": "zed", "age": "101", "sick": "false"},
]
ABOUT = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
PLAN = Plan.of(
    Invocation.bounded(Laplace(1.0), Contribution(1e6, rows=3), *ABOUT, at="sum", total=99)
)


# -- what the tests run ------------------------------------------------------------------------


def mean_age(records, rng):
    return sum(records["age"]) / len(records["age"])


def scaled(records, rng, factor=1.0, word="", more=(), matrix=None):
    extra = 0.0 if matrix is None else float(matrix.sum())
    return factor * len(records["age"]) + len(word) + sum(more) + extra


def pair(records, rng):
    return [max(records["age"]), -1.0]


def as_array(records, rng):
    return np.array([len(records["age"]), 0.26])


def text(records, rng):
    return "many"


def drawn(records, rng):
    return rng.random()


def count(records, rng, state):
    state = (state or 0) + 1
    return state, state


def fails_once(records, rng, state):
    state = [] if state is None else state
    state.append(1)
    if len(state) == 2 and records["age"][0] == 40:
        raise ValueError(f"the age is {records['age']}")
    return len(state), state


def no_state(records, rng, state):
    return 1.0


def unwritten(records, rng, state):
    return 1.0, lambda: 0


def spoils(records, rng):
    number = len(records["age"])
    records["age"].clear()
    return number


def raises(records, rng):
    raise ValueError(f"the age is {records['age']}")


def leaves(records, rng):
    raise SystemExit(1)


def raises_on_the_old(records, rng):
    if records["age"][0] > 50:
        raise ValueError("too old")
    return 1.0


def returns(value: Any) -> Callable[..., Any]:
    """A function that returns this whatever it gets."""

    @functools.wraps(text)
    def made(records, rng):
        return value

    made.__qualname__ = "made"
    return made


TOLD: list[str] = []


@contextmanager
def asked(
    folder: Path, *functions: Callable[..., Any], rows: Any = ROWS, **more: Any
) -> Iterator[Asked]:
    TOLD.clear()
    with held(
        folder, rows, PLAN, columns=COLUMNS, functions=functions, say=TOLD.append, **more
    ) as found:
        yield found


def values(found: Asked, function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    """The value of each unit, as the custodian keeps it."""
    vectors = found.data.per_unit(function, **({"low": 0, "high": 1000} | arguments))
    store = found.operations.real.store
    codes, numbers = store.values(found.operations._handles[vectors._number])
    names = store.units()
    return {names[code]: np.asarray(n).tolist() for code, n in zip(codes, numbers, strict=True)}


def kept(folder: Path, function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    with asked(folder, function) as found:
        return values(found, function, **arguments)


# -- values ------------------------------------------------------------------------------------


def test_each_unit_has_the_value_of_its_own_rows(tmp_path):
    assert kept(tmp_path, mean_age) == {"ann": 25.0, "ben": 40.0, "zed": 101.0}


SEEN: list[Any] = []


def look(records, rng):
    SEEN.append(records)
    return 0.0


def test_records_are_lists_of_natural_values_by_column(tmp_path):
    with asked(tmp_path, look) as found:
        found.data.per_unit(look, low=0, high=1)
        SEEN.clear()
        values(found, look)
        ann, ben, _ = SEEN
        assert sorted(zip(*ann.values(), strict=True), key=str) == [
            (20, 1.5, "A1", "2024-02-29", True),
            (30, None, None, None, None),
        ]
        assert list(ann) == list(COLUMNS)
        assert ben["cost"] == [2.25]
        SEEN.clear()
        values(found, look)
        assert SEEN[0] == ann  # the order within a unit is kept


def test_records_follow_filters_and_columns(tmp_path):
    with asked(tmp_path, scaled, look) as found:
        some = found.data.filter("age < 100").group_rows(1).with_columns(twice="age * 2")
        SEEN.clear()
        some.per_unit(look, low=0, high=1)
        assert {len(each["twice"]) for each in SEEN[8:]} == {1}  # after those made up
        vectors = some.per_unit(scaled, low=0, high=9)
        assert found.operations._handles[vectors._number].shape == ()
        codes, numbers = found.operations.real.store.values(
            found.operations._handles[vectors._number]
        )
        assert (codes.tolist(), numbers.tolist()) == ([0, 1], [1.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"low": 22, "high": 50}, [25.0, 40.0, 50.0]),
        ({"low": 30, "high": 50}, [30.0, 40.0, 50.0]),
        ({"step": 10}, [20.0, 40.0, 100.0]),  # a half goes to the even step
        ({"step": 0.7}, [25.2, 39.9, 100.8]),
        ({"low": 0.5, "high": 99.5, "step": 1}, [25.0, 40.0, 99.0]),
    ],
)
def test_values_are_moved_into_their_range_and_to_their_steps(tmp_path, arguments, expected):
    found = kept(tmp_path, mean_age, **arguments)
    assert list(found.values()) == pytest.approx(expected, abs=1e-12)


def test_arrays_have_a_range_for_each_entry(tmp_path):
    ends = {"low": [0, -0.5], "high": [50, 1], "shape": [2], "step": 0.5}
    assert kept(tmp_path, pair, **ends) == {
        "ann": [30.0, -0.5],
        "ben": [40.0, -0.5],
        "zed": [50.0, -0.5],
    }
    assert kept(tmp_path, as_array, low=-1, high=9, shape=[2], step=0.5)["ann"] == [2.0, 0.5]


def test_what_is_public_of_values(tmp_path):
    with asked(tmp_path, pair, mean_age) as found:
        vectors = found.data.per_unit(pair, low=[1, -3], high=[5, -1], shape=[2], step=0.5)
        assert (vectors.shape, vectors.step) == ((2,), 0.5)
        assert vectors.ranges == ((0.0, 5.0), (-3.0, 0.0))  # 0 is of who has no rows
        assert found.data.per_unit(mean_age, low=0, high=5).shape == ()
        assert vectors.linear([[2, 1]]).ranges == ((-3.0, 10.0),)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "many",
        math.nan,
        math.inf,
        -math.inf,
        [1.0],
        [],
        [[1.0]],
        {"a": 1},
        1j,
        object(),
        b"1",
        10**400,
        [1.0, "x"],
        np.array([1.0, 2.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_such_value_is_the_default(tmp_path, value):
    made = returns(value)
    globals()["made"] = made
    with (
        asked(tmp_path, made) as found,
        pytest.raises(InputError, match=r"^function made fails on 8 of 8 made-up units: .*\.$"),
    ):
        values(found, made, default=7)


def test_the_default_is_of_who_fails_and_the_owner_learns_how_many(tmp_path):
    with asked(tmp_path, raises_on_the_old) as found:
        assert values(found, raises_on_the_old, low=-5, default=3) == {
            "ann": 1.0,
            "ben": 1.0,
            "zed": 3.0,
        }
        assert values(found, raises_on_the_old, low=-5)["zed"] == -5.0  # low where not given
        assert values(found, raises_on_the_old, low=-5, high=2, default=3)["zed"] == 2.0
        assert found.operations.owner == {"units with the default of raises_on_the_old": 3}
        (said,) = TOLD
        assert said.startswith("function raises_on_the_old fails on ")
        assert said.endswith("which count as its default: ValueError: too old.\n")


def test_a_table_without_rows_has_no_values_and_no_calls(tmp_path):
    with asked(tmp_path, look, rows=[]) as found:
        found.data.per_unit(look, low=0, high=1)
        SEEN.clear()
        assert values(found, look) == {}
        assert SEEN == []


def test_a_unit_whose_rows_are_filtered_out_is_not_asked(tmp_path):
    with asked(tmp_path, look) as found:
        found.data.per_unit(look, low=0, high=1)
        SEEN.clear()
        found.data.filter("age > 100").per_unit(look, low=0, high=1)
        assert [each["age"] for each in SEEN[-1:]] == [[101]]
        assert len(SEEN) == 1


def test_parameters_are_numbers_texts_lists_and_arrays(tmp_path):
    given = {"factor": 2.5, "word": "four", "more": [1, 2.5], "matrix": np.ones((2, 3))}
    assert kept(tmp_path, scaled, parameters=given)["ann"] == 5.0 + 4 + 3.5 + 6
    given = {"factor": np.float64(2.0), "more": [np.int64(3)]}
    assert kept(tmp_path, scaled, parameters=given)["ben"] == 5.0


@pytest.mark.parametrize("given", [{"factor": math.nan}, {"word": object()}, {"more": {1}}])
def test_other_parameters_are_refused(tmp_path, given):
    with asked(tmp_path, scaled) as found, pytest.raises(InputError, match=r"^per_unit takes"):
        values(found, scaled, parameters=given)


@pytest.mark.parametrize(
    "raw",
    [
        {"array": [1], "type": "int64", "shape": [1], "counts": 5},
        {"array": ["x"], "type": "object", "shape": [1]},
        {"array": [1], "type": "int64", "shape": [2]},
        {"array": [[1], [1, 2]], "type": "int64", "shape": [3]},
        {"list": 5},
        {"counts": [1]},
        {"other": 1},
        math.inf,
        [math.nan],
        {"list": [{"array": [1], "type": "V9", "shape": [1]}]},
    ],
)
def test_a_parameter_that_no_message_says_is_refused_whether_there_are_units_or_not(tmp_path, raw):
    """What fails where there are units alone would tell whether there are any."""
    asked_for = {"function": list(code_of(scaled)), "low": 0, "high": 9, "default": 0, "step": 1}
    request = asked_for | {"op": "per_unit", "shape": [], "state": "", "parameters": {"more": raw}}
    said = []
    for condition in ("age > 500", "age > 0"):
        with asked(tmp_path, scaled) as found:
            rows = found.data.filter(condition)
            said.append(found.operations.answer(request | {"of": rows._number}))
    assert said[0] == said[1]
    assert "error" in said[0]


def test_what_a_function_does_to_its_records_stays_with_it(tmp_path):
    with asked(tmp_path, spoils) as found:
        assert values(found, spoils) == values(found, spoils) == {"ann": 2, "ben": 1, "zed": 1}


# -- states ------------------------------------------------------------------------------------


def test_a_state_returns_to_its_own_unit_alone(tmp_path):
    with asked(tmp_path, count) as found:
        some = found.data.filter("age < 35")
        some.per_unit(count, low=0, high=9, step=1, state="visits")
        assert values(found, count, state="visits") == {"ann": 2, "ben": 1, "zed": 1}
        assert values(found, count, state="visits") == {"ann": 3, "ben": 2, "zed": 2}
        assert values(found, count, state="others") == {"ann": 1, "ben": 1, "zed": 1}


def test_a_state_is_as_it_was_after_a_failure(tmp_path):
    with asked(tmp_path, fails_once) as found:
        told = [values(found, fails_once, state="s", default=9)["ben"] for _ in range(3)]
        assert told == [1, 9, 9]  # the second call is made again, on the state of the first
        assert values(found, fails_once, state="s", default=9)["ann"] == 4


@pytest.mark.parametrize("function", [no_state, unwritten])
def test_who_returns_no_state_fails(tmp_path, function):
    with asked(tmp_path, function) as found, pytest.raises(InputError, match=r"fails on 8 of 8"):
        values(found, function, state="s")


# -- randomness --------------------------------------------------------------------------------


def test_randomness_follows_from_secret_unit_and_call_alone(tmp_path):
    with asked(tmp_path, drawn) as found:
        first, second = values(found, drawn, high=1), values(found, drawn, high=1)
    assert len({*first.values(), *second.values()}) == 6
    for rows in (ROWS[::-1], ROWS[2:], [*ROWS, {"who": "aaa"}, {"who": "yve", "age": "3"}]):
        with asked(tmp_path, drawn, rows=rows) as found:
            again = values(found, drawn, high=1)
            assert {n: v for n, v in again.items() if n in first} == {
                n: v for n, v in first.items() if n in again
            }
    with asked(tmp_path, drawn, secret=bytes(32)) as found:
        assert values(found, drawn, high=1)["ann"] not in first.values()


def test_a_seed_of_one_unit_is_that_of_its_name_not_of_its_place(tmp_path):
    """Removing the first unit moves all codes by one."""
    with asked(tmp_path, drawn) as found:
        whole = values(found, drawn, high=1)
    with asked(tmp_path, drawn, rows=ROWS[2:]) as found:
        assert values(found, drawn, high=1) == {name: whole[name] for name in ("ben", "zed")}


# -- refusals ----------------------------------------------------------------------------------


class Methods:
    def method(self, records, rng):
        return 1.0


NO_FUNCTION = (
    "function is {}; it must be one that is defined by def at the top of a file of the code."
)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda records, rng: 1.0, "'<lambda>'"),
        (Methods.method, "'Methods.method'"),
        (Methods().method, "'Methods.method'"),
        (len, "'len'"),
        (functools.partial(mean_age), "''"),
        (np.mean, "'mean'"),
        (3, "''"),
    ],
)
def test_what_is_no_function_of_the_code_is_refused(tmp_path, function, name):
    with asked(tmp_path, mean_age) as found, pytest.raises(InputError) as refused:
        values(found, function)
    assert str(refused.value) == NO_FUNCTION.format(name)


def test_a_function_that_is_not_declared_is_refused(tmp_path):
    with asked(tmp_path, mean_age) as found, pytest.raises(InputError) as refused:
        values(found, drawn)
    assert str(refused.value) == (
        "'drawn' is not a function that the subject declares; list it in functions."
    )
    with asked(tmp_path) as found, pytest.raises(InputError, match="declares no functions"):
        values(found, drawn)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"low": 2, "high": 1}, "low is above high"),
        ({"low": 0.1, "high": 0.9, "step": 1}, "no step lies between them"),
        ({"step": 0}, "step is 0"),
        ({"step": math.inf}, "per_unit takes only finite numbers"),
        ({"step": 1e-300}, "step is 1e-300; it must be from 1e-15 to 1e15."),
        ({"low": -1e300, "high": 0}, "take a larger step"),
        ({"low": [0, 1]}, "low does not have the shape of the value"),
        ({"default": [0, 0]}, "default does not have the shape"),
        ({"default": math.nan}, "per_unit takes only finite numbers"),
        ({"shape": [2, 2]}, "shape is [2, 2]"),
        ({"shape": [0]}, "shape is 0"),
        ({"shape": [10**9]}, "entries are allowed"),
        ({"state": "x" * 101}, "it must be a name, or empty"),
        ({"state": 3}, "it must be a name, or empty"),
        ({"low": "a"}, "low is 'a'"),
        ({"low": True}, "low is True"),
    ],
)
def test_a_wrong_argument_is_refused_before_a_function_runs(tmp_path, arguments, sentence):
    with asked(tmp_path, look) as found:
        SEEN.clear()
        with pytest.raises(InputError) as refused:
            values(found, look, **arguments)
        assert sentence in str(refused.value)
        assert "\n" not in str(refused.value)
        assert SEEN == []


@pytest.mark.parametrize("function", [raises, leaves, text])
def test_a_function_that_fails_on_all_made_up_units_is_refused(tmp_path, function):
    with asked(tmp_path, function) as found:
        with pytest.raises(InputError) as refused:
            values(found, function)
        assert f"function {function.__name__} fails on 8 of 8 made-up units: " in str(refused.value)
        assert found.operations.owner == {}


def test_a_function_is_of_rows_of_the_table(tmp_path):
    with asked(tmp_path, mean_age) as found:
        rows = found.data.per_unit(mean_age, low=0, high=9).rows()
        for some in (rows, rows.filter("value > 3"), rows.with_columns(age="value").group_rows(1)):
            with pytest.raises(InputError, match="call a function on rows of the table"):
                some.per_unit(mean_age, low=0, high=9)


def test_a_way_to_call_is_tried_once(tmp_path):
    with asked(tmp_path, look, scaled) as found:
        SEEN.clear()
        found.data.per_unit(look, low=0, high=1)
        assert len(SEEN) == 8 + 3
        found.data.per_unit(look, low=0, high=2)
        assert len(SEEN) == 8 + 3 + 3
        with pytest.raises(InputError, match="fails on 8 of 8 made-up units: TypeError: "):
            values(found, scaled, parameters={"unknown": 1})


def test_made_up_units_are_the_same_whatever_the_rows(tmp_path):
    seen = []
    for rows in (ROWS, ROWS[:1], []):
        with asked(tmp_path, look, rows=rows) as found:
            SEEN.clear()
            found.data.per_unit(look, low=0, high=1)
            seen.append(json.dumps(SEEN[:8]))
    assert seen[0] == seen[1] == seen[2]


# -- sealed ------------------------------------------------------------------------------------

PROJECT = """
from dataclasses import dataclass
from dpaudit import *
import functions

@dataclass(frozen=True)
class Learn(SealedSubject):
    functions = (functions.slope, functions.seen, functions.drawn)

    def table(self):
        return Table("rows.csv", "who", {"age": {"type": "integer", "range": [0, 110]}})

    def plan(self):
        about = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
        use = lambda at: Invocation.bounded(Laplace(9.0), Contribution(9.0, rows=1), *about, at=at)
        return Plan.of(*map(use, ("slope", "seen", "again", "drawn")))

    def claim(self):
        return Claim(9.0)

    def run(self, data, ledger, rng):
        told = {}
        for at, function, more in (
            ("slope", functions.slope, {"parameters": {"power": 2}}),
            ("seen", functions.seen, {"state": "n"}),
            ("again", functions.seen, {"state": "n"}),
            ("drawn", functions.drawn, {}),
        ):
            vectors = data.per_unit(function, low=0, high=9, step=0.25, **more)
            vectors.tell_owner(at)
            told[at] = float(ledger.sum(vectors, at=at))
        return RunResult(told)
"""
FUNCTIONS = """
import numpy as np

def slope(records, rng, power=1):
    x = np.array(records["age"], dtype=float)
    if x.sum() == 101:
        raise ValueError("a value that nobody may see: 101")
    return (x**power).mean() / 1000

def seen(records, rng, state):
    state = state or {"calls": 0}
    state["calls"] += len(records["age"])
    return state["calls"], state

def drawn(records, rng):
    return rng.random()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "learn.py").write_text(PROJECT)
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "rows.csv").write_text("who,age\nann,20\nann,30\nben,40\nzed,101\n")
    return folder


def test_a_sealed_run_gives_what_an_unsealed_one_gives(project, tmp_path, monkeypatch, capfd):
    if why := sandbox.lacking():
        pytest.skip(why)
    monkeypatch.syspath_prepend(str(project))
    name = f"{project / 'learn.py'}:Learn"
    sealed, files = run_subject(name, (), None, 1, tmp_path / "sealed")
    assert capfd.readouterr().err.count("101") == 0
    owner = json.loads(files[-1].read_text())["summary"]
    _, files = run_target(find_target(name, {}), "", tmp_path / "open", RunOptions(seed=1))
    other = json.loads(files[-1].read_text())["summary"]
    means = {"slope": (0.75 + 1.5) / 3, "seen": 4 / 3, "again": 8 / 3}
    for told in (owner, other):
        assert {at: told[at] for at in means} == pytest.approx(means, abs=1e-12)
        assert 0 <= told["drawn"] <= 1
        assert told["units with the default of slope"] == 1
        assert told["units with the default of seen"] == 0
    assert sealed.run is not None
    assert sealed.seal is not None
    assert list(sealed.seal.functions) == [f"functions.py:{n}" for n in ("slope", "seen", "drawn")]
    again, _ = run_subject(name, (), None, 1, tmp_path / "again")
    assert again.run["summary"] == sealed.run["summary"]


def test_files_of_functions_unseal_no_run(project, tmp_path, monkeypatch):
    """Who writes files for which memory is short would else have the rows."""
    if why := sandbox.lacking():
        pytest.skip(why)
    monkeypatch.syspath_prepend(str(project))
    own = sealing.boot
    ended = "import ast; ast.parse = lambda *_: bytearray(2**60)\nmain(int"

    def boot(module: str) -> str:
        words = own(module)
        return words.replace("main(int", ended) if module.endswith("template") else words

    monkeypatch.setattr(sealing, "boot", boot)
    with pytest.raises(UnsupportedError, match="processes of functions cannot be made"):
        run_subject(f"{project / 'learn.py'}:Learn", (), None, 1, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_project_is_sealed_whose_folder_holds_what_code_may_read(project, tmp_path, monkeypatch):
    """As one with its Python packages in ``.venv``; it would else have run without a seal."""
    if why := sandbox.lacking():
        pytest.skip(why)
    monkeypatch.syspath_prepend(str(project))
    (project / "inside").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(project / "inside"))  # for the copy of the code
    name = f"{project / 'learn.py'}:Learn"
    certificate, _ = run_subject(name, (), None, 1, tmp_path / "out", sealed=True)
    assert certificate.seal is not None
    assert "EACCES" in certificate.seal.tries["list what is private"]


def test_there_is_no_run_where_the_code_reaches_what_is_private(project, tmp_path, monkeypatch):
    """Not even one without a seal, which this machine could have."""
    if why := sandbox.lacking():
        pytest.skip(why)
    monkeypatch.syspath_prepend(str(project))
    with pytest.raises(UnsupportedError, match="must not be able to do"):
        run_subject(f"{project / 'learn.py'}:Learn", (), json.__file__, 1, tmp_path / "out")
    assert not (tmp_path / "out").exists()
