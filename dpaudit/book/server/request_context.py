"""What every request needs: the book, who asks, what was sent, and a turn at what takes long.

Who asks is known by a bearer token or a session; the book is asked again each time, so that a token
that was revoked holds nowhere. Refusals go to the book's log, however many there are, in few lines.
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
import time
import tomllib
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dpaudit.base.errors import AccessError, DpAuditError, InputError, TamperedError
from dpaudit.base.validate import shown
from dpaudit.book import (
    Book,
    RemainingBudget,
    Reservation,
    Role,
    Token,
    holder,
    record_refusal,
    remaining_budgets,
    still_held,
    verify_book,
)
from dpaudit.book.booking import Booking, Fit, fit_of
from dpaudit.book.server.budget_history import BudgetHistory
from dpaudit.book.server.certificate_store import CertificateStore
from dpaudit.plan import Plan
from dpaudit.project.plan_file import read_plan

COOKIE = "dpaudit-session"
SECONDS = 8 * 3600
"""How long a session lasts."""
_MOST_SESSIONS, _MOST_OF_ONE = 1000, 20
_PAUSE, _MOST_LINES, _DAY = 60.0, 50, 86400.0


@dataclass(frozen=True)
class Caller:
    """A person or program with a token that holds.

    Attributes:
        token: what the book knows of them.
        proof: what every form of their session repeats; empty for a program.
    """

    token: Token
    proof: str = ""

    @property
    def name(self) -> str:
        """Whose token it is."""
        return self.token.name

    def require(self, least: Role, what: str) -> None:
        """Refuse what this role may not.

        Raises:
            AccessError: saying which role may.
        """
        if not self.token.role.may(least):
            raise AccessError(f"{what} needs the role {least}; this token has {self.token.role}.")

    def require_proof(self, given: str) -> None:
        """Refuse a form that is not of this session: another site may have sent it.

        Raises:
            AccessError: saying what to do.
        """
        if not hmac.compare_digest(self.proof.encode(), given.encode("utf-8", "replace")):
            raise AccessError("the form does not belong to this session; open the page again.")


@dataclass(frozen=True)
class _Session:
    token: Token
    proof: str
    until: float


class Callers:
    """The callers, by tokens and sessions, of which nothing is kept that would let one in.

    Every request asks the book again, so that a token that was revoked holds nowhere.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()

    def by_token(self, secret: str) -> Caller:
        """Tell who holds a token.

        Raises:
            AccessError: if it does not hold.
        """
        return Caller(holder(self._book, secret))

    def begin(self, secret: str) -> str:
        """Return a session of who holds a token: what its cookie says.

        Raises:
            AccessError: if the token does not hold.
        """
        token, cookie = holder(self._book, secret), secrets.token_urlsafe(32)
        made = _Session(token, secrets.token_urlsafe(32), time.monotonic() + SECONDS)
        with self._lock:
            own = [key for key, each in self._sessions.items() if each.token.hash == token.hash]
            for key in own[: 1 - _MOST_OF_ONE]:  # so that nobody's end because of another's
                del self._sessions[key]
            self._sessions[self._hashed(cookie)] = made
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return cookie

    def by_session(self, cookie: str) -> Caller | None:
        """Tell whose session it is; None where it is over."""
        with self._lock:
            known = self._sessions.get(self._hashed(cookie))
        if known is None or known.until < time.monotonic():
            return None
        try:
            return Caller(still_held(self._book, known.token), known.proof)
        except AccessError:
            self.end(cookie)
            return None

    def end(self, cookie: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(self._hashed(cookie), None)

    def _hashed(self, cookie: str) -> str:
        return hmac.digest(self._key, cookie.encode("utf-8", "replace"), "sha256").hex()


class Denials:
    """The denied attempts, written into the book's log so that no flood can fill it.

    The first attempt of each caller and action has a line at once, and then there is at most one a
    minute, which counts what came since the one before: of each caller 50 a day, those of whom
    nobody knows the name together.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._waiting: Counter[tuple[str, str]] = Counter()
        self._next: dict[tuple[str, str], float] = {}
        self._written: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def record(self, by: str, what: str, why: str) -> None:
        """Count a denied attempt, and log it if it is time to.

        Args:
            by: who tried it; empty where nobody knows.
            what: one of the server's actions, never what was sent.
            why: in the server's words.
        """
        key, now = (by, what), time.monotonic()
        with self._lock:
            self._waiting[key] += 1
            own = [at for at in self._written.get(by, []) if now - at < _DAY]
            self._written[by] = own
            again = key in self._next
            if again and (now < self._next[key] or len(own) >= _MOST_LINES):
                return
            times = self._waiting.pop(key)
            self._next[key] = now + _PAUSE
            own.append(now)
        self._log(by, what, why, times)

    def flush(self) -> None:
        """Log what was only counted, in one line for each caller."""
        with self._lock:
            waiting, self._waiting = self._waiting, Counter()
        counted = Counter[str]()
        for (by, _), times in waiting.items():
            counted[by] += times
        for by, times in counted.items():
            self._log(by, "several", "counted until the server ended", times)

    def _log(self, by: str, what: str, why: str, times: int) -> None:
        with suppress(DpAuditError):  # a book that does not answer must not let anybody in
            record_refusal(self._book, by, what=what, why=why, times=times)


_LONGEST_PLAN, _MOST_USES, _MOST_PARTS = 64_000, 1000, 100
_SECONDS, _WAIT = 4.0, 5.0
"""For the search for noise, and to wait for a turn, which comes once a search has ended."""


class BusyError(DpAuditError):
    """An error: what takes long is done for somebody else; nothing was done."""


class TooLargeError(DpAuditError):
    """An error: more was sent than is read, or it would take too long."""


@dataclass
class ServerContext:
    """The things that a server has at hand.

    Attributes:
        book: the book.
        certificates: certificates by hash.
        secure: whether browsers speak TLS, to it or to its proxy.
    """

    book: Book
    certificates: CertificateStore
    secure: bool = False
    callers: Callers = field(init=False)
    denials: Denials = field(init=False)
    history: BudgetHistory = field(init=False)

    def __post_init__(self) -> None:
        self.callers, self.denials = Callers(self.book), Denials(self.book)
        self.history = BudgetHistory(self.book)
        viewers, others, reservations = map(threading.BoundedSemaphore, (2, 2, 2))
        self._turns: dict[Role | None, threading.BoundedSemaphore] = dict.fromkeys(Role, others)
        self._turns |= {Role.VIEWER: viewers, None: reservations}  # which no calculation takes

    @contextmanager
    def heavy(self, who: Caller | None) -> Iterator[None]:
        """Yield one of two turns at what takes long: viewers, others, reservations each have two.

        Raises:
            BusyError: if there is none soon.
        """
        turns = self._turns[who.token.role if who else None]
        if not turns.acquire(timeout=_WAIT):
            raise BusyError("the server is busy with other requests; ask again later.")
        try:
            yield
        finally:
            turns.release()

    @property
    def names(self) -> list[str]:
        """The names of the data sets."""
        return [each.dataset.name for each in remaining_budgets(self.book)]

    def remaining(self, dataset: str, period: str | None = None) -> RemainingBudget:
        """Return what is left of a data set."""
        return remaining_budgets(self.book, dataset, period=period or None)[0]

    def fit(self, who: Caller, dataset: str, plan: Any, period: str) -> tuple[Plan, Fit]:
        """Say how often a plan could still be released, and of a plan file with what noise.

        Raises:
            TooLargeError: if that noise is not found soon.
        """
        with self.heavy(who):
            read, content = plan_of(plan)
            end = time.monotonic() + _SECONDS
            return read, fit_of(
                self.remaining(dataset, period), read, content, partial(_in_time, end)
            )

    def reserve(self, plan: Any, **told: Any) -> Reservation:
        """Charge a plan, in any form, as :meth:`dpaudit.book.Book.reserve` does."""
        with self.heavy(None):
            return Booking(self.book, **told).reserve(plan_of(plan)[0])

    def verify(self, who: Caller) -> tuple[dict[str, Any], str]:
        """Return what the book's log adds up to; or nothing, and why the book does not hold."""
        with self.heavy(who):
            try:
                return verify_book(self.book), ""
            except TamperedError as error:
                return {}, str(error)


def _in_time(end: float) -> None:
    if time.monotonic() > end:
        raise TooLargeError(
            "the search for the least noise takes too long here; ask for fewer invocations, or use "
            "dpaudit book status --plan."
        )


_DECIMAL = re.compile(r"\d\.\d")


def plan_of(given: Any) -> tuple[Plan, Mapping[str, Any] | None]:
    """Return a plan, and the tables of its file if it is one.

    Args:
        given: the text of a plan file, its tables, or what ``Plan.to_dict`` wrote.

    Raises:
        InputError: if it is none of them, or too long.
    """
    if isinstance(given, str):
        if len(given) > _LONGEST_PLAN:
            raise InputError(f"plan has {len(given)} characters; at most {_LONGEST_PLAN} are read.")
        if any(_DECIMAL.sub("", line).count(".") > _MOST_PARTS for line in given.splitlines()):
            raise InputError(
                f"plan has a line with more than {_MOST_PARTS} dots; nest less deeply."
            )
        try:
            given = tomllib.loads(given)
        except (ValueError, RecursionError) as error:
            raise InputError(f"plan is not TOML: {error!s:.200}.") from None
    if not isinstance(given, Mapping):
        raise InputError(f"plan is {shown(given)}; it must be a plan file's text, or its tables.")
    uses = given.get("invocations", given.get("invocation"))
    if isinstance(uses, list) and len(uses) > _MOST_USES:
        raise InputError(f"plan has more than {_MOST_USES} invocations; use dpaudit book reserve.")
    if "invocations" in given:
        return Plan.from_dict(given), None
    return read_plan(given).plan, given


def certificates_in(folder: Path | None) -> CertificateStore:
    """Return the certificates of a folder.

    Raises:
        InputError: if it is not a folder.
    """
    if folder is not None and not folder.is_dir():
        raise InputError(f"certificates is {shown(str(folder))}; it must be a folder.")
    return CertificateStore(folder)
