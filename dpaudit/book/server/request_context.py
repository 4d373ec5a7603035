"""What every request needs: the book, who asks, what was sent, and what may be heavy."""

from __future__ import annotations

import re
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dpaudit.base.errors import DpAuditError, InputError, TamperedError
from dpaudit.base.validate import shown
from dpaudit.book import Book, RemainingBudget, Reservation, remaining_budgets, verify_book
from dpaudit.book.booking import Booking, Fit, fit_of
from dpaudit.book.server.budget_history import BudgetHistory
from dpaudit.book.server.callers import Callers, Denials
from dpaudit.book.server.certificate_store import CertificateStore
from dpaudit.plan import Plan
from dpaudit.project.plan_file import read_plan

_LONGEST_PLAN, _MOST_USES, _MOST_PARTS = 64_000, 1000, 100
_SECONDS = 4.0
"""For the noise that fits; it is less than others wait for their turn."""


class BusyError(DpAuditError):
    """What takes long is done for somebody else; nothing was done."""


class TooLargeError(DpAuditError):
    """More was sent than is read, or it would take too long."""


@dataclass
class ServerContext:
    """What a server has at hand.

    Attributes:
        book: the book.
        shelf: certificates by hash.
        secure: whether browsers speak TLS, to it or to its proxy.
    """

    book: Book
    shelf: CertificateStore
    secure: bool = False
    callers: Callers = field(init=False)
    denials: Denials = field(init=False)
    course: BudgetHistory = field(init=False)

    def __post_init__(self) -> None:
        self.callers, self.denials = Callers(self.book), Denials(self.book)
        self.course = BudgetHistory(self.book)
        self._heavy = threading.BoundedSemaphore(2)

    @contextmanager
    def heavy(self) -> Iterator[None]:
        """A turn at what takes long: two at a time, so that a server stays one for all.

        Raises:
            BusyError: if there is none soon.
        """
        if not self._heavy.acquire(timeout=5):
            raise BusyError("others compute something now; ask again in a while.")
        try:
            yield
        finally:
            self._heavy.release()

    @property
    def names(self) -> list[str]:
        """The names of the data sets."""
        return [each.dataset.name for each in remaining_budgets(self.book)]

    def room(self, dataset: str, period: str | None = None) -> RemainingBudget:
        """What is left of a data set."""
        return remaining_budgets(self.book, dataset, period=period or None)[0]

    def fit(self, dataset: str, plan: Any, period: str | None = None) -> tuple[Plan, Fit]:
        """What could still be released of a plan, and for the tables of a file with what noise.

        Raises:
            TooLargeError: if that noise is not found soon.
        """
        with self.heavy():
            read, content = plan_of(plan)
            end = time.monotonic() + _SECONDS
            return read, fit_of(self.room(dataset, period), read, content, partial(_in_time, end))

    def reserve(self, plan: Any, **told: Any) -> Reservation:
        """Charge a plan, in any form, as :meth:`dpaudit.book.Book.reserve` does."""
        with self.heavy():
            return Booking(self.book, **told).reserve(plan_of(plan)[0])

    def verify(self) -> tuple[dict[str, Any], str]:
        """What the book's log adds up to; or nothing, and why the book does not hold."""
        with self.heavy():
            try:
                return verify_book(self.book), ""
            except TamperedError as error:
                return {}, str(error)


def _in_time(end: float) -> None:
    if time.monotonic() > end:
        raise TooLargeError(
            "the least noise takes too long to be found here; ask for fewer invocations, or with "
            "dpaudit book status --plan."
        )


_DECIMAL = re.compile(r"\d\.\d")


def plan_of(given: Any) -> tuple[Plan, Mapping[str, Any] | None]:
    """A plan, and the tables of its file if it is one.

    Args:
        given: the text of a plan file, its tables, or what ``Plan.to_dict`` wrote.

    Raises:
        InputError: if it is none of them, or too long.
    """
    if isinstance(given, str):
        if len(given) > _LONGEST_PLAN:
            raise InputError(f"plan has {len(given)} letters; at most {_LONGEST_PLAN} are read.")
        if any(_DECIMAL.sub("", line).count(".") > _MOST_PARTS for line in given.splitlines()):
            raise InputError(f"plan has a line with more than {_MOST_PARTS} dots; nest it less.")
        try:
            given = tomllib.loads(given)
        except (ValueError, RecursionError) as error:
            raise InputError(f"plan is not TOML: {error!s:.200}.") from None
    if not isinstance(given, Mapping):
        raise InputError(f"plan is {shown(given)}; it must be a plan file, or its tables.")
    uses = given.get("invocations", given.get("invocation"))
    if isinstance(uses, list) and len(uses) > _MOST_USES:
        raise InputError(f"plan has more than {_MOST_USES} invocations; reserve it by command.")
    if "invocations" in given:
        return Plan.from_dict(given), None
    return read_plan(given).plan, given


def shelf_of(folder: Path | None) -> CertificateStore:
    """The certificates of a folder.

    Raises:
        InputError: if it is no folder.
    """
    if folder is not None and not folder.is_dir():
        raise InputError(f"certificates is {shown(str(folder))}; it must be a folder.")
    return CertificateStore(folder)
