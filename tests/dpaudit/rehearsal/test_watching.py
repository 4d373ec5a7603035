"""Ways around the ledger are seen where the code takes them.

What a run leaves behind in its process answers for no other run unseen.
"""

import importlib
import os
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    Contribution,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.auditing.replaying.replay import Comparison, ReplayReport
from dpaudit.base.finding_table import FindingTable
from dpaudit.project import Move
from dpaudit.rehearsal.rehearse import rehearse
from dpaudit.rehearsal.watching import Watch, alike, apart, first_apart, neighbours_apart, watched


def opens(folder):
    (folder / "x").write_text("1")


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (opens, "writes a file"),
        (lambda folder: (folder / "sub").mkdir(), "makes a folder"),
        (lambda folder: subprocess.run(["true"], check=True), "starts a process"),
        (lambda folder: sqlite3.connect(folder / "d").close(), "opens a database"),
        (lambda folder: (folder / "there").unlink(), "removes a file"),
        (lambda folder: os.truncate(folder / "there", 0), "changes a file"),
        (lambda folder: os.putenv("DPAUDIT_SEEN", "1"), "changes the environment"),
    ],
)
def test_what_reaches_the_world_is_named(tmp_path, deed, words):
    (tmp_path / "there").write_text("1")
    watch = Watch()
    with watched(watch):
        deed(tmp_path)
    found = watch.findings()
    assert [each.rule for each in found] == ["beside-the-ledger"]
    assert f"The run {words} at {__name__}:" in found[0].message


def test_a_database_in_memory_is_no_way_out():
    watch = Watch()
    with watched(watch):
        sqlite3.connect(":memory:").close()
    assert watch.findings() == ()


def test_what_is_written_while_a_module_is_loaded_is_no_finding(tmp_path, monkeypatch):
    (tmp_path / "writing_module.py").write_text(f"open({str(tmp_path / 'x')!r}, 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    watch = Watch()
    with watched(watch):
        importlib.import_module("writing_module")
    assert watch.findings() == ()


def test_what_a_new_thread_does_is_the_run_s_deed(tmp_path):
    watch = Watch()
    with watched(watch):
        thread = threading.Thread(target=lambda: opens(tmp_path))
        thread.start()
        thread.join()
    pooled = Watch()
    with ThreadPoolExecutor(1) as pool, watched(pooled):
        pool.submit(opens, tmp_path)
    for each in (watch, pooled):
        assert [found.rule for found in each.findings()] == ["beside-the-ledger"]
        assert "writes a file" in each.findings()[0].message


def test_what_an_older_thread_does_is_somebody_else_s(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        watch = Watch()
        with watched(watch):
            pool.submit(opens, tmp_path).result()
    assert watch.findings() == ()


NOISE = Laplace(1.0)
KEPT = {}
ROWS = np.random.default_rng(0).uniform(0, 1, 20)


@cache
def by_place(place):
    return KEPT["rows"][place]


@cache
def kernel(size):
    return np.exp(-np.abs(np.subtract.outer(np.arange(size), np.arange(size))))


@dataclass(frozen=True)
class Keeps(Subject):
    """A sum of rows within [0, 1], by way of something that is kept."""

    what: str = ""
    own: dict = field(default_factory=dict, init=False, compare=False)

    def plan(self):
        facts = (PrivacyUnit("row"), ReplaceOne(), TrustModel.CENTRAL)
        return Plan.of(Invocation(NOISE, 1.0, *facts, at="sum"))

    def run(self, rows, ledger, rng):
        values = [self.kept(place, row) for place, row in enumerate(rows)]
        total = sum(values) * (10.0 if self.what.endswith("wrong") else 1.0)
        return RunResult({"sum": float(ledger.release(NOISE, total, at="sum"))})

    def kept(self, place, row):
        row = min(1.0, max(0.0, row))
        if self.what.startswith("global"):
            return KEPT.setdefault(place, row)
        if self.what.startswith("attribute"):
            return self.own.setdefault(place, row)
        if self.what.startswith("cache"):
            KEPT["rows"] = KEPT.get("rows", {}) | {place: row}
            return by_place(place)
        return row * kernel(len(ROWS))[place % len(ROWS), place % len(ROWS)]


@pytest.fixture(autouse=True)
def nothing_kept():
    KEPT.clear()
    by_place.cache_clear()


@pytest.mark.parametrize("what", ["global", "attribute", "cache"])
def test_what_is_kept_of_data_is_found_though_each_run_alone_is_right(what):
    (finding,) = rehearse(Keeps(what), ROWS).findings
    assert finding.rule == "keeps-state"
    assert finding.severity.value == "error"


@pytest.mark.parametrize("what", ["global", "attribute", "cache"])
def test_what_is_kept_hides_no_mistake(what):
    found = {each.rule for each in rehearse(Keeps(f"{what}, wrong"), ROWS).findings}
    assert found == {"keeps-state", "sensitivity-understated"}


def test_a_cache_of_public_values_is_no_finding():
    kernel.cache_clear()
    assert rehearse(Keeps(), ROWS).findings == ()
    assert rehearse(Keeps(), ROWS).findings == ()


@dataclass(frozen=True)
class Mean(Subject):
    """The mean of the first run is shown by all later ones."""

    def plan(self):
        facts = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        return Plan.of(Invocation.bounded(NOISE, Contribution(1.0), *facts, at="sum"))

    def run(self, rows, ledger, rng):
        mean = KEPT.setdefault("mean", float(np.mean(rows)) if len(rows) else 0.0)
        return RunResult({"sum": ledger.sum(rows), "mean": mean})


def test_a_result_that_is_kept_is_found():
    found = {each.rule for each in rehearse(Mean(), ROWS).findings}
    assert found == {"keeps-state", "result-not-from-releases"}


def test_a_run_apart_leaves_nothing_here_and_gives_what_it_would_give_here():
    run = first_apart(Keeps("global"), ROWS, 3).run
    assert KEPT == {}
    (step,) = run.steps
    assert step.value == pytest.approx(ROWS.sum())
    made = neighbours_apart(
        first_apart(Keeps("global"), ROWS, 3),
        iter([Move(ROWS[:1], "own base", base=ROWS), Move([1.0, *ROWS[1:]], "first is 1")]),
    )
    assert list(made) == [1]
    assert made[1].comparisons[0].observed == pytest.approx(1.0 - ROWS[0])


def test_what_fails_apart_gives_nothing_and_says_nothing(capfd):
    def prints():
        os.write(1, b"out")
        return 1

    for call in (lambda: 1 / 0, lambda: os._exit(3), lambda: exit(2), lambda: lambda: None):
        assert apart(call) is None
    start = time.monotonic()
    assert apart(lambda: time.sleep(60), 0.05) is None
    assert time.monotonic() - start < 30
    assert apart(prints) == 1
    assert capfd.readouterr().out == ""


def test_the_watch_sees_what_is_done_apart(tmp_path):
    watch = Watch()
    assert apart(lambda: (tmp_path / "own").write_text("x"), watch=watch) == 1
    assert [each.rule for each in watch.findings()] == ["beside-the-ledger"]


def test_comparisons_are_alike_up_to_rounding():
    def report(*observed, **facts):
        made = tuple(Comparison("sum", None, "here", 1.0, each) for each in observed)
        return ReplayReport(made, facts.pop("findings", ()), **facts)

    infinite = float("inf")
    assert alike(report(0.5, infinite), report(0.5 + 1e-9, infinite))
    found = FindingTable("dpaudit.rehearsal.x")("keeps-state")
    for other in (
        report(0.5),
        report(0.5, 1.0),
        report(0.51, infinite),
        report(0.5, infinite, raised="ValueError"),
        report(0.5, infinite, findings=(found,)),
    ):
        assert not alike(report(0.5, infinite), other)
