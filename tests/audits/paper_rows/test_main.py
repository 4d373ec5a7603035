"""The command, on small experiments and cheap rows."""

from __future__ import annotations

import json

import pytest

from audits.paper_rows import __main__ as command
from audits.paper_rows import recording
from audits.paper_rows.checking import RESULTS
from audits.paper_rows.experiments import experiments
from audits.paper_rows.recording import FOLDER, Recording
from audits.paper_rows.rows import rows_of

NAME, CELL = "local-sub-weibull", "at (ln t)^θ, θ = 1"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """One experiment of one checked cell, two rows, and a folder of its own."""
    from dataclasses import replace

    one = {NAME: replace(experiments()[NAME], spot=(CELL,))}
    monkeypatch.setattr(command, "experiments", lambda: one)
    monkeypatch.setattr(recording, "experiments", lambda: one)
    monkeypatch.setattr(command, "rows_of", lambda names=(): rows_of(["Z2", "Z13"]))
    known = Recording.read(NAME)
    assert known is not None
    folder = tmp_path / "papers"
    folder.mkdir()
    known.write(one[NAME], folder)
    return folder


def run(folder, *options: str) -> int:
    return command.main(["--folder", str(folder), "--workers", "1", *options])


def test_the_page_is_written_where_all_agrees(small, capsys) -> None:
    assert run(small) == 0
    assert "2 rows, 2 decided" in capsys.readouterr().out
    assert "Z13" in small.with_suffix(".md").read_text(encoding="utf-8")
    assert "<svg" in small.with_suffix(".html").read_text(encoding="utf-8")
    first = (small / RESULTS).read_bytes()
    assert run(small) == 0
    assert (small / RESULTS).read_bytes() == first


def test_a_record_that_disagrees_fails_and_names_the_row(small, capsys) -> None:
    path = small / f"{NAME}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["cells"][CELL]["final"][0] *= 2
    path.write_text(json.dumps(record), encoding="utf-8")
    assert run(small) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"Z13: record {NAME}, cell {CELL}: trial 1 was ")
    assert not small.with_suffix(".md").exists()


def test_rows_are_printed_alone(capsys) -> None:
    assert command.main(["--only", "Z2", "--workers", "1"]) == 0
    assert capsys.readouterr().out.startswith("Z2  Section 4.5: ")


def test_wrong_names_are_one_sentence(capsys) -> None:
    assert command.main(["--only", "Q9"]) == 3
    assert command.main(["--record", "nothing", "--folder", str(FOLDER)]) == 3
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith("row is 'Q9'")
    assert "nothing" in said[1]
