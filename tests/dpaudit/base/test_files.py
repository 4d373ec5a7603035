"""Files that are whole or not there, chains of hashed lines, and tables in TOML."""

import json
import os
import random
import resource
import time
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.base import files
from dpaudit.base.chain import Chain, Durability, walk_chain
from dpaudit.base.errors import InputError, JournalError, TamperedError
from dpaudit.base.toml_tables import chosen, nearest, table, tables, within

# --  ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "key 'a' twice"),
        ("[NaN]", "number NaN"),
        ("[1e999]", "too large"),
        ("[-Infinity]", "number -Infinity"),
        ("[1", "not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ("1" * 5000, "too many digits"),
        ('["\\ud800"]', "half of a surrogate pair"),
    ],
)
def test_bad_json_is_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        files.parse_json(text, what="pair")


def test_special_files_are_refused_and_a_byte_order_mark_is_not(tmp_path):
    with pytest.raises(InputError, match="not a regular file"):
        files.read_text("/dev/zero", what="file")
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert files.load_json(path, what="file") == [1]


def test_canonical_json_does_not_depend_on_order():
    assert files.digest({"a": 1, "b": [2]}) == files.digest({"b": [2], "a": 1})
    with pytest.raises(ValueError, match="JSON"):
        files.canonical_json(float("nan"))


def test_write_is_whole_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    files.write(path, "first")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="No space left"):
        files.write(path, "second")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_write_to_a_missing_folder(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        files.write(tmp_path / "no" / "file", "x")


def test_nothing_is_written_over_a_device_or_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for path in (pipe, link, "/dev/null", "/dev/stdout"):
        with pytest.raises(InputError, match="is not a regular file"):
            files.write(path, "x")
    assert pipe.is_fifo()
    assert link.is_symlink()
    with pytest.raises(InputError, match="is a folder"):
        files.write(tmp_path, "x")
    for path in ("nul\0byte", "x" * 5000):
        with pytest.raises(InputError, match="cannot be written") as caught:
            files.write(path, "x")
        assert len(str(caught.value)) < 200


def test_a_file_that_is_not_there_is_answered_with_the_nearest(tmp_path):
    (tmp_path / "plan.toml").touch()
    with pytest.raises(
        InputError, match=r"pan\.toml' does not exist; did you mean '.*/plan\.toml'"
    ):
        files.read_text(tmp_path / "pan.toml", what="plan file")
    with pytest.raises(InputError, match="does not exist; check the path"):
        files.read_text(tmp_path / "none" / "plan.toml", what="plan file")
    (tmp_path / "stays.csv").touch()
    with pytest.raises(InputError, match="does not exist; check the path"):
        files.read_text(tmp_path / "stay.jsonl", what="journal")  # a table is none
    (tmp_path / "p_neg.toml").touch()
    with pytest.raises(InputError, match="does not exist; check the path"):
        files.read_text(tmp_path / "none.toml", what="plan file")


# -- chained files: every byte counts, and a crash is not an edit ----------------------------------


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
    with pytest.raises(
        TamperedError, match=f"line {line + 1} of journal .*{path.name}' was edited"
    ):
        read_chain(path)


@pytest.mark.parametrize("removed", [0, 1, 3])
def test_a_removed_line_is_detected(path, removed):
    lines = path.read_text().splitlines(keepends=True)
    del lines[removed]
    path.write_text("".join(lines))
    with pytest.raises(TamperedError, match=f"line {removed + 1} of journal .* does not follow"):
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


# -- tables that people write: what is wrong is told, and briefly, whatever its size ---------------


def test_a_near_word_is_offered_and_else_all_of_them():
    assert nearest("sigmo", ("sigma", "scale")) == "did you mean 'sigma'?"
    assert nearest("q", ("sigma", "scale")) == "it must be one of scale, sigma."


@pytest.mark.parametrize("value", ["centrl", "", None, 3, ["central"]])
def test_a_word_is_one_of_those_that_there_are(value):
    assert chosen(("central", "local"), trust="local") == "local"
    with pytest.raises(InputError, match="trust is"):
        chosen(("central", "local"), trust=value)


def test_unknown_keys_are_refused_with_the_nearest():
    assert table("claim", {"epsilon": 1}, ("epsilon", "delta")) == {"epsilon": 1}
    with pytest.raises(InputError, match="claim has an unknown key 'epsilom'; did you mean 'eps"):
        table("claim", {"epsilom": 1}, ("epsilon", "delta"))
    with pytest.raises(InputError, match="claim is 3; it must be a table"):
        table("claim", 3, ("epsilon",))


def test_an_array_of_tables_is_no_table():
    assert tables("subject", [{}]) == [{}]
    with pytest.raises(InputError, match=r"array of tables, \[\[subject\]\]"):
        tables("subject", {})


def test_errors_are_told_with_their_place():
    with pytest.raises(InputError, match=r"^subject 2: claim is 3"), within("subject 2"):
        table("claim", 3, ())
    with pytest.raises(KeyError), within("subject 2"):
        {}["x"]


def test_a_near_word_is_named():
    with pytest.raises(InputError, match="unknown key 'epsilom'; did you mean 'epsilon'"):
        table("claim", {"epsilom": 1}, ("epsilon", "delta"))


@pytest.mark.parametrize(
    "word", ["x" * 10**6, 10**5000, ["a"] * 10**5, None], ids=["text", "int", "list", "none"]
)
def test_a_huge_word_is_told_briefly_and_at_once(word):
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        chosen(("epsilon", "delta"), accountant=word)
    assert len(str(caught.value)) < 200
    assert time.perf_counter() - start < 1


def test_of_many_words_some_are_named():
    with pytest.raises(InputError) as caught:
        chosen([f"{number}" * 50 for number in range(10**4)], name="y")
    assert len(str(caught.value)) < 2000


def test_the_nearest_word_is_found_in_any_case():
    assert nearest("gausian", ["Gaussian", "laplace"]) == "did you mean 'Gaussian'?"
    assert nearest("LAPLACE", ["Gaussian", "laplace"]) == "did you mean 'laplace'?"
