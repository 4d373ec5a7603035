"""A bar where somebody sees it."""

import io
import re
import sys
import time

from dpaudit.auditing import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_bar_without_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("audit") as tell:
        assert tell is None


def terminal_of(monkeypatch, patience=-1.0):
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    monkeypatch.setattr("dpaudit.auditing.execution.PATIENCE", patience)
    monkeypatch.setenv("COLUMNS", "80")
    return shown


def test_a_bar_names_what_runs_with_rate_and_remaining_time(monkeypatch, capsys):
    terminal = terminal_of(monkeypatch)
    with progress_bar("noisy sum") as tell:
        for done in range(0, 1001, 100):
            tell(done, 2000)
            time.sleep(0.03)
        time.sleep(0.2)
    assert "noisy sum" in terminal.getvalue()
    assert re.search(r"1000 of 2000, [\d.e+]+/s, 0:00:\d\d left", terminal.getvalue())
    assert capsys.readouterr().out == ""


def test_what_is_counted_elsewhere_is_asked_for(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with progress_bar("the whole"), progress_bar("releases", lambda: (7, 9)) as tell:
        time.sleep(0.2)
        assert "7 of 9" in terminal.getvalue()
        assert "the whole" in terminal.getvalue()
        assert tell is not None


def test_what_is_quick_draws_nothing(monkeypatch):
    terminal = terminal_of(monkeypatch, patience=2.0)
    with progress_bar("quick") as tell:
        tell(1, 2)
    assert "quick" not in terminal.getvalue()
