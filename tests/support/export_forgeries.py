"""Forgeries of signed exports of a book; :mod:`forgeries` has those of certificates."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

from booking import ask, filled, gaussian
from forgeries import ELSEWHERE, World, add, payload_of, with_payload

from dpaudit.base import files
from dpaudit.book import Book
from dpaudit.book.signed_exports import export_signed
from dpaudit.signing.signed_files import sign_file
from dpaudit.signing.statements import ENDING, Envelope, Statement

POLICY = """
keys = ["{ana}", "{ben}"]
threshold = 2
days = 30
dpaudit = ">=0.1"
book = ["{book}"]
current = true
"""
OTHER_FILE = "differs from the export that was signed"


class Exports:
    """A book, and what honest people signed of it: ``old`` and, two releases later, ``new``.

    ``other`` is the export of another book, which they signed too.
    """

    def __init__(self, world: World) -> None:
        self.world, self.home = world, world.home / "exports"
        self.home.mkdir()
        self.book, self.policy = self.home / "book.db", self.home / "policy.toml"
        book, other = (
            filled(Book.create(str(self.home / f"{name}.db"), by="officer"), rho=9.0)
            for name in ("book", "elsewhere")
        )
        for number, made in enumerate((book, book, book, book, other, other, other, other)):
            ask(made, gaussian(2.0 + number % 2), purpose=f"purpose {number % 4}")
        self.sign(book, "old")
        for number in range(2):
            ask(book, gaussian(), purpose=f"later {number}")
        for name, made in (("new", book), ("other", other)):
            self.sign(made, name)
            made.disconnect()
        of = json.loads((self.home / "new.json").read_text("utf-8"))["book"]
        self.policy.write_text(POLICY.format(**world.ids, book=of), "utf-8")

    def sign(self, book, name, *names, ending="json"):
        """As two people do it who use the commands."""
        path = self.home / f"{name}.{ending}"
        _, envelope = export_signed(book, path, self.world.keys["ana"], datetime.now(UTC))
        sign_file(envelope, self.world.home / "ben.pem", envelope, str)
        if ending == "json":
            self.sign(book, name, ending="csv")

    def words(self, path, *more):
        keys = [f"--key={self.world.home / name}.pub.pem" for name in ("ana", "ben")]
        own = [f"--policy={self.policy}", f"--book={self.book}"]
        return [str(path), *keys, *own, *map(str, more)]

    def copy(self, folder, name, ending="json", signed_as=None):
        """An export, and beside it the envelope of this one or of another."""
        path = folder / f"releases.{ending}"
        shutil.copy(self.home / f"{name}.{ending}", path)
        beside = f"{signed_as or name}.{ending}{ENDING}"
        shutil.copy(self.home / beside, f"{path}{ENDING}")
        return path


@cache
def exports_of(world: World) -> Exports:
    return Exports(world)


def right_exports(world):
    """What must pass: the newest export, and an older one where nobody asks for the newest."""
    exports = exports_of(world)
    old = exports.words(exports.home / "old.csv")
    return {
        "export": exports.words(exports.home / "new.json"),
        "export as a table": exports.words(exports.home / "new.csv"),
        "older export": [each for each in old if "--policy" not in each],
    }


def text_edit(change, ending="json"):
    def make(world, folder):
        exports = exports_of(world)
        path = exports.copy(folder, "new", ending)
        changed = change(path.read_bytes().decode())
        path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
        return exports.words(path)

    return make


def lines(change, ending="json"):
    """An edit of the lines; those of releases are all but the first and, of JSON, the last."""

    def on(text):
        rows = text.splitlines(keepends=True)
        last = rows[-1:] if ending == "json" else []
        own = rows[1 : len(rows) - len(last)]
        made = change(own)
        if ending == "json":
            made = [each.rstrip(",\n") + ",\n" for each in made]
            made[-1:] = [made[-1].rstrip(",\n") + "\n"]
        return "".join([*rows[:1], *made, *last])

    return text_edit(on, ending)


for ending in ("json", "csv"):
    for name, change in {
        "the last release left out": lambda own: own[:-1],
        "the first release left out": lambda own: own[1:],
        "one between left out": lambda own: [*own[:2], *own[3:]],
        "one release left": lambda own: own[:1],
    }.items():
        add("export truncated", f"{name}, {ending}", lines(change, ending), OTHER_FILE)
    for name, change in {
        "backwards": lambda own: own[::-1],
        "two exchanged": lambda own: [own[1], own[0], *own[2:]],
        "one twice": lambda own: [*own, own[-1]],
    }.items():
        add("export reordered", f"{name}, {ending}", lines(change, ending), OTHER_FILE)
    add("export truncated", f"cut, {ending}", text_edit(lambda t: t[:-9], ending), OTHER_FILE)
    add("export truncated", f"empty, {ending}", text_edit(lambda t: "", ending), OTHER_FILE)
    for name, (before, after) in {
        "another purpose": ("later 1", "lunch 1"),
        "another person": ("ann", "bob"),
        "another status": ("reserved", "abandoned"),
        "another data set": ("visits", "visit5"),
        "a Cyrillic letter": ("later", "l\u0430ter"),
    }.items():
        add(
            "export edited",
            f"{name}, {ending}",
            text_edit(lambda t, b=before, a=after: t.replace(b, a, 1), ending),
            OTHER_FILE,
        )
    for name, change in {
        "a byte order mark": lambda t: "\ufeff" + t,
        "line ends of Windows": lambda t: t.replace("\n", "\r\n"),
        "a line break more": lambda t: t + "\n",
        "not UTF-8": lambda t: t.encode() + b"\xff",
    }.items():
        add("export edited", f"{name}, {ending}", text_edit(change, ending), OTHER_FILE)
for name, change in {
    "cheaper": lambda t: t.replace('"sigma":2.0', '"sigma":9.0'),
    "a larger budget": lambda t: t.replace('"rho":9.0', '"rho":99.0'),
    "another head": lambda t: t.replace('"hash":"', '"hash":"0', 1),
    "more lines": lambda t: t.replace('"lines":', '"lines":1', 1),
    "a key twice": lambda t: t.replace('{"book"', '{"book":"","book"', 1),
    "pretty": lambda t: files.pretty_json(json.loads(t)),
}.items():
    add("export edited", name, text_edit(change), OTHER_FILE)


def replayed(name, signed_as, ending="json"):
    def make(world, folder):
        exports = exports_of(world)
        return exports.words(exports.copy(folder, name, ending, signed_as))

    return make


for ending in ("json", "csv"):
    add(
        "older export replayed",
        f"with its signatures, {ending}",
        replayed("old", "old", ending),
        "the book has had 2 lines since",
    )
    add(
        "export of another book",
        f"with its signatures, {ending}",
        replayed("other", "other", ending),
        "is not the one that was signed: this is another book",
    )
    for name, other in (("old", "new"), ("new", "old"), ("other", "new"), ("new", "other")):
        add(
            "export's signatures swapped",
            f"{name} under those of {other}, {ending}",
            replayed(name, other, ending),
            OTHER_FILE,
        )


def without_the_book(world, folder):
    exports = exports_of(world)
    words = exports.words(exports.copy(folder, "old"))
    return [each for each in words if not each.startswith("--book")]


add("older export replayed", "without the book", without_the_book, "give it with --book")


def older_book_beside(world, folder):
    """Another book in place of the one that the policy names, whose export it is."""
    exports = exports_of(world)
    words = exports.words(exports.copy(folder, "other"))
    return [*words[:-1], f"--book={exports.home / 'elsewhere.db'}"]


add("export of another book", "with that book", older_book_beside, "the policy wants")


def envelope_edit(change):
    """The export as it is, and another envelope beside it."""

    def make(world, folder):
        exports = exports_of(world)
        path = exports.copy(folder, "new")
        beside = path.with_name(path.name + ENDING)
        made = change(world, exports, json.loads(beside.read_text("utf-8")))
        beside.write_text(json.dumps(made), "utf-8")
        return exports.words(path)

    return make


def statement_edit(change):
    def made(world, exports, envelope):
        statement = payload_of(envelope)
        change(statement)
        return with_payload(envelope, files.canonical_json(statement).encode())

    return envelope_edit(made)


for name, change in {
    "more lines": lambda s: s["predicate"].update(lines=99),
    "fewer lines": lambda s: s["predicate"].update(lines=3),
    "another head": lambda s: s["predicate"].update(head="0" * 64),
    "another book": lambda s: s["predicate"].update(book="0" * 32),
    "a newer version": lambda s: s["predicate"].update(dpaudit="9.9"),
    "an hour later": lambda s: s["predicate"].update(signed_at="2030-01-01T00:00:00Z"),
    "no time": lambda s: s["predicate"].pop("signed_at"),
    "another file": lambda s: s["subject"][0]["digest"].update(sha256="0" * 64),
    "a certificate's type": lambda s: s.update(predicateType="urn:dpaudit:certificate:2"),
}.items():
    add("export's statement edited", name, statement_edit(change), ELSEWHERE)


def signed_by(*names, change=lambda statement: statement):
    """The statement of the new export, signed by these who have keys of their own."""

    def made(world, exports, envelope):
        whole = Envelope.from_json(json.dumps(envelope).encode())
        return world.with_signature(change(Statement.from_envelope(whole, None)), *names)

    return envelope_edit(made)


add("export signed by others", "Eve", signed_by("eve"), "none of the given keys")
add("export signed by others", "Ana and Eve", signed_by("ana", "eve"), "1 of the policy's keys")
add("export signed by others", "one of two", signed_by("ana"), "1 of the policy's keys")


def stated(**facts):
    return signed_by(change=lambda s: replace(s, predicate={**s.predicate, **facts}))


for name, facts in {
    "a key more": {"note": "trust me"},
    "lines a text": {"lines": "7"},
    "lines true": {"lines": True},
    "a version that is none": {"dpaudit": 1},
}.items():
    add("export's statement is none", name, stated(**facts), "sign it again")
add(
    "export's statement is none",
    "another name",
    signed_by(change=lambda s: replace(s, subjects=[{**s.subjects[0], "name": "all of it"}])),
    "sign it again",
)
add(
    "export's statement is none",
    "no subject",
    signed_by(change=lambda s: replace(s, subjects=[])),
    "sign it again",
)
add(
    "export's statement is none",
    "of a certificate",
    envelope_edit(lambda world, exports, envelope: world.read("good")),
)


def for_a_certificate(world, folder):
    """What was signed of an export, in place of what was signed of a certificate."""
    exports = exports_of(world)
    beside = f"{exports.copy(folder, 'new')}{ENDING}"
    return world.words(world.file, f"--signature={beside}", run=False)


add("export's statement is none", "for a certificate", for_a_certificate, OTHER_FILE)


def insiders(world, folder):
    """Ana and Ben sign what the book's log never came to."""
    exports = exports_of(world)
    path = folder / "releases.csv"
    text = (exports.home / "new.csv").read_text("utf-8").replace("later 1", "lunch 1")
    path.write_text(text, "utf-8")
    beside = exports.home / f"new.csv{ENDING}"
    own = Statement.from_envelope(Envelope.from_json(beside.read_bytes()), None)
    digest = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    stated = replace(own, subjects=[{**own.subjects[0], "digest": digest}])
    path.with_name(path.name + ENDING).write_text(json.dumps(world.with_signature(stated)), "utf-8")
    return exports.words(path)


add(
    "export that the log contradicts",
    "signed by all",
    insiders,
    "does not agree with the book's log",
)
