"""Ways around the ledger are seen where the code takes them."""

import importlib
import inspect
import os
import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import Gaussian, Ledger, Plan
from dpaudit.rehearsal.watching import Watch, watched

NOISE = Gaussian(4.0)
PLAN = Plan.of(gaussian_invocation(mechanism=NOISE, at="sum"))


def test_the_ledger_of_the_rehearsal_is_no_finding():
    watch = Watch()
    with Ledger(PLAN, rng=np.random.default_rng(0)) as ledger, watched(watch):
        ledger.release(NOISE, 1.0, at="sum")
    assert watch.findings() == ()


def test_a_second_ledger_is_named_with_its_line():
    watch = Watch()
    with watched(watch):
        line = inspect.currentframe().f_lineno + 1
        Ledger(PLAN, rng=np.random.default_rng(0))
    (finding,) = watch.findings()
    assert finding.rule == "second-ledger"
    assert f"test_watching:{line}" in finding.message


def test_a_mechanism_beside_the_ledger_is_named():
    for use in (NOISE.release, lambda value, rng: NOISE.release_many(value, 3, rng)):
        watch = Watch()
        with watched(watch):
            use(1.0, np.random.default_rng(0))
        assert [finding.rule for finding in watch.findings()] == ["release-beside-the-ledger"]


def test_nothing_is_watched_afterwards():
    watch = Watch()
    with watched(watch):
        pass
    NOISE.release(1.0, np.random.default_rng(0))
    Ledger(PLAN, rng=np.random.default_rng(0))
    assert watch.findings() == ()


def opens(folder):
    (folder / "x").write_text("1")


def reads(folder):
    (folder / "there").read_text()


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (opens, "writes a file"),
        (lambda folder: (folder / "sub").mkdir(), "makes a folder"),
        (lambda folder: subprocess.run(["true"], check=True), "starts a process"),
        (lambda folder: sqlite3.connect(folder / "d").close(), "opens a database"),
        (reads, "reads a file"),
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
    rule = "reads-beside-load" if deed is reads else "beside-the-ledger"
    assert [each.rule for each in found] == [rule]
    assert f"The run {words} at {__name__}:" in found[0].message


def test_a_database_in_memory_is_no_way_out():
    watch = Watch()
    with watched(watch):
        sqlite3.connect(":memory:").close()
    assert watch.findings() == ()


def test_what_is_read_while_a_module_is_loaded_is_no_finding(tmp_path, monkeypatch):
    (tmp_path / "facts.txt").write_text("1")
    (tmp_path / "reading_module.py").write_text(f"open({str(tmp_path / 'facts.txt')!r}).close()")
    monkeypatch.syspath_prepend(tmp_path)
    watch = Watch()
    with watched(watch):
        importlib.import_module("reading_module")
    assert watch.findings() == ()


def test_what_a_new_thread_does_is_the_run_s_deed(tmp_path):
    watch = Watch()
    with watched(watch):
        threading.Timer(0.02, lambda: opens(tmp_path)).start()
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
