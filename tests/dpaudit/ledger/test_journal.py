import json

import numpy as np
import pytest
from examples import LAPLACE, response_plan

from dpaudit import Ledger
from dpaudit.base.chain import Chain, Durability
from dpaudit.base.errors import InputError, PlanMismatchError, TamperedError
from dpaudit.base.files import canonical_json, digest
from dpaudit.ledger import Entry, Journal, read_journal, summarise_journal


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
    with pytest.raises(TamperedError, match="line 4 of the journal does not follow"):
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
    with pytest.raises(InputError, match="exists already"):
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
