"""Ways around the ledger are seen where the code takes them."""

import importlib
import os
import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpaudit.rehearsal.watching import Watch, watched


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
