"""Who asks: bearer tokens of programs, sessions of people, and what is logged of those refused."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import Counter, OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from dpaudit.base.errors import AccessError, DpAuditError
from dpaudit.book import Book, Role, Token, holder, record_refusal, still_held

COOKIE = "dpaudit-session"
SECONDS = 8 * 3600
"""How long a session lasts."""
_MOST_SESSIONS, _MOST_OF_ONE = 1000, 20
_PAUSE, _MOST_LINES, _DAY = 60.0, 50, 86400.0


@dataclass(frozen=True)
class Caller:
    """Somebody with a token that holds.

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
            raise AccessError(f"{what} needs the role {least}; the token's is {self.token.role}.")

    def require_proof(self, given: str) -> None:
        """Refuse a form that is not of this session: another site may have sent it.

        Raises:
            AccessError: saying what to do.
        """
        if not hmac.compare_digest(self.proof.encode(), given.encode("utf-8", "replace")):
            raise AccessError("the form is not of this session; open the page again.")


@dataclass(frozen=True)
class _Session:
    token: Token
    proof: str
    until: float


class Callers:
    """Knows callers by their tokens and sessions, of which it keeps nothing that would let one in.

    Every request asks the book again, so that a token that was revoked holds nowhere.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()

    def by_token(self, secret: str) -> Caller:
        """Who holds a token.

        Raises:
            AccessError: if it does not hold.
        """
        return Caller(holder(self._book, secret))

    def begin(self, secret: str) -> str:
        """A session of who holds a token: what its cookie says.

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
        """Whose session it is; None where it is over."""
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
    """Writes into the book's log who tried what they may not, so that no flood can fill it.

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
