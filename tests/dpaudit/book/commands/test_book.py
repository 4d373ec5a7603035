"""The commands of a book, of its people and of its server, as they are typed."""

from __future__ import annotations

import csv
import json
import re
import stat
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("fastapi")

from booking import PLAN_FILE, filled
from typed_commands import typed

from dpaudit.book import Book, holder, people_of, verify_book

# ``dpaudit book`` as people type it; the exit codes, and one sentence for what is wrong


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run a command in a folder with a plan and a book; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("DPAUDIT_BOOK", raising=False)
    Path("plan.toml").write_text(PLAN_FILE)

    return partial(typed, capsys)


@pytest.fixture
def book(call):
    """The same with a data set and a budget of ε = 1."""

    def run(*arguments):
        return call("book", *arguments)

    assert run("init")[0] == 0
    assert run("dataset", "visits", "--unit", "user", "--relation", "add-remove")[0] == 0
    assert run("budget", "main", "--dataset", "visits", "--limit", "epsilon = 1")[0] == 0
    return run


def test_a_release_from_request_to_end(book, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "; no releases" in book("status")[1]
    told = ("--dataset", "visits", "--by", "ann", "--approved", "bob", "--request", "7")
    code, out, _ = book("reserve", "plan.toml", *told, "--json")
    (made,) = json.loads(out)["releases"]
    assert (code, made["id"], made["status"], made["by"]) == (0, "R3", "reserved", "ann")
    assert json.loads(book("reserve", "plan.toml", *told, "--json")[1])["releases"] == [made]
    book("status", "--plan", "plan.toml").says(0, "25 %", "3 ×", "scale = 1.33334")
    book("close", "R3", "--abandon", "not needed").refuses(
        "if abandoned, it stays charged. If nothing ran, use --withdraw"
    )
    book("close", "R3", "--withdraw", "not needed").says(0, "its whole charge was given back")
    assert "4 ×" in book("status", "--plan", "plan.toml")[1]
    told = ("--dataset", "visits", "--purpose", "weekly dashboard", "--approved", "officer")
    assert book("reserve", "plan.toml", *told, "--by", "annabel-who-asks")[0] == 0
    words = set(book("history")[1].split())
    assert {"annabel-who-asks", "released", "dashboard", "approved", "officer"} <= words
    assert {"cost", "nothing", "0.25"} <= words
    code, out, _ = book("history", "--dataset", "visits", "--json")
    assert [each["approved"] for each in json.loads(out)["releases"]] == ["bob", "officer"]
    code, out, _ = book("verify", "--anchor", "anchor", "--new-anchor", "--json")
    assert json.loads(out) | {"releases": 2, "refused": 0, "lines": 6} == json.loads(out)


def test_status_says_what_used_is_a_share_of(book):
    assert "“Used” is" not in book("status")[1]
    assert book("budget", "b", "--dataset", "visits", "--limit", "epsilon=1, delta=1e-6")[0] == 0
    said = " ".join(book("status")[1].split())
    assert "“Used” is the share of the Rényi divergences that the limit allows" in said
    assert "does not add up" in said


def test_a_budget_that_refuses_is_exit_1_and_an_error_is_exit_3(book):
    for _ in range(4):
        assert book("reserve", "plan.toml", "--dataset", "visits")[0] == 0
    book("reserve", "plan.toml", "--dataset", "visits").refuses(
        "has too little left; nothing was charged",
        "as pure counts, the plan costs epsilon = 0.25; used: epsilon = 1.",
        code=1,
    )
    code, out, _ = book("status", "--dataset", "visits", "--plan", "plan.toml", "--json")
    assert json.loads(out)["plan"] == {"times": 0, "noise": None}
    for words, said in (
        (("reserve", "plan.toml", "--dataset", "visit"), "did you mean 'visits'"),
        (("budget", "b", "--dataset", "visits"), "limit is missing; give one such as"),
        (("budget", "b", "--limit", "rho = 1"), "--dataset is missing"),
        (("budget", "b", "--dataset", "visits", "--limit", "epsilon"), "--limit is 'epsilon'"),
        (("verify", "--anchor", "mistyped"), "give the right one, or add --new-anchor"),
        (("verify", "--new-anchor"), "is given without --anchor"),
        (("close", "R99"), "release is 'R99'"),
        (("status", "--book", "none.db"), "'none.db' does not exist; make it with dpaudit book"),
        (("export", "-o", "a.txt"), "use one of .csv, .json, .registry.yaml"),
    ):
        code, _, err = book(*words)
        assert code == 3, words
        assert said in err
    assert book("budget", "main", "--retire", "done")[0] == 0


def test_exports(book):
    given = ("--dataset", "visits", "--purpose", "=HYPERLINK(1)")
    for _ in range(2):
        book("reserve", "plan.toml", *given)
    for name in ("a.csv", "a.json", "a.registry.yaml"):
        assert book("export", "-o", name)[0] == 0
    rows = list(csv.DictReader(Path("a.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["R3", "R4"]
    assert rows[0]["purpose"] == "'=HYPERLINK(1)"
    whole = json.loads(Path("a.json").read_text())
    assert [each["id"] for each in whole["releases"]] == ["R3", "R4"]
    assert whole["budgets"][0]["limit"] == {"kind": "pure", "epsilon": 1.0}


def test_check_asks_the_book(call, book):
    Path("dpaudit.toml").write_text(
        '[project]\nformats = []\n[[subject]]\nname = "s"\ntarget = "plan.toml"\n'
    )
    Path("plan.toml").write_text(PLAN_FILE + "[claim]\nepsilon = 0.25\n")
    there = ("--book", "book.db", "--dataset", "visits")
    call("check", *there).says(0, "4 runs are left")
    for _ in range(4):
        book("reserve", "plan.toml", "--dataset", "visits")
    call("check", *there).says(1, "main (book)", "exceeded")
    assert call("check", "--book", "book.db")[0] == 3
    for command in ("check", "run"):
        words = () if command == "check" else ("survey:Survey",)
        call(command, *words, "--dataset", "visits").refuses("--dataset is given without --book")


def test_several_data_sets(book):
    book("dataset", "other", "--unit", "user", "--relation", "add-remove", "--per", "week")
    book("status").says(0, "one user, per calendar week (add-remove, central)")
    book("status", "--plan", "plan.toml").refuses("add --dataset")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hers@127.0.0.1:9/b",
        "postgresql://127.0.0.1:9/b?password=hers",
        "postgresql://127.0.0.1:9/b?pass%77ord=hers",
        "postgresql://127.0.0.1:9/b?sslmode=prefer&SSL%50%61ssword=hers",
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        ("book", "status"),
        ("run", "x.py:X", "--dataset", "visits", "-o", "out"),
        ("verify", "releases.json", "--key", "k.pem"),
        ("sign", "releases.json", "--key", "k.pem"),
    ],
)
def test_no_password_is_typed_where_the_list_of_processes_shows_it(call, monkeypatch, url, words):
    code, out, err = call(*words, "--book", url)
    assert code == 3
    assert "which the list of processes would show" in " ".join(err.split())
    assert "hers" not in out + err
    if words == ("book", "status"):
        monkeypatch.setenv("DPAUDIT_BOOK", url)
        assert "list of processes" not in call(*words)[2]


def test_a_clock_is_confirmed_by_its_day(book):
    book("clock", "2001-01-01").refuses("must be the clock's day")
    assert "is not a day" in book("clock", "tomorrow")[2]
    day = datetime.now(UTC).date().isoformat()
    assert f"the date {day} is confirmed" in book("clock", day)[1]
    assert book("verify")[0] == 0


# Budgets of very many people, from the command line

PLAN = PLAN_FILE.replace("4.0", "2.0")


@pytest.fixture
def call_with_key(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    filled(Book.create("book.db", by="officer"), rho=9.0).disconnect()
    Path("plan.toml").write_text(PLAN)

    return partial(typed, capsys, "book")


@pytest.fixture
def each(call_with_key):
    words = ("people", "each", "--dataset", "visits", "--limit", "epsilon = 1", "--key", "k")
    for _ in range(2):  # the same again is no change
        assert call_with_key(*words)[:2] == (
            0,
            "each: epsilon = 1.0 (pure), of each unit of visits\n",
        )
    return call_with_key


def charge(call_with_key, names, output, *more):
    Path("names").write_text(names)
    words = ("--of", "each", "--people", "names", "--key", "k", "-o", output, *more)
    return call_with_key("charge", "plan.toml", *words)


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

    monkeypatch.setattr("dpaudit.book.people.charge_people", charging)
    assert charge(each, "ann\n", "part")[0] == 0
    assert (Path("part").read_text(), bool(seen)) == ("ann\n", not unnamed)
    charge(each, "ann\n", "part").refuses("exists already")
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
        ("ann\n\nbob\n", "line 2 of people 'names' is not a valid name"),
        ("ann\n" + "b" * 1001, "line 2 of people"),
        ("b" * 5000 + "\n", "line 1 of people"),
        ("bb" + "é" * 501 + "\n", "line 1 of people"),
        ("b" + "é" * 501 + "\n", "line 1 of people"),
        ("cid\rann\n", "line 1 of people 'names' is not a valid name"),
        ("cid\nb\u2028ann\n", "line 2 of people 'names' is not a valid name"),
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
        each("charge", "plan.toml", *[w for pair in own.items() for w in pair]).refuses(told)
    assert people_of(Book("book.db"))[0].charges == 0
    assert set(Path().iterdir()) - before <= {Path("names"), Path("other")}
    Path("plan.toml").write_text(PLAN.replace("2.0", "0.5"))
    charge(each, "ann\n", "part").refuses("costs more than all of 'each'", code=1)


# Tokens, approvals and reports


@pytest.fixture
def guarded(book):
    """A book whose budget asks for a second person."""
    limit = ("--dataset", "visits", "--limit", "epsilon = 1", "--approval")
    assert book("budget", "guarded", *limit)[0] == 0
    return book


def asked(guarded, by="ann", request="1"):
    told = ("--dataset", "visits", "--by", by, "--request", request, "--json")
    code, out, _ = guarded("reserve", "plan.toml", *told)
    assert code == 0
    return release(out)


def release(out):
    (found,) = json.loads(out)["releases"]
    return found


def test_a_second_person_approves_or_denies(guarded):
    made = asked(guarded)
    assert made["status"] == "requested"
    guarded("approve", made["id"], "--by", "Ann").refuses("somebody else must approve it", code=1)
    code, out, _ = guarded("approve", made["id"], "--by", "bob", "--json")
    assert (code, release(out)["status"], release(out)["approved"]) == (0, "reserved", "bob")
    other = asked(guarded, request="2")
    guarded("deny", other["id"], "--by", "bob").refuses("why")
    code, out, _ = guarded("deny", other["id"], "--by", "bob", "--why", "no", "--json")
    assert (code, release(out)["status"]) == (0, "denied")
    assert "25 %" in guarded("status")[1]
    book = Book("book.db")
    assert verify_book(book)["releases"] == 2
    book.disconnect()


def test_tokens_are_shown_once(guarded):
    code, out, _ = guarded("token", "ann", "--role", "analyst", "--until", "2999-12-31")
    assert code == 0
    book, secret = Book("book.db"), out.strip()
    assert holder(book, secret).role == "analyst"
    book.disconnect()
    code, out, _ = guarded("token")
    assert re.search(r"ann +analyst +2999-12-31", out)
    assert secret not in out
    assert guarded("token", "ann", "--revoke")[0] == 0
    assert "revoked" in guarded("token")[1]
    for wrong in (("token", "ann", "--revoke"), ("token", "x", "--role", "king")):
        code, _, told = guarded(*wrong)
        assert code == 3
        assert told.count("\n") == 1


def test_what_is_public_and_reports(guarded):
    assert "visits is public" in guarded("publish", "visits")[1]
    assert "visits is no longer public" in guarded("publish", "visits", "--withdraw")[1]
    assert guarded("publish", "visit")[0] == 3
    asked(guarded)
    assert guarded("report", "-o", "a.html", "--dataset", "visits")[0] == 0
    assert "Privacy report of visits" in Path("a.html").read_text("utf-8")
    assert guarded("report", "-o", "a.txt")[0] == 3
    assert guarded("report", "-o", "a.html", "--from", "yesterday")[0] == 3


def test_a_server_that_others_could_reach_is_refused(guarded):
    guarded("serve", "--host", "0.0.0.0").refuses(
        "give --tls-certificate and --tls-key, or --behind-proxy"
    )
