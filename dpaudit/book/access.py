"""Who may do what: tokens of people, approval by a second person, what anybody may see.

Commands and server call it; each change is a line of the book's log. Of a token the book keeps the
hash alone, and nobody approves what they asked for themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from sqlalchemy import text

from dpaudit.base.errors import AccessError, InputError
from dpaudit.base.names import checked_name, same_person
from dpaudit.base.validate import shown
from dpaudit.book.book import Book
from dpaudit.book.records import Release, Role, Status, Token, checked_text
from dpaudit.book.store import Page, Transaction

_PREFIX = "dpaudit_"
"""By which scanners for secrets know a token that was published by mistake."""


def issue(book: Book, name: str, role: Role | str, *, by: str, until: str = "") -> str:
    """Give somebody a token, in place of the one that they had.

    Args:
        book: the book.
        name: whose it is, which releases then say of who asked and who approved.
        role: what its holder may do.
        by: who gives it.
        until: the last day on which it holds.

    Returns:
        Its text, of which the book keeps the hash alone.

    Raises:
        InputError: if a field is wrong.
    """
    if until:
        _require_day(until, book.today)
    if name not in (each.name for each in tokens(book)):
        checked_name(name=checked_text(name=name))
    made = _PREFIX + secrets.token_urlsafe(32)
    record = {"name": name, "role": role, "hash": _hashed(made), "until": until}
    _enter(book, Token.from_dict(record), by)
    return made


def revoke(book: Book, name: str, *, by: str) -> None:
    """Let a token no longer hold.

    Raises:
        InputError: if there is none that does.
    """
    known = next((each for each in tokens(book) if each.name == name), None)
    if known is None or known.revoked:
        raise InputError(f"name is {shown(name)}; it must be the name of a valid token.")
    _enter(book, replace(known, revoked=True), by)


def _enter(book: Book, token: Token, by: str) -> None:
    who = checked_text(by=by)
    book.change(Transaction(lambda page: page.write("token", who, record=token.to_dict())))


def _require_day(until: str, today: date) -> None:
    try:
        fine = date.fromisoformat(until) >= today
    except ValueError:
        fine = False
    if not fine:
        raise InputError(f"until is {shown(until)}; it must be a future day, such as 2027-01-31.")


def tokens(book: Book) -> tuple[Token, ...]:
    """Return all tokens, by name; of each the hash."""
    return tuple(_tokens(book, "SELECT record FROM token ORDER BY name"))


def _tokens(book: Book, asked: str, **wanted: str) -> Iterator[Token]:
    with book.reading() as connection:
        rows = connection.execute(text(asked), wanted).all()
    yield from (Token.from_dict(json.loads(row.record)) for row in rows)


def holder(book: Book, secret: str) -> Token:
    """Return the token of that text.

    Raises:
        AccessError: if there is none, or it holds no longer.
    """
    wanted = _hashed(secret)
    known = next(_tokens(book, "SELECT record FROM token WHERE hash = :hash", hash=wanted), None)
    if known is None or not hmac.compare_digest(known.hash, wanted):
        raise AccessError("the token does not belong to this book; ask for a valid one.")
    return still_held(book, known)


def still_held(book: Book, token: Token) -> Token:
    """Return a token that holds.

    Raises:
        AccessError: if it was revoked or replaced, or its last day is over.
    """
    asked = "SELECT record FROM token WHERE name = :name"
    known = next(_tokens(book, asked, name=token.name), None)
    if known is None or known.revoked or known.hash != token.hash:
        raise AccessError("the token was revoked; ask for a new one.")
    if known.until and date.fromisoformat(known.until) < book.today:
        raise AccessError("the token has expired; ask for a new one.")
    return known


def _hashed(secret: str) -> str:
    """Hash a token: of 256 random bits a quick hash is as good as a slow one."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def decide(book: Book, release: str, *, by: str, approve: bool, why: str = "") -> Release:
    """Approve or deny a release that waits for it; what is denied gives its charge back.

    Args:
        book: the book.
        release: its id.
        by: who decides: to approve, somebody else than who asked. Who asked may withdraw it.
        approve: or deny.
        why: a remark; needed to deny.

    Raises:
        AccessError: if who asked approves.
        InputError: if it does not wait, or was decided otherwise.
    """
    who = checked_text(by=by)
    said = checked_text(why=why) if why or not approve else ""
    status = Status.RESERVED if approve else Status.DENIED

    def run(page: Page) -> Release:
        known = page.state.release(release)
        if known.status is not Status.REQUESTED:
            if known.status is status and (not approve or known.approved == who):
                return known
            raise InputError(f"release {release} is {known.status}; there is nothing to decide.")
        if approve and same_person(who, known.by):
            raise AccessError(f"{who} asked for release {release}; somebody else must approve it.")
        if approve:
            page.write("approved", who, release=release, why=said)
        else:
            page.end_unused(known, who, status=status, why=said)
        return page.state.releases[release]

    return book.change_release(release, run)


def publish(book: Book, dataset: str, *, by: str, public: bool = True) -> None:
    """Declare that anybody may see what is released about a data set, or that nobody else may.

    Raises:
        InputError: if there is none of that name.
    """
    who = checked_text(by=by)

    def run(page: Page) -> None:
        if bool(page.state.dataset(dataset).public) is not public:
            page.write("published", who, dataset=dataset, public=public)

    book.change(Transaction(run))


def record_refusal(book: Book, by: str, *, what: str, why: str, times: int = 1) -> None:
    """Write into the log that somebody tried what they may not, so many times."""
    facts = {"what": what[:200], "why": why[:200], "times": times}
    book.change(Transaction(lambda page: page.write("barred", by[:200] or "nobody", **facts)))
