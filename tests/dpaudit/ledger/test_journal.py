import json

import numpy as np
import pytest
from examples import LAPLACE, response_plan

from dpaudit import Ledger
from dpaudit.errors import InputError, TamperedError
from dpaudit.ledger import Journal, read_journal


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(response_plan(), rng=np.random.default_rng(1), journal=path) as ledger:
        for user in "abc":
            ledger.release(LAPLACE, 0.0, unit=user, at="answer")
    return path


def test_a_whole_journal_is_read_back(path):
    content = read_journal(path)
    assert content.closed
    assert not content.cut
    assert [entry["unit"] for entry in content.entries] == ["a", "b", "c"]
    assert content.plan == response_plan()


@pytest.mark.parametrize("line", range(5))
def test_every_edit_is_detected(path, line):
    lines = path.read_text().splitlines(keepends=True)
    record = json.loads(lines[line])
    record["number"] = 77
    lines[line] = json.dumps(record) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match=f"line {line + 1} of the journal was edited"):
        read_journal(path)


def test_an_edit_with_a_fitting_hash_breaks_the_next_line(path):
    from dpaudit.ledger.journal import _hash_of

    lines = path.read_text().splitlines(keepends=True)
    record = json.loads(lines[2])
    record.pop("hash")
    record["unit"] = "zoe"
    lines[2] = json.dumps(record | {"hash": _hash_of(record)}) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match="line 4 of the journal does not follow"):
        read_journal(path)


@pytest.mark.parametrize("removed", [1, 2, 3])
def test_a_removed_line_is_detected(path, removed):
    lines = path.read_text().splitlines(keepends=True)
    del lines[removed]
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match=f"line {removed + 1} of the journal does not follow"):
        read_journal(path)


def test_a_swap_is_detected(path):
    lines = path.read_text().splitlines(keepends=True)
    lines[1], lines[2] = lines[2], lines[1]
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match="line 2"):
        read_journal(path)


def test_duplicate_keys_and_foreign_units_are_refused(path):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[1].replace("{", '{"unit":"mallory",', 1), *lines[2:]]))
    with pytest.raises(TamperedError, match="line 2"):
        read_journal(path)


def test_a_cut_last_line_is_tolerated_and_told(path):
    text = path.read_text()
    for length in range(1, 40, 7):
        path.write_text(text[:-length])
        content = read_journal(path)
        assert content.cut
        assert not content.closed
        assert len(content.entries) == 3


def test_lines_after_the_closing_line_are_detected(path):
    path.write_text(path.read_text() + "{")
    with pytest.raises(TamperedError, match="follows the closing line"):
        read_journal(path)


def test_resume_goes_on_with_the_chain(path):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:20])
    journal = Journal.resume(path)
    journal.append("answer", "d", "here:1")
    journal.close()
    content = read_journal(path)
    assert [entry["unit"] for entry in content.entries] == ["a", "b", "d"]
    assert content.closed
    with pytest.raises(InputError, match="is closed"):
        Journal.resume(path)


def test_bad_files(tmp_path, path):
    with pytest.raises(InputError, match="exists already"):
        Journal.create(path, response_plan())
    with pytest.raises(InputError, match="cannot be created"):
        Journal.create(tmp_path / "no" / "folder", response_plan())
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(InputError, match="no first line"):
        read_journal(empty)
    empty.write_text("[" * 5000 + "\n")
    with pytest.raises(TamperedError, match="line 1"):
        read_journal(empty)
