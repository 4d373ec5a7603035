"""A bar where somebody sees it."""

import io
import sys

from dpaudit.auditing import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_bar_without_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("audit") as tell:
        assert tell is None


def test_a_bar_names_what_runs_and_leaves_stdout_alone(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress_bar("noisy sum") as tell:
        for done in range(0, 2000, 100):
            tell(done, 2000)
    assert "noisy sum" in terminal.getvalue()
    assert capsys.readouterr().out == ""
