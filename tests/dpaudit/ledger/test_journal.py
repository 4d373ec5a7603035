"""What is written ahead, and the anchor that keeps its head elsewhere."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from examples import LAPLACE, response_plan

from dpaudit import FileAnchor, Ledger
from dpaudit.accounting import AdaptiveFilter
from dpaudit.base.chain import Chain, Durability
from dpaudit.base.errors import (
    ClosedLedgerError,
    InputError,
    JournalError,
    PlanMismatchError,
    TamperedError,
)
from dpaudit.base.files import canonical_json, digest
from dpaudit.ledger import AnchorState, Entry, FloatNoise, Journal, read_journal, summarise_journal

# --  ----------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.jsonl"
    with Ledger(response_plan(), rng=np.random.default_rng(1), journal=path) as ledger:
        for user in "abc":
            ledger.release(LAPLACE, 0.0, unit=user, at="answer")
    return path


def left_open(path):
    """The same journal without its closing line."""
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    return path


def test_a_whole_journal_is_read_back(path):
    content = read_journal(path)
    assert content.closed
    assert not content.cut
    assert [entry.unit for entry in content.entries] == ["a", "b", "c"]
    assert {entry.sampler for entry in content.entries} == {f"numpy {np.__version__}, seeded"}
    assert content.plan == response_plan()
    assert content.lines == 5


def test_an_edit_with_a_fitting_hash_breaks_the_next_line(path):
    lines = path.read_text().splitlines(keepends=True)
    record = json.loads(lines[2])
    record.pop("hash")
    record["unit"] = "zoe"
    lines[2] = f'{canonical_json(record)[:-1]},"hash":"{digest(record)}"}}\n'
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match=f"line 4 of journal .*{path.name}' does not follow"):
        read_journal(path)


def test_duplicate_keys_and_foreign_units_are_refused(path):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[1].replace("{", '{"unit":"mallory",', 1), *lines[2:]]))
    with pytest.raises(TamperedError, match="line 2"):
        read_journal(path)


def test_lines_after_the_closing_line_are_detected(path):
    path.write_text(path.read_text() + "{")
    with pytest.raises(TamperedError, match="follows the closing line"):
        read_journal(path)


def test_a_journal_goes_on_with_the_chain(path):
    left_open(path)
    path.write_text(path.read_text()[:-30])  # cut off while "c" was written
    journal, content = Journal.resume(path)
    assert [entry.unit for entry in content.entries] == ["a", "b"]
    before = path.read_bytes()
    journal.mark_resumed()
    assert path.read_bytes() != before
    invocation = response_plan().invocations[0]
    journal.append(Entry(invocation, "d", "here:1", "numpy"))
    journal.close()
    content = read_journal(path)
    assert [entry.unit for entry in content.entries] == ["a", "b", "d"]
    assert content.closed
    with pytest.raises(InputError, match="is closed"):
        Journal.resume(path)


def ended(ledger, error=None, *, closes=False):
    """A block of a ledger with one release, which may close it, and may end with an error."""
    with ledger:
        ledger.release(LAPLACE, 0.0, unit="a")
        if closes:
            ledger.close()
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, None])
def test_a_block_that_ends_with_an_error_can_be_gone_on_with(tmp_path, error):
    """As a killed process can; its own error is one too, that less ran than was declared."""
    path = tmp_path / "steps.jsonl"
    ledger = Ledger(response_plan(), rng=np.random.default_rng(1), journal=path)
    with pytest.raises(error or PlanMismatchError):
        ended(ledger, error)
    content = read_journal(path)
    assert (content.closed, content.cut, len(content.releases)) == (False, False, 1)
    with pytest.raises(ClosedLedgerError, match="its block ended with an error; resume from its"):
        ledger.release(LAPLACE, 0.0, unit="b")
    ledger.close()
    assert not ledger.closed
    with pytest.raises(PlanMismatchError, match="is of another plan than the one given; resume"):
        Ledger.resume(path, plan=response_plan(total=5))
    plan = response_plan()
    with Ledger.resume(path, plan=plan, rng=np.random.default_rng(1)) as again:
        assert len(again) == 1
        for unit in "bc":
            again.release(LAPLACE, 0.0, unit=unit)
    content = read_journal(path)
    assert (content.closed, [each.unit for each in content.entries]) == (True, ["a", "b", "c"])


class Unlimited:
    def admit(self, invocation):
        """Whatever is asked."""


def test_a_filter_is_the_one_that_the_journal_began_with(tmp_path):
    """A limit that is chosen after results were seen would be certified as if it were of before."""
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(
        response_plan(), noise=FloatNoise(), journal=path, budget=AdaptiveFilter(9.0, 0.0)
    )
    ledger.release(LAPLACE, 0.0, unit="a", at="answer")
    ledger.budget.epsilon = 2.0
    assert ledger.filtered.epsilon == 9.0
    assert ledger.filtered.admitted == {"answer": 1}
    ledger.journal.release()
    for other in (AdaptiveFilter(2.0, 0.0), AdaptiveFilter(9.0, 1e-6), Unlimited()):
        with pytest.raises(InputError, match="is no filter like that with which journal"):
            Ledger.resume(path, noise=FloatNoise(), budget=other)
    for same in (AdaptiveFilter(9.0, 0.0), None):
        again = Ledger.resume(path, noise=FloatNoise(), budget=same)
        assert (again.budget.epsilon, again.budget.admitted) == (9.0, 1)
        assert again.filtered.admitted == {"answer": 1}
        again.journal.release()
    none = tmp_path / "none.jsonl"
    Ledger(response_plan(), noise=FloatNoise(), journal=none).journal.release()
    with pytest.raises(InputError, match="is no filter like that with which journal"):
        Ledger.resume(none, noise=FloatNoise(), budget=AdaptiveFilter(9.0, 0.0))


def test_an_error_opens_nothing_that_the_code_closed(tmp_path):
    path = tmp_path / "steps.jsonl"
    ledger = Ledger(response_plan(), rng=np.random.default_rng(1), journal=path)
    with pytest.raises(KeyboardInterrupt):
        ended(ledger, KeyboardInterrupt, closes=True)
    assert read_journal(path).closed


def test_a_journal_that_charges_too_much_has_no_account(path):
    left_open(path)
    journal, _ = Journal.resume(path)
    journal.mark_resumed()
    journal.append(Entry(response_plan().invocations[0], "a", "here:1", "numpy"))
    journal.release()
    with pytest.raises(PlanMismatchError, match="this one has been charged that often"):
        read_journal(path).account()


def test_a_plan_that_is_not_the_one_it_names(path):
    first = json.loads(path.read_text().splitlines()[0])
    first.pop("hash")
    first["plan_hash"] = "0" * 64
    path.write_text(f'{canonical_json(first)[:-1]},"hash":"{digest(first)}"}}\n')
    with pytest.raises(TamperedError, match="plan_hash does not match"):
        read_journal(path)


def test_identifiers_tell_journals_apart(tmp_path):
    ones = [Journal.create(tmp_path / name, response_plan()) for name in "ab"]
    assert len({one.identifier for one in ones}) == 2
    for one in ones:
        one.release()


def test_bad_files(tmp_path, path):
    with pytest.raises(InputError, match="already exists"):
        Journal.create(path, response_plan())
    with pytest.raises(InputError, match="cannot be created"):
        Journal.create(tmp_path / "no" / "folder", response_plan())
    with pytest.raises(InputError, match="cannot be created"):
        Journal.create("nul\0byte", response_plan())
    other = tmp_path / "other.jsonl"
    other.write_text("")
    with pytest.raises(InputError, match="no first line"):
        read_journal(other)
    other.write_text("[" * 5000 + "\n")
    with pytest.raises(TamperedError, match="line 1"):
        read_journal(other)


def test_a_line_that_follows_the_closing_one_as_it_should_is_refused(path):
    chain, end = Chain.resume(path, Durability.PROCESS)
    chain.trim(end)
    chain.append({"at": "answer", "sampler": "", "source": "", "unit": "mallory"})
    chain.release()
    for read in (read_journal, summarise_journal):
        with pytest.raises(TamperedError, match="follows the closing line"):
            read(path)


def test_a_summary_is_of_what_the_plan_admits(tmp_path):
    """One unit, charged once more than declared, by a file whose chain is whole."""
    plan = response_plan()
    (invocation, *_) = plan.invocations
    path = tmp_path / "more.jsonl"
    journal = Journal.create(path, plan)
    one = Entry(invocation, "ann", "module:1", "numpy")
    journal.append(*[one] * (invocation.count + 1))
    journal.close()
    with pytest.raises(PlanMismatchError):
        summarise_journal(path)


# -- an anchor remembers what a journal would like to forget ---------------------------------------


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
    with pytest.raises(TamperedError, match="continued differently"):
        read_journal(copied, anchor=anchor)


def test_a_copy_does_not_go_on_by_leaping_ahead(places):
    path, anchor = places
    ledger = Ledger(PLAN, rng=np.random.default_rng(0), journal=path, anchor=anchor)
    copied = path.with_name("copy.jsonl")
    shutil.copy(path, copied)
    other = resumed(copied, anchor)
    units = [f"user {user}" for user in range(3)]
    with pytest.raises(JournalError, match="another copy of the journal continued"):
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
    with pytest.raises(InputError, match="is not an anchor"):
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
            with pytest.raises(InputError, match="was damaged: a record has changed"):
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
    with pytest.raises(InputError, match="belongs to another journal"):
        Ledger(response_plan(total=5), journal=tmp_path / "other.jsonl", anchor=anchor)
    assert not (tmp_path / "other.jsonl").exists()
    with pytest.raises(InputError, match="without a journal"):
        Ledger(PLAN, anchor=anchor)
    with pytest.raises(InputError, match="does not know this journal"):
        read_journal(path, anchor=FileAnchor(tmp_path / "unknown"))
