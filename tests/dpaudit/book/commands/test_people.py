"""Budgets of very many people, from the command line."""

from __future__ import annotations

import stat
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from booking import PLAN_FILE, filled, typed

from dpaudit.book import Book, people_of

PLAN = PLAN_FILE.replace("4.0", "2.0")


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    filled(Book.create("book.db", by="officer"), rho=9.0).disconnect()
    Path("plan.toml").write_text(PLAN)

    return partial(typed, capsys, "book")


@pytest.fixture
def each(call):
    words = ("people", "each", "--dataset", "visits", "--limit", "epsilon = 1", "--key", "k")
    for _ in range(2):  # the same again is no change
        assert call(*words)[:2] == (0, "each: epsilon = 1.0 (pure), of each unit of visits\n")
    return call


def charge(call, names, output, *more):
    Path("names").write_text(names)
    words = ("--of", "each", "--people", "names", "--key", "k", "-o", output, *more)
    return call("charge", "plan.toml", *words)


def test_who_may_take_part_is_written_and_nothing_else_is_told(each):
    assert stat.S_IMODE(Path("k").stat().st_mode) == 0o600
    said = set()
    for number, names in enumerate(("ann\nbob\n", "ann\r\nbob", "ann\neve\n")):
        code, out, err = charge(each, names, f"part{number}", "--request", f"{number}")
        assert (code, err) == (0, "")
        said.add(out.replace(f"part{number}", "part"))
    assert len(said) == 1
    assert Path("part1").read_text() == "ann\nbob\n"
    assert Path("part2").read_text() == "eve\n"
    assert stat.S_IMODE(Path("part2").stat().st_mode) == 0o600
    assert charge(each, "ann\neve\n", "again", "--request", "2")[0] == 0
    assert Path("again").read_text() == "eve\n"
    assert each("verify")[0] == 0


def test_marks_and_blanks_around_a_name_make_no_other_person(each):
    for number, names in enumerate(("ann\n", "\ufeffann\n", " ann\t\r\n")):
        assert charge(each, names, f"part{number}")[0] == 0
    assert [Path(f"part{n}").read_text() for n in range(3)] == ["ann\n", "ann\n", ""]


@pytest.mark.parametrize("unnamed", [True, False])
def test_no_name_is_beside_the_output_while_it_is_written(each, monkeypatch, unnamed):
    """What a call that is killed would leave; where a system has no unnamed files it has some."""
    if not unnamed:
        monkeypatch.delattr("os.O_TMPFILE", raising=False)
    seen = []

    def charging(book, name, plan, people, take, **told):
        take(list(people))
        seen.extend(Path().glob(".people-*"))
        Path("other").write_text("x")

    monkeypatch.setattr("dpaudit.book.people_files.charge_people", charging)
    assert charge(each, "ann\n", "part")[0] == 0
    assert (Path("part").read_text(), bool(seen)) == ("ann\n", not unnamed)
    code, _, err = charge(each, "ann\n", "part")
    assert (code, "exists already" in err) == (3, True)
    assert not list(Path().glob(".people-*"))
    assert charge(each, "ann\n", "other")[0] == 3
    monkeypatch.setattr(
        "pathlib.Path.exists", lambda path: path.name.isdigit() or path.suffix == ".db"
    )
    assert "'other' exists already" in charge(each, "ann\n", "other")[2]
    assert Path("other").read_text() == "x"


def test_what_is_wrong_charges_nobody_and_names_nobody(each):
    before = set(Path().iterdir())
    for names, told in (
        ("ann\n\nbob\n", "line 2 of people 'names' is no name"),
        ("ann\n" + "b" * 1001, "line 2 of people"),
        ("b" * 5000 + "\n", "line 1 of people"),
        ("bb" + "é" * 501 + "\n", "line 1 of people"),
        ("b" + "é" * 501 + "\n", "line 1 of people"),
        ("cid\rann\n", "line 1 of people 'names' is no name"),
        ("cid\nb\u2028ann\n", "line 2 of people 'names' is no name"),
        ("cid\nb\x85ann\n", "line 2 of people"),
        ("b\u200dann\n", "line 1 of people"),
        ("cid\nbe\u0301\n", "line 2 of people 'names' is not in Unicode's normal form C"),
        ("cid\n\ufeffann\n", "line 2 of people"),
    ):
        code, out, err = charge(each, names, "part")
        assert (code, out, told in err, "ann" in err) == (3, "", True, False), err
    Path("names").write_bytes(b"ann\n\xff\n")
    words = ("--of", "each", "--people", "names", "--key", "k", "-o", "part")
    assert "line 2 of people" in each("charge", "plan.toml", *words)[2]
    Path("other").write_text("x")
    for change, told in (
        ({"-o": "other"}, "'other' exists already; give a new path"),
        ({"-o": "none/part"}, "cannot be written"),
        ({"--people": "none"}, "does not exist"),
        ({"--key": "none"}, "does not exist"),
        ({"--key": "other"}, "it must have 64 hexadecimal digits"),
        ({"--of": "none"}, "people is 'none'"),
    ):
        own = dict(zip(words[::2], words[1::2], strict=True)) | change
        code, _, err = each("charge", "plan.toml", *[w for pair in own.items() for w in pair])
        assert (code, told in err) == (3, True), err
    assert people_of(Book("book.db"))[0].charges == 0
    assert set(Path().iterdir()) - before <= {Path("names"), Path("other")}
    Path("plan.toml").write_text(PLAN.replace("2.0", "0.5"))
    code, _, err = charge(each, "ann\n", "part")
    assert (code, "takes more than all of 'each'" in err) == (1, True)
