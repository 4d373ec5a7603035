"""Code that returns may have written to open files, and may have asked to be called later."""

import atexit
import importlib
import sqlite3
import threading
import time

import pytest

from dpaudit.auditing.rehearsal.left import SETTLE, Left


def seen(code, left=None):
    outside = []
    with (left or Left()).seen(outside):
        code()
    return outside


@pytest.mark.parametrize("buffering", [-1, 0])
def test_a_write_to_a_file_that_was_open_before_is_seen(tmp_path, buffering):
    with (tmp_path / "log").open("ab", buffering=buffering) as log:
        log.write(b"before")
        left = Left()
        assert seen(lambda: None, left) == []
        (told,) = seen(lambda: log.write(b"x"), left)
        assert told == "writes to a file that was open before"
        assert seen(lambda: None, left) == []


def test_a_database_that_was_open_before_is_seen(tmp_path):
    base = sqlite3.connect(tmp_path / "base", isolation_level=None)
    base.execute("create table t (v)")
    assert seen(lambda: base.execute("select * from t").fetchall()) == []
    assert len(seen(lambda: base.execute("insert into t values (1)"))) == 1
    base.close()


def test_files_open_for_reading_may_grow(tmp_path):
    (tmp_path / "data").write_text("1")
    with (tmp_path / "data").open() as data, (tmp_path / "data").open("a") as writer:
        left = Left()
        assert data.read() == "1"
        writer.close()
        assert seen(lambda: (tmp_path / "data").write_text("12"), left) == []


def test_calls_at_the_end_are_seen_but_for_those_of_imports(tmp_path, monkeypatch):
    try:
        (told,) = seen(lambda: atexit.register(print))
        assert told == "asks for a call at the end of the process"
        register = atexit.register
        assert len(seen(lambda: register(print))) == 1
    finally:
        atexit.unregister(print)
    (tmp_path / "ends_late.py").write_text("import atexit; atexit.register(int)")
    monkeypatch.syspath_prepend(tmp_path)
    assert seen(lambda: importlib.import_module("ends_late")) == []


def test_a_thread_that_stays_is_waited_for_once():
    left, stop = Left(), threading.Event()
    thread = threading.Thread(target=stop.wait)
    begun = time.monotonic()
    assert seen(thread.start, left) == []
    first = time.monotonic()
    for _ in range(3):
        assert seen(lambda: None, left) == []
    assert first - begun >= SETTLE * 0.9
    assert time.monotonic() - first < first - begun
    assert left.is_new(thread.native_id)
    stop.set()
    thread.join()
