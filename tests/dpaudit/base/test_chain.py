"""Chained files: every byte counts, and a crash is not an edit."""

import json
import os
import random
import resource
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.base.chain import Chain, Durability, walk_chain
from dpaudit.base.errors import InputError, JournalError, TamperedError


def read_chain(path):
    """All lines and the end; with the names of the end beside them."""
    lines, records = walk_chain(path), []
    while True:
        try:
            records.append(next(lines))
        except StopIteration as stop:
            return SimpleNamespace(records=records, **asdict(stop.value))


def made(path, records=4, durability=Durability.PROCESS):
    chain = Chain.create(path, {"format": "test", "name": "Zoë 𝜎"}, durability)
    for number in range(records):
        chain.append({"value": number, "name": "Zoë 𝜎"})
    return chain


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "chain.jsonl"
    made(path).release()
    return path


@pytest.mark.parametrize("durability", list(Durability))
def test_what_is_appended_is_read(tmp_path, durability):
    path = tmp_path / "chain.jsonl"
    chain = made(path, 2, durability)
    chain.append({"a": 1}, {"a": 2}, {"a": 3})
    content = read_chain(path)
    assert [record.get("a") for record in content.records] == [None, None, None, 1, 2, 3]
    assert (content.head, len(content.records)) == (chain.head, chain.number)
    assert (content.cut, content.ends) == (False, True)
    chain.release()


def test_no_flipped_bit_goes_unseen(path):
    data = path.read_bytes()
    rng = random.Random(0)
    for _ in range(400):
        flipped = bytearray(data)
        place = rng.randrange(len(data))
        flipped[place] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises(TamperedError):
            read_chain(path)


@pytest.mark.parametrize("line", range(5))
def test_every_edit_is_detected(path, line):
    lines = path.read_text().splitlines(keepends=True)
    record = json.loads(lines[line])
    record["value"] = 77
    lines[line] = json.dumps(record) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match=f"line {line + 1} of the journal was edited"):
        read_chain(path)


@pytest.mark.parametrize("removed", [0, 1, 3])
def test_a_removed_line_is_detected(path, removed):
    lines = path.read_text().splitlines(keepends=True)
    del lines[removed]
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match=f"line {removed + 1} of the journal does not follow"):
        read_chain(path)


def test_a_swap_is_detected(path):
    lines = path.read_text().splitlines(keepends=True)
    lines[1], lines[2] = lines[2], lines[1]
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match="line 2"):
        read_chain(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b'"value":1', b'"value": 1'),
        lambda data: data.replace(b"\n", b"\n\n"),
        lambda data: data + b"x",
        lambda data: data[:-1] + b"\x0b",
        lambda data: data + data[-40:],
    ],
    ids=["bom", "crlf", "space", "empty lines", "tail", "end", "repeated end"],
)
def test_text_that_says_the_same_is_refused_and_stays(path, damage):
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    if damaged.endswith(b"x"):  # as a crash leaves it
        assert read_chain(path).cut
        return
    with pytest.raises(TamperedError):
        read_chain(path)
    with pytest.raises(TamperedError):
        Chain.resume(path, Durability.PROCESS)
    assert path.read_bytes() == damaged


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(1, 400))
def test_a_crash_at_any_byte_costs_at_most_the_last_line(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "chain.jsonl"
    made(path, 3).release()
    data = path.read_bytes()
    whole = data[: len(data) - cut]
    path.write_bytes(whole)
    lines = whole.count(b"\n") + (data[len(whole) : len(whole) + 1] == b"\n")
    if not lines:
        with pytest.raises(InputError):
            read_chain(path)
        return
    chain, content = Chain.resume(path, Durability.PROCESS)
    assert path.read_bytes() == whole
    assert content.lines == lines
    chain.trim(content)
    chain.append({"after": True})
    chain.release()
    assert [record.get("after") for record in read_chain(path).records] == [None] * lines + [True]


def test_there_is_one_writer(path):
    first, content = Chain.resume(path, Durability.PROCESS)
    with pytest.raises(InputError, match="open elsewhere"):
        Chain.resume(path, Durability.PROCESS)
    first.trim(content)
    first.append({"mine": 1})
    first.release()
    second, _ = Chain.resume(path, Durability.PROCESS)
    second.release()


def test_a_file_that_somebody_else_changed_takes_no_line(path):
    chain, content = Chain.resume(path, Durability.PROCESS)
    chain.trim(content)
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(JournalError, match="somebody else"):
        chain.append({"late": 1})
    path.unlink()
    with pytest.raises(JournalError, match="somebody else"):
        chain.append({"late": 1})
    chain.release()


def test_a_line_without_room_leaves_no_half(tmp_path):
    path = tmp_path / "chain.jsonl"
    chain = made(path, 1)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, limits[1]))
    try:
        with pytest.raises(JournalError, match="cannot be written"):
            chain.append({"value": "x" * 200})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert not read_chain(path).cut
    chain.release()


def test_what_cannot_be_started_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError, match="No space left"):
        made(tmp_path / "chain.jsonl")
    assert list(tmp_path.iterdir()) == []
