"""The actions for programs: JSON in and out, each caller by a bearer token.

Pages call the same functions, among them the search for releases, a page at a time and the newest
first. Who may do what is said in one table, and whoever may not is refused and logged.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi import Path as InPath
from sqlalchemy import text

from dpaudit.base.errors import AccessError, InputError
from dpaudit.book import Book, Release, RemainingBudget, Role, Status, decide, remaining_budgets
from dpaudit.book.booking import records_of, renderer_of
from dpaudit.book.server.request_context import Caller, ServerContext

_NUMBER = "CAST(substr(id, 2) AS BIGINT)"
_SOUGHT = ("id", "request", "dataset", "by", "approved", "purpose", "plan", "certificate", "made")
_LARGEST = 2**62


@dataclass(frozen=True)
class Found:
    """One page of releases.

    Attributes:
        releases: the newest first.
        before: where the next page begins; 0 where there is none.
    """

    releases: tuple[Release, ...]
    before: int


def find(
    book: Book,
    *,
    words: str = "",
    dataset: str = "",
    status: str = "",
    before: int = 0,
    most: int = 50,
) -> Found:
    """Find releases of which some field holds all the words, whatever their case.

    Args:
        book: the book.
        words: sought in ids, names, purposes, days and hashes.
        dataset: of one data set alone.
        status: of one status alone.
        before: the number of a release, older than which they all are; 0 for the newest.
        most: so many at most, 1 to 1000.

    Raises:
        InputError: if a number is out of bounds.
    """
    if not (1 <= most <= 1000 and 0 <= before < _LARGEST):
        raise InputError(
            f"limit is {most}; it must be from 1 to 1000, and before must not be negative."
        )
    if not (dataset + status).isprintable():
        return Found((), 0)
    sought = words.casefold().split()[:20]
    found: list[Release] = []
    with book.reading() as connection:
        asked, given = _asked(sought, dataset, status, before or _LARGEST)
        rows = connection.execution_options(stream_results=True, max_row_buffer=200)
        with closing(rows.execute(text(asked), given)) as cursor:
            for row in cursor:
                record = json.loads(row.record)
                if all(any(word in field for field in _fields(record)) for word in sought):
                    found.append(Release.from_dict(record))
                    if len(found) > most:
                        break
    more = len(found) > most
    return Found(tuple(found[:most]), int(found[most - 1].id[1:]) if more else 0)


def _fields(record: dict[str, Any]) -> Iterator[str]:
    return (str(record[name]).casefold() for name in _SOUGHT)


def _asked(sought: list[str], dataset: str, status: str, before: int) -> tuple[str, dict[str, Any]]:
    """Write SQL for what may be meant: the database sees texts as JSON has them."""
    given: dict[str, Any] = {"before": before}
    where = [f"{_NUMBER} < :before"]
    for name, value in (("dataset", dataset), ("status", status)):
        if value:
            where.append(f"{name} = :{name}")
            given[name] = value
    for number, word in enumerate(sought):
        if word.isascii() and word.isprintable() and not set(word) & set('"\\%_'):
            where.append(f"LOWER(record) LIKE :word{number}")
            given[f"word{number}"] = f"%{word}%"
    asked = f"SELECT record FROM release WHERE {' AND '.join(where)} ORDER BY {_NUMBER} DESC"
    return asked, given


Id = Annotated[str, InPath(pattern="^R[0-9]{1,18}$", description="Such as R7.")]
Words = Annotated[str, Query(max_length=200)]
_STRICT = {"extra": "forbid"}
MEDIA = {"json": "application/json", "csv": "text/csv", "registry.yaml": "application/yaml"}
"""The formats of an export."""


@dataclass
class Wanted:
    """A plan to be charged.

    Attributes:
        dataset: name of the data set.
        plan: a plan file, as text or as its tables; or what Plan.to_dict wrote.
        purpose: what it is for.
        request: chosen by who asks; however often it is sent, it is charged once.
        period: the days whose data are read, as 2026-11-16..2026-11-22.
        approved: who approved it, where no budget asks for approval in the book.
    """

    __pydantic_config__ = _STRICT
    dataset: str
    plan: str | dict[str, Any]
    purpose: str
    request: str
    period: str = ""
    approved: str = ""


@dataclass
class Asked:
    """A plan of which to know whether it would fit."""

    __pydantic_config__ = _STRICT
    dataset: str
    plan: str | dict[str, Any]
    period: str = ""


@dataclass
class Ended:
    """The end of a release: the text of its journal, or why it was abandoned or withdrawn."""

    __pydantic_config__ = _STRICT
    journal: str = ""
    certificate: str = ""
    abandoned: str = ""
    withdrawn: str = ""


@dataclass
class Remark:
    """A reason for a decision."""

    __pydantic_config__ = _STRICT
    why: str = ""


@dataclass(frozen=True)
class Api:
    """The actions. Each is a method whose docstring the OpenAPI document repeats."""

    context: ServerContext

    @property
    def _routes(self) -> list[tuple[str, str, Callable[..., Any], Role | None]]:
        return [
            ("GET", "/api/public", self.public, None),
            ("GET", "/api/status", self.status, Role.VIEWER),
            ("POST", "/api/fit", self.fit, Role.VIEWER),
            ("GET", "/api/releases", self.history, Role.VIEWER),
            ("GET", "/api/releases/{release}", self.release, Role.VIEWER),
            ("POST", "/api/releases", self.reserve, Role.ANALYST),
            ("POST", "/api/releases/{release}/close", self.close, Role.ANALYST),
            ("POST", "/api/releases/{release}/approve", self.approve, Role.APPROVER),
            ("POST", "/api/releases/{release}/deny", self.deny, Role.ANALYST),
            ("GET", "/api/export/{kind}", self.export, Role.VIEWER),
            ("POST", "/api/verify", self.verify, Role.VIEWER),
        ]

    def mount(self, app: FastAPI) -> None:
        """Offer every action, to those whose role may."""
        for method, path, action, least in self._routes:
            needed = [] if least is None else [Depends(_needs(least, action.__name__))]
            extra: dict[str, Any] = {} if least is None else {"security": [{"token": []}]}
            extra["description"] = f"{cleandoc(str(action.__doc__))} Role: {least or 'none'}."
            app.add_api_route(
                path,
                action,
                methods=[method],
                dependencies=needed,
                openapi_extra=extra,
                summary=str(action.__doc__).partition(".")[0],
                response_model=None,
            )

    def public(self) -> list[dict[str, Any]]:
        """Return the data sets that were declared public."""
        return [public_record(each) for each in public_budgets(self.context)]

    def status(self, dataset: Words = "", period: Words = "") -> dict[str, Any]:
        """Return what is left of each budget."""
        rooms = remaining_budgets(self.context.book, dataset or None, period=period or None)
        return {"datasets": [each.to_dict() for each in rooms]}

    def fit(self, request: Request, asked: Asked) -> dict[str, Any]:
        """Count how often a plan would fit; for a plan file, find the least noise that fits."""
        plan, found = self.context.fit(caller_of(request), asked.dataset, asked.plan, asked.period)
        return {"plan": plan.hash, "times": found.times, "noise": found.noise}

    def history(
        self,
        dataset: Words = "",
        status: Words = "",
        q: Words = "",
        before: int = 0,
        limit: int = 100,
    ) -> dict[str, Any]:
        """List releases, the newest first; send ``before`` of an answer to get the next page."""
        told = {"dataset": dataset, "status": status, "before": before}
        found = find(self.context.book, words=q, most=limit, **told)  # type: ignore[arg-type]
        return {"releases": [each.to_dict() for each in found.releases], "before": found.before}

    def release(self, release: Id) -> dict[str, Any]:
        """Return one release."""
        return self.context.book.release(release).to_dict()

    def reserve(self, request: Request, wanted: Wanted, response: Response) -> dict[str, Any]:
        """Charge a plan before any of it runs.

        The same request is charged once. If a budget asks for a second person, the release is
        ``requested``, and holds its charge until somebody decides.
        """
        told = vars(wanted) | {"period": wanted.period or None}
        made = self.context.reserve(by=caller_of(request).name, **told).release
        response.status_code = 202 if made.status is Status.REQUESTED else 200
        return made.to_dict()

    def close(self, request: Request, release: Id, ended: Ended) -> dict[str, Any]:
        """Record that a release ran, was abandoned, or is withdrawn as nothing of it ran.

        What is withdrawn gives its whole charge back; a ledger must not have begun. What a journal
        proves not to have run is given back too. Analysts close their own releases, and approvers
        close any.
        """
        closed = close(self.context, caller_of(request), release, **vars(ended))
        return closed.to_dict()

    def approve(self, request: Request, release: Id, remark: Remark) -> dict[str, Any]:
        """Approve a release that somebody else asked for."""
        caller = caller_of(request)
        done = decide(self.context.book, release, by=caller.name, approve=True, why=remark.why)
        return done.to_dict()

    def deny(self, request: Request, release: Id, remark: Remark) -> dict[str, Any]:
        """Deny a release, or withdraw your own; its charge is given back."""
        return deny(self.context, caller_of(request), release, remark.why).to_dict()

    def export(self, request: Request, kind: str) -> Response:
        """Return all releases as ``json``, ``csv`` or ``registry.yaml``."""
        return download(self.context, caller_of(request), kind)

    def verify(self, request: Request) -> dict[str, Any]:
        """Recompute the whole book from its log."""
        facts, why = self.context.verify(caller_of(request))
        return {"holds": False, "why": why} if why else {"holds": True, **facts}


def caller_of(request: Request) -> Caller:
    """Tell who asks.

    Raises:
        AccessError: if nobody is known.
    """
    known: Caller | None = request.scope.get("dpaudit.caller")
    if known is None:
        raise AccessError("nobody is signed in; send a token of this book as a bearer token.")
    return known


def _needs(least: Role, what: str) -> Callable[[Request], None]:
    def check(request: Request) -> None:
        request.scope["dpaudit.action"] = what
        caller_of(request).require(least, what)

    return check


def close(
    context: ServerContext,
    caller: Caller,
    release: str,
    *,
    journal: str = "",
    certificate: str = "",
    abandoned: str = "",
    withdrawn: str = "",
) -> Release:
    """End a release of the caller's own, or as an approver any.

    Raises:
        AccessError: if it is another's.
        InputError: if the certificate is no hash, or what is withdrawn has more than a reason.
    """
    _require_own(context, caller, release, "close")
    if withdrawn:
        if journal or certificate or abandoned:
            raise InputError("withdrawn is given with another field; give it alone.")
        return context.book.withdraw(release, by=caller.name, why=withdrawn)
    if certificate and not re.fullmatch("[0-9a-f]{64}", certificate):
        raise InputError("certificate must be the hash of a certificate, 64 hexadecimal digits.")
    told = {"by": caller.name, "certificate": certificate, "abandoned": abandoned}
    with _file(journal) as path:
        return context.book.close(release, journal=path, **told)


def deny(context: ServerContext, caller: Caller, release: str, why: str) -> Release:
    """Deny a release, or withdraw one's own.

    Raises:
        AccessError: if it is another's, and the caller is no approver.
    """
    _require_own(context, caller, release, "deny")
    return decide(context.book, release, by=caller.name, approve=False, why=why)


def _require_own(context: ServerContext, caller: Caller, release: str, what: str) -> None:
    if context.book.release(release).by != caller.name:  # not of one whose name looks like it
        caller.require(Role.APPROVER, f"{what} of somebody else's release")


@contextmanager
def _file(journal: str) -> Iterator[Path | None]:
    if not journal:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.jsonl")
        path.write_text(journal, "utf-8")
        yield path


def download(context: ServerContext, who: Caller, kind: str) -> Response:
    """Return all releases, to be kept as a file.

    Raises:
        InputError: if it is no format of exports.
    """
    if kind not in MEDIA:
        raise InputError(f"the export must be one of {', '.join(MEDIA)}.")
    with context.heavy(who):
        content = renderer_of(Path(f"releases.{kind}"))(records_of(context.book))
    headers = {"Content-Disposition": f'attachment; filename="releases.{kind}"'}
    return Response(content, media_type=MEDIA[kind], headers=headers)


def public_budgets(context: ServerContext) -> list[RemainingBudget]:
    """Return what is left of the data sets that were declared public."""
    return [each for each in remaining_budgets(context.book) if each.dataset.public]


def public_record(known: RemainingBudget) -> dict[str, Any]:
    """Return what anybody may see of a public data set: no person, no purpose that is not done."""
    budgets = [
        {name: each.to_dict()[name] for name in ("limit", "window", "bucket", "reached", "share")}
        for each in known.left
    ]
    about = {name: known.dataset.to_dict()[name] for name in ("name", "unit", "relation", "trust")}
    closed = known.words.get(Status.CLOSED.word, 0)
    return about | {"per": known.dataset.per, "budgets": budgets, "closed": closed}
