"""The comparison with other libraries: this library's side of it, and what cannot be installed."""

from __future__ import annotations

import sys

import pytest

from tests.benchmarks import tables_peers

pytest.importorskip("duckdb")
pytest.importorskip("opendp")


@pytest.mark.pages
def test_numbers_and_the_whole_command_are_timed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["", "--rows", "2000", "--rounds", "1", "--peers"])
    assert tables_peers.main() == 0
    _, _, command, numbers = capsys.readouterr().out.splitlines()
    assert command.startswith("dpaudit release ")
    assert command.split()[-1] == "1.00"
    name, whole, work, held, _, one, counted = numbers.split()
    assert name == "dpaudit"
    assert 0 < float(work) < float(whole)
    assert float(held) > 50
    assert one == "1.00"
    assert 30 < float(counted.rstrip("%")) < 70


def test_a_library_without_what_it_needs_is_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(tables_peers.CannotRunError, match="needs Java"):
        tables_peers.way("tumult")


def test_what_fails_says_its_last_line(tmp_path):
    command = [sys.executable, "-c", "raise SystemExit('one\\ntwo')"]
    with pytest.raises(tables_peers.CannotRunError, match=r"^two$"):
        tables_peers.call(command)
    with pytest.raises(tables_peers.CannotRunError, match=r"^two$"):
        tables_peers.run(command, 1, tmp_path, {})


def test_what_takes_too_long_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(tables_peers, "LONGEST", 0.2)
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(tables_peers.CannotRunError, match=r"more than 0\.2 s"):
        tables_peers.run(command, 1, tmp_path, {})
