"""An anchor remembers what a journal would like to forget."""

import hashlib
import shutil

import numpy as np
import pytest
from examples import LAPLACE, response_plan

from dpaudit import FileAnchor, InputError, Ledger, TamperedError
from dpaudit.base.errors import JournalError
from dpaudit.ledger import AnchorState, read_journal

PLAN = response_plan(total=6)


@pytest.fixture
def places(tmp_path):
    return tmp_path / "ledger.jsonl", FileAnchor(tmp_path / "other disk")


def interrupted(path, anchor, releases=3):
    ledger = Ledger(PLAN, rng=np.random.default_rng(0), journal=path, anchor=anchor)
    for user in range(releases):
        ledger.release(LAPLACE, 0.0, unit=f"user {user}")
    ledger.journal.release()
    return ledger


def resumed(path, anchor):
    return Ledger.resume(path, rng=np.random.default_rng(0), anchor=anchor)


def test_a_journal_and_its_anchor_belong_together(places):
    path, anchor = places
    interrupted(path, anchor)
    state = anchor.read()
    content = read_journal(path, anchor=anchor)
    assert (state.journal, state.lines, state.head) == (
        content.identifier,
        content.lines,
        content.head,
    )
    with resumed(path, anchor) as ledger:
        for user in range(3, 6):
            ledger.release(LAPLACE, 0.0, unit=f"user {user}")
    assert read_journal(path, anchor=anchor).closed


@pytest.mark.parametrize("dropped", [1, 2])
def test_a_dropped_tail_is_found(places, dropped):
    path, anchor = places
    interrupted(path, anchor)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-dropped]))
    assert len(read_journal(path).releases) == 3 - dropped  # the chain alone cannot tell
    with pytest.raises(TamperedError, match="last lines were dropped"):
        read_journal(path, anchor=anchor)
    with pytest.raises(TamperedError, match="last lines were dropped"):
        resumed(path, anchor)


def test_a_copy_that_went_another_way_is_found(places):
    path, anchor = places
    interrupted(path, anchor)
    copied = path.with_name("copy.jsonl")
    shutil.copy(path, copied)
    first = resumed(path, anchor)
    first.release(LAPLACE, 0.0, unit="ann")
    with pytest.raises(TamperedError, match="older copy"):
        resumed(copied, anchor)
    without = Ledger.resume(copied, rng=np.random.default_rng(0))
    for user in ("bob", "cid"):
        without.release(LAPLACE, 0.0, unit=user)
    with pytest.raises(TamperedError, match="went another way"):
        read_journal(copied, anchor=anchor)


def test_a_copy_does_not_go_on_by_leaping_ahead(places):
    path, anchor = places
    ledger = Ledger(PLAN, rng=np.random.default_rng(0), journal=path, anchor=anchor)
    copied = path.with_name("copy.jsonl")
    shutil.copy(path, copied)
    other = resumed(copied, anchor)
    units = [f"user {user}" for user in range(3)]
    with pytest.raises(JournalError, match="another copy of it went on"):
        ledger.release_each(LAPLACE, [0.0] * 3, units=units)
    other.release_each(LAPLACE, [0.0] * 3, units=units)
    assert len(read_journal(copied, anchor=anchor).releases) == 3


def test_a_journal_that_went_on_alone_is_found(places):
    path, anchor = places
    interrupted(path, anchor)
    alone = Ledger.resume(path, rng=np.random.default_rng(0))
    alone.release(LAPLACE, 0.0, unit="ann")
    with pytest.raises(TamperedError, match="without its anchor"):
        read_journal(path, anchor=anchor)


def test_one_line_may_be_ahead(places):
    """A crash between a line and its anchor: nothing was drawn for that line."""
    path, anchor = places
    ledger = interrupted(path, anchor)
    behind = path.read_text().splitlines(keepends=True)
    anchor.path.unlink()
    previous = read_journal(_cut(path, behind[:-1]))
    path.write_text("".join(behind))
    anchor.advance(AnchorState(previous.identifier, previous.lines, previous.head))
    assert read_journal(path, anchor=anchor).lines == previous.lines + 1
    assert ledger.journal.identifier == previous.identifier


def _cut(path, lines):
    path.write_text("".join(lines))
    return path


def test_half_a_record_is_passed_over(places):
    path, anchor = places
    interrupted(path, anchor)
    whole = anchor.read()
    half_written(anchor)
    assert anchor.read().lines == whole.lines - 1
    anchor.path.write_bytes(b"no anchor")
    with pytest.raises(InputError, match="is no anchor"):
        anchor.read()


def half_written(anchor, length=100):
    """Leave of what was written last a part, and behind it what was there before: such a record."""
    data = bytearray(anchor.path.read_bytes())
    own = newest(anchor)
    data[own + length : own + 256] = data[256 - own + length : 512 - own]
    anchor.path.write_bytes(data)


def newest(anchor):
    whole, data = str(anchor.read().lines).encode(), anchor.path.read_bytes()
    return next(n for n in (0, 256) if data[n:].split(b" ")[2] == whole)


@pytest.mark.parametrize("length", [1, 63, 64, 97, 100, 160, 180, 191, 200, 255])
def test_wherever_a_write_is_cut_off_one_record_counts(places, length):
    path, anchor = places
    interrupted(path, anchor)
    lines = anchor.read().lines
    half_written(anchor, length)
    assert anchor.read().lines in (lines - 1, lines)
    assert read_journal(path, anchor=anchor).lines == lines


@pytest.mark.parametrize("slot", [0, 256])
def test_no_bit_that_is_flipped_lets_an_older_record_count(places, slot):
    path, anchor = places
    interrupted(path, anchor)
    known, data, own = anchor.read(), anchor.path.read_bytes(), newest(anchor)
    for place in range(slot, slot + 256):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        anchor.path.write_bytes(flipped)
        if slot + 64 <= place < slot + 191:  # what is said; a check is there twice
            with pytest.raises(InputError, match="was damaged: a record is not as it was"):
                anchor.read()
        else:
            assert anchor.read() == known
    anchor.path.write_bytes(data[:own] + bytes(256) + data[own + 256 :])
    with pytest.raises(InputError, match="was damaged"):
        anchor.read()


def test_anchors_of_older_versions_are_read(places):
    path, anchor = places
    interrupted(path, anchor)
    state = anchor.read()
    text = f"{state.journal} {state.lines} {state.head}"
    check = hashlib.sha256(text.encode()).hexdigest()
    anchor.path.write_text(f"{text} {check}".ljust(255) + "\n")
    assert anchor.read() == state
    with resumed(path, anchor) as ledger:
        for user in range(3, 6):
            ledger.release(LAPLACE, 0.0, unit=f"user {user}")
    assert anchor.read().lines > state.lines
    assert read_journal(path, anchor=anchor).lines == anchor.read().lines


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_whatever_is_written_last_the_record_before_it_stays(places, size):
    """A write of an even number of lines too: the other one of two records is written."""
    path, anchor = places
    ledger = interrupted(path, anchor, releases=2)
    before, mechanism = anchor.read(), LAPLACE
    assert ledger.journal is not None
    again = resumed(path, anchor)
    before = anchor.read()
    again.release_each(mechanism, [0.0] * size, units=[f"user {9 + n}" for n in range(size)])
    again.journal.release()
    assert anchor.read().lines == before.lines + size
    half_written(anchor)
    assert anchor.read() == before
    assert read_journal(path, anchor=anchor).lines == before.lines + size
    resumed(path, anchor).close()


def test_more_lines_than_one_write_has_are_none_that_were_cut_off(places):
    path, anchor = places
    interrupted(path, anchor, releases=1)
    before = anchor.path.read_bytes()
    again = resumed(path, anchor)
    again.release_each(LAPLACE, [0.0] * 2, units=["a", "b"])
    again.journal.release()
    anchor.path.write_bytes(before)
    with pytest.raises(TamperedError, match="without its anchor"):
        read_journal(path, anchor=anchor)


def test_an_anchor_serves_one_journal(places, tmp_path):
    path, anchor = places
    interrupted(path, anchor)
    with pytest.raises(InputError, match="that of another journal"):
        Ledger(response_plan(total=5), journal=tmp_path / "other.jsonl", anchor=anchor)
    assert not (tmp_path / "other.jsonl").exists()
    with pytest.raises(InputError, match="without a journal"):
        Ledger(PLAN, anchor=anchor)
    with pytest.raises(InputError, match="knows nothing"):
        read_journal(path, anchor=FileAnchor(tmp_path / "unknown"))
