"""Code that returns may have left threads, and may have asked to be called later."""

import atexit
import importlib
import subprocess
import sys
import threading
import time

from dpaudit.rehearsal.watching import SETTLE, SideEffects, _written


def seen(code, known=None):
    outside = []
    with (known or SideEffects()).seen(outside):
        code()
    return outside


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
    side_effects, stop = SideEffects(), threading.Event()
    thread = threading.Thread(target=stop.wait)
    begun = time.monotonic()
    assert seen(thread.start, side_effects) == []
    first = time.monotonic()
    for _ in range(3):
        assert seen(lambda: None, side_effects) == []
    assert first - begun >= SETTLE * 0.9
    assert time.monotonic() - first < first - begun
    assert side_effects.is_new(thread.native_id)
    stop.set()
    thread.join()


def test_a_file_that_was_open_before_is_seen_where_it_is_written(tmp_path):
    for buffering in (0, -1):
        with (tmp_path / f"log {buffering}").open("ab", buffering) as log:
            log.write(b"before")
            (told,) = seen(lambda log=log: log.write(b"a value"))
            assert told == "writes to a file that was open before"
            assert seen(lambda: None) == []
    with (tmp_path / "log").open("a") as log:
        assert len(seen(lambda: print("a value", file=log))) == 1
        assert len(seen(lambda: print("a value", file=log))) == 1


def test_what_others_write_to_the_same_file_is_theirs(tmp_path):
    path = tmp_path / "shared"
    other = "import sys; open(sys.argv[1], 'a').write('theirs')"
    with path.open("a"):
        assert seen(lambda: subprocess.run([sys.executable, "-c", other, path], check=True)) == []
    assert path.read_text() == "theirs"


def test_where_this_process_was_told_to_write_is_no_deed(tmp_path):
    path = tmp_path / "output"
    code = """
import os, sys
from dpaudit.rehearsal.watching import SideEffects
kept, seen = os.dup(1), []
with SideEffects().seen(seen):
    os.write(kept, b"progress")
print(seen)
"""
    with path.open("w") as output:
        subprocess.run([sys.executable, "-c", code], stdout=output, check=True)
    assert path.read_text() == "progress[]\n"


def test_files_that_were_closed_are_looked_at_once(tmp_path, monkeypatch):
    """They may stay in memory for as long as they like; to look at all objects takes long."""
    looks = []
    monkeypatch.setattr("gc.get_objects", lambda: looks.append(1) or [closed, opened])
    closed = (tmp_path / "closed").open("w")
    closed.close()
    with (tmp_path / "opened").open("w") as opened:
        for _ in range(5):
            _written()
    assert len(looks) <= 1
