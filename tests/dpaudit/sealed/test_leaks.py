"""Nothing but declared releases tells a table from its neighbour.

Random requests are answered in one process, on a table and on neighbours of it: whatever is said
but for released values must be equal. Code that tries to leak (``leaks/``) runs truly sealed.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    BinaryTree,
    ContinualGaussian,
    Contribution,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Group,
    Invocation,
    Laplace,
    Ledger,
    Membership,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    Table,
    TrustModel,
)
from dpaudit.base.errors import DpAuditError
from dpaudit.mechanisms import StableHistogram
from dpaudit.sealed import sandbox
from dpaudit.sealed.operations import FatalError, Operations
from dpaudit.sealed.sealable import require_sealable
from dpaudit.sealed.store import ReadTable, opened, tables_to_try
from dpaudit.sealed.sums import Side, trial_of
from dpaudit.workflow.running import run_subject

pytest.importorskip("duckdb")

SHOPS = ("bakery", "o'hara", "chemist")
ODD = "am\"ou'nt"
"""A name with both quotes."""
ROWS = [
    (f"p{n:02d}", SHOPS[n % 2], str(18 + n % 40), f"{n}.25", f"k{n % 5}", f"2024-0{1 + n % 9}-11")
    for n in range(40)
    for _ in range(1 + n % 3)
]
LONER = [("zed", "chemist", "110", "999.99", "only zed", "1999-12-31")] * 30
"""All that is extreme in the table is of one unit."""
ILL = [
    ("ill", "", "no number", "1e999", "\u2028'; DROP TABLE stored; --", "0000-99-99"),
    ("ill",) * 6,
]
TABLES = {
    "whole": [*ROWS, *LONER, *ILL],
    "without zed": [*ROWS, *ILL],
    "without ill": [*ROWS, *LONER],
    "without p00": [row for row in (*ROWS, *LONER, *ILL) if row[0] != "p00"],
    "empty": [],
}
ROSTER = tuple(dict.fromkeys([*(row[0] for row in TABLES["whole"] if row[0]), "nobody"]))
COLUMNS = {
    "shop": {"type": "text", "values": list(SHOPS)},
    "age": {"type": "integer", "range": [0, 110]},
    ODD: {"type": "number", "range": [0, 1000], "step": 0.01},
    "key": {"type": "text"},
    "day": {"type": "date", "range": ["1990-01-01", "2030-01-01"]},
}
THOROUGH = os.environ.get("DPAUDIT_TESTS") == "thorough"
ABOUT = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)
MANY = {"count": 10_000, "total": 10_000}


def central() -> Plan:
    """One invocation of each kind that a sealed run releases."""

    def bounded(mechanism: Any, bound: float, rows: int | None, at: str, **more: Any) -> Invocation:
        part = Contribution(bound, rows=rows)
        return Invocation.bounded(mechanism, part, *ABOUT, at=at, **(MANY | more))

    groups = [
        bounded(DiscreteLaplace(9.0), 3, 3, shop, group=Group(shop, Membership.VALUE))
        for shop in SHOPS
    ]
    choice = ExponentialMechanism(0.1, utility_sensitivity=3.0)
    return Plan.of(
        bounded(Laplace(9.0), 5.0, 3, "sum"),
        bounded(DiscreteLaplace(9.0), 3, 3, "count"),
        bounded(DiscreteLaplace(9.0), 3, 3, "once", count=1, total=1),
        bounded(choice, 1.0, 3, "quantile"),
        bounded(StableHistogram(9.0, threshold=50, key_sensitivity=2), 1, 2, "keys"),
        Invocation(choice, 1.0, *ABOUT, at="choice", **MANY),
        Invocation(
            ContinualGaussian(sigma=9.0, factorization=BinaryTree(8), participations=2),
            5.0,
            *ABOUT,
            at="stream",
            **MANY,
        ),
        bounded(Gaussian(9.0), 5.0, None, "sampled", sampling=PoissonSampling(0.5)),
        *groups,
    )


def local() -> Plan:
    """Answers of a public roster."""
    facts = (PrivacyUnit("person"), ReplaceOne(), TrustModel.LOCAL)
    report = RandomizedResponse(0.8, k=3)
    return Plan.of(
        Invocation(Laplace(9.0, clip=(0.0, 10.0)), 10.0, *facts, at="answer", count=9, total=9999),
        Invocation(Laplace(9.0), 5.0, *facts, at="unclipped", count=9, total=9999),
        Invocation(report, 1.0, *facts, at="report", count=9, total=9999),
    )


class Tables:
    """All tables, opened once."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.opened: dict[str, tuple[ReadTable, Any, Any]] = {}
        for name, rows in TABLES.items():
            path = folder / f"{name}.csv"
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([("person", *COLUMNS), *rows])
            declared = Table(str(path), "person", COLUMNS, roster=ROSTER)
            table = ReadTable.of(declared.to_dict(), folder)
            tried = tables_to_try(table, central(), stack)
            self.opened[name] = table, tried, opened(table, b"the same", stack)

    def operations(self, name: str, plan: Plan) -> Operations:
        table, tried, rows = self.opened[name]
        require_sealable(plan, table)
        real = Ledger(plan, rng=np.random.default_rng(1))
        trials = [Side(each, trial_of(real)) for each in tried]
        return Operations(plan, table, trials, Side(rows, real))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ExitStack() as stack:
        yield Tables(tmp_path_factory.mktemp("tables"), stack)


RELEASES = {
    "sum",
    "mean",
    "count",
    "histogram",
    "quantile",
    "stable_histogram",
    "choose",
    "answers",
}
RELEASES |= {"add"}


def said(operations: Operations, request: dict[str, Any]) -> Any:
    """What is said to a request, without the released value."""
    try:
        answer = operations.answer(json.loads(json.dumps(request)))
    except FatalError:
        return "the run ends"
    json.dumps(answer, allow_nan=False)
    return shape_of(answer) if request.get("op") in RELEASES and "value" in answer else answer


def shape_of(answer: Any) -> Any:
    """What is public of a released value: of keys that nobody lists not even their number."""
    if isinstance(answer, list):
        return list(map(shape_of, answer))
    if not isinstance(answer, dict):
        return "a number"
    if "counts" in answer:
        return "counts"
    if "array" in answer:
        return np.shape(answer["array"]), answer["type"], answer["shape"]
    return {name: shape_of(answer[name]) for name in answer}


class Guesses:
    """Requests at random: many that are right, and many that are nearly so."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.known: dict[str, list[Any]] = {"rows": [0], "vectors": [0], "streams": [0]}

    def one_of(self, values: Any) -> Any:
        listed = list(values)
        return listed[int(self.rng.integers(len(listed)))]

    def handle(self, kind: str) -> Any:
        if self.rng.random() < 0.1:
            return self.one_of([-1, 10**6, 1.0, "0", None, True, [0], {}, *self.known["rows"]])
        return self.one_of(self.known[kind][-6:])

    def request(self) -> dict[str, Any]:
        op = self.one_of([*ARGUMENTS, *RELEASES, "vector", "group_rows", "partition", "sample"])
        given = {name: self.one_of(values) for name, values in ARGUMENTS[op].items()}
        if "at" in given and self.rng.random() < 0.6:
            given["at"] = FITTING.get(op, given["at"])
        if self.rng.random() < 0.1 and given:
            given[self.one_of(given)] = self.one_of(ODD_VALUES)
        if self.rng.random() < 0.05 and given:
            del given[self.one_of(given)]
        own = {"op": op, "of": self.handle("vectors" if op in OF_VECTORS else "rows")} | given
        return own | ({"stream": self.handle("streams")} if op == "add" else {})

    def learn(self, op: str, answer: Any) -> None:
        """Handles in an answer to a description."""
        value = answer.get("value") if isinstance(answer, dict) and op not in RELEASES else None
        if isinstance(value, dict):
            self.known["vectors"].append(value["handle"])
        elif isinstance(value, list):
            self.known["rows"] += [number for _, number in value]
        elif op in ("filter", "with_columns", "group_rows", "sample") and value:
            self.known["rows"].append(value)
        elif op == "stream" and value:
            self.known["streams"].append(value)


OF_VECTORS = {"sum", "mean", "linear", "encode", "quantile", "answers", "add"}
FITTING = {"count": "count", "histogram": "count", "sum": "sum", "quantile": "quantile"}
FITTING |= {"stable_histogram": "keys", "choose": "choice", "sample": "sampled"}
FITTING |= {"stream": "stream", "answers": "answer"}
ODD_VALUES = [
    None,
    True,
    0,
    -1,
    1.5,
    2**63,
    10**400,
    "",
    "\x00",
    "\ud800",
    "'",
    '"',
    "; DROP TABLE stored; --",
    [],
    {},
    [[]],
    [None],
    ["age", None],
    {"column": "age"},
    "age" * 1000,
    "code",
    "place",
    "u",
    "units",
]
LABELS = [
    "sum",
    "count",
    "once",
    "quantile",
    "keys",
    "choice",
    "stream",
    "sampled",
    *SHOPS,
    "",
    "no",
]
TEXTS = [
    "age",
    "age + 1",
    "age * age",
    "-age",
    "age // 7",
    "age % 5",
    '"am""ou\'nt"',
    "shop",
    "key",
    "day",
    "CASE WHEN shop = 'chemist' THEN 110 ELSE 0 END",
    "COALESCE(age, 7)",
    "extra",
    "YEAR(day)",
    "age > 100",
    "shop = 'o''hara'",
    "key IS NULL",
    "LOWER(key) = 'only zed'",
    "day < '2000-01-01'",
    "age IN (18, 110)",
    "shop = 'a' OR 1 = 1",
    "(SELECT count(*) FROM units)",
    "count(*)",
    "1/0",
    "age; SELECT 1",
    "age -- comment",
    "random()",
    "read_csv('/etc/passwd')",
    "age > (",
    "code = 0",
    "CAST(shop AS INTEGER)",
    "error('x')",
    "row_number() OVER ()",
    "9" * 30,
    "1e99",
    "u = 'zed'",
]
BY = [
    "shop",
    "key",
    "age",
    {"column": "age", "edges": [0, 50, 100]},
    ["shop", "shop"],
    {"a": 1},
    [],
]
BY += [{"column": ODD, "edges": [0, 500.005, 1000]}, ["shop", {"column": "age", "edges": [1, 2]}]]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "filter": {"condition": TEXTS},
    "with_columns": {
        "columns": [{"extra": text} for text in TEXTS] + [{"age": "age"}, {"'": "age"}]
    },
    "group_rows": {"most": [1, 2, 3, 3, 100, 10**30]},
    "partition": {
        "column": ["shop", "shop", "age", "key", ODD],
        "keys": [None, list(SHOPS), ["o'hara", "'; --"], [18, 110], ["k1"], ["k1", "k1"], "shop"],
    },
    "vector": {
        "columns": [
            *["age", "age * age - 50", '"am""ou\'nt"'] * 10,
            *TEXTS,
            ["age"],
            ["age", "age"],
            ["age", '"am""ou\'nt"'],
            TEXTS,
        ]
    },
    "linear": {
        "matrix": [
            [[1]],
            *[[[2, -1], [0, 1]]] * 3,
            [[1, 1]],
            [[1, -1], [2, 3]],
            [[2**53, 1]],
            [[2**52, -(2**52)]],
            [[0.5, 1]],
        ]
    },
    "encode": {
        "by": ["clip", "clip", "outer", "linear", ODD],
        "options": [*[{}] * 3, *[{"bound": 60}] * 3, {"bound": 70, "norm": "l1"}, {"bound": 1e-9}],
    },
    "sum": {"at": LABELS},
    "mean": {"total": LABELS, "count": LABELS},
    "count": {"at": LABELS},
    "histogram": {"by": BY, "at": LABELS},
    "quantile": {
        "share": [0.5, 0.9, 1, 2],
        "candidates": [*[[0, 50, 100]] * 5, [1], [2, 1], ["1", "2"], [True], [10**400], [[1, 2]]],
        "at": ["quantile", *LABELS],
    },
    "stable_histogram": {
        "column": ["key", "shop", "age", "day", ODD, "u"],
        "at": ["keys", *LABELS],
    },
    "choose": {"by": BY, "at": ["choice", *LABELS]},
    "answers": {"default": [0, 1, [0], [1, 2], "0", 1e300], "at": ["answer", "report", *LABELS]},
    "sample": {"at": ["sampled", *LABELS]},
    "stream": {"shape": [[], [2], [1], [0], [-1], [10**9]], "at": ["stream", *LABELS]},
    "add": {},
    "tell_owner": {"name": ["rows", "a", "", "x" * 500, "\u2028"]},
    "left": {},
    "__init__": {},
    "both": {},
    "answer": {},
    "owner": {},
}


@pytest.mark.parametrize("plan", [central(), local()], ids=["central", "local"])
@pytest.mark.parametrize("seed", range(200 if THOROUGH else 2))
def test_random_requests_are_answered_alike(tables: Tables, plan: Plan, seed: int) -> None:
    every = {name: tables.operations(name, plan) for name in TABLES}
    guesses = Guesses(seed)
    for _ in range(150):
        request = guesses.request()
        found = {name: said(operations, request) for name, operations in every.items()}
        first = found["whole"]
        assert all(answer == first for answer in found.values()), (request, found)
        assert first != "the run ends", request
        guesses.learn(request["op"], first)


# -- code that tries to leak -----------------------------------------------------------------------

LEAKS = Path(__file__).with_name("leaks")
TABLE = "person,age\nann,41\nben,44\nzed-the-loner,101\nzed-the-loner,102\n"
NEIGHBOUR = "person,age\nann,41\nben,44\n"


@pytest.fixture(scope="module")
def sealable() -> None:
    """Skips where nothing is sealed."""
    if why := sandbox.lacking():
        pytest.skip(why)


def attempts() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("leaks_attempts", LEAKS / "attempts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.ATTEMPTS


def left_by(folder: Path, table: str, capfd: Any) -> dict[str, Any]:
    """All that leaves a sealed run of all attempts."""
    (folder / "rows.csv").write_text(table)
    out = folder / "out"
    setting = f"path={folder / 'rows.csv'}"
    certificate, _ = run_subject(f"{folder / 'attempts.py'}:Attempts", (setting,), None, 1, out)
    said = capfd.readouterr()
    files = [path for path in sorted(out.iterdir()) if path.is_file()]
    found = {path.name: path.read_text() for path in files} | {"out": said.out, "err": said.err}
    shutil.rmtree(out)
    assert certificate.run is not None
    return found | {"observed": certificate.run["summary"]}


def test_nothing_that_code_tries_tells_a_table_from_its_neighbour(
    sealable: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(LEAKS / "attempts.py", tmp_path)
    found = left_by(tmp_path, TABLE, capfd)
    wrong = {
        name: found["observed"][name]
        for name, (_, stopped_by) in attempts().items()
        if re.search(stopped_by, found["observed"][name]) is None
    }
    assert wrong == {}
    assert len(attempts()) >= 60
    assert "the-loner" not in json.dumps(found)
    assert left_by(tmp_path, NEIGHBOUR, capfd) == found


REFUSALS = {
    "Itself": "file 'rows.csv' is the table itself; code may not read it.",
    "Linked": "file 'linked.csv' is the table itself; code may not read it.",
    "HardLinked": "file 'hard.csv' is the table itself; code may not read it.",
    "Around": "file 'folder/../rows.csv' is the table itself; code may not read it.",
    "TooLong": "rows.csv' does not exist, or is not a file.",
    "Outside": "file '../outside.csv' is not a file in the folder of the code; name one.",
    "Absolute": "file '/etc/hostname' is not a file in the folder of the code; name one.",
    "Proc": "file '/proc/self/environ' is not a file in the folder of the code; name one.",
    "Folder": "file '.' is not a file in the folder of the code; name one.",
    "NoText": "file 'rows.csv\\x00' is not a file in the folder of the code; name one.",
    "OfTheOwner": "file 'own.html' has mode 0600, but everybody must be able to read a public file",
    "OfAnOlderRun": "file 'out/owner.json' is the owner's alone; it cannot be public.",
    "Code": "code_rows.py' is the table itself; code may not read it.",
    "Foreign": "mechanism is 'unnoisy'",
    "Disguised": "which is not a registered mechanism",
    "JunkClaim": "epsilon is '1'; it must be a finite number of at least 0.",
    "JunkFindings": "finding lacks the key 'severity', which it needs.",
    "JunkFact": "finding is 5; it must be a table.",
    "JunkPlan": "invocation lacks the key 'mechanism', which it needs.",
    "HalfCharacter": "the process of the code sent a result that no file can hold",
    "JunkResult": "result is a int; it must be of another type.",
    "JunkSummary": "the process of the code published something that is not a result.",
    "JunkSeries": "the process of the code sent a result that no file can hold",
    "Nothing": "is declared 1 times and ran 0 times",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with code, the table, and many ways to the table."""
    folder = tmp_path_factory.mktemp("project") / "in"
    (folder / "folder").mkdir(parents=True)
    shutil.copy(LEAKS / "declarations.py", folder)
    (folder / "out").mkdir()
    secrets = ("rows.csv", "code_rows.py", "../outside.csv", "own.html", "out/owner.json")
    for name in secrets:
        (folder / name).write_text("'of code'" if name.endswith(".py") else TABLE)
    (folder / "own.html").chmod(0o600)
    (folder / "linked.csv").symlink_to("rows.csv")
    (folder / "linked_code.csv").symlink_to("code_rows.py")
    os.link(folder / "rows.csv", folder / "hard.csv")
    return folder


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_declared_opens_no_way(
    sealable: None, project: Path, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DpAuditError, match=re.escape(REFUSALS[name])) as refused:
        run_subject(f"{project / 'declarations.py'}:{name}", (), None, 1, tmp_path / "out")
    said = capfd.readouterr()
    assert "the-loner" not in f"{refused.value}{said.out}{said.err}"
    released = name in ("JunkResult", "JunkSummary", "JunkSeries")  # it stays charged
    assert (tmp_path / "out" / "ledger.jsonl").exists() is released


def test_the_first_plan_holds(sealable: None, project: Path, tmp_path: Path) -> None:
    """A plan that is another one at each call is what was certified."""
    name = f"{project / 'declarations.py'}:Changing"
    certificate, _ = run_subject(name, (), None, 1, tmp_path / "out")
    (invocation,) = certificate.plan.invocations
    assert invocation.mechanism == Laplace(10.0)
