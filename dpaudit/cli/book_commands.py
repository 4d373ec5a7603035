"""The commands of the book: what an organisation may still release, and what it has released."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaudit.cli.options import Json, Settings, foreign_code
from dpaudit.extras import require

if TYPE_CHECKING:
    from dpaudit.book import Book, Room
    from dpaudit.workflow.booking import Booking

app = typer.Typer(
    help="An organisation's privacy budget: data sets, budgets, releases.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def _option(name: str, metavar: str, about: str, **more: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=about, **more)


_URL = "A SQLite file, or postgresql://USER@HOST/NAME."
Url = Annotated[str, _option("--book", "URL", _URL, envvar="DPAUDIT_BOOK")]
BookUrl = Annotated[str | None, _option("--book", "URL", f"Charge a book: {_URL}")]
By = Annotated[str | None, _option("--by", "NAME", "Who does it; the user's name by default.")]
DataSetName = Annotated[str, _option("--dataset", "NAME", "Name of the data set.")]
OneDataSet = Annotated[str | None, _option("--dataset", "NAME", "Of this data set alone.")]
Period = Annotated[str | None, _option("--period", "FROM..TO", "The days whose data are read.")]
JournalFile = Annotated[
    Path | None, _option("--journal", "FILE", "Of its ledger: gives back what it proves not run.")
]
Purpose = Annotated[str | None, _option("--purpose", "TEXT", "What it is for.")]
Approved = Annotated[str, _option("--approved", "NAME", "Who approved it.")]
Request = Annotated[str | None, _option("--request", "ID", "The same request is charged once.")]
_DEFAULT = "book.db"


def opened(url: str) -> Book:
    """The book at a URL.

    Raises:
        UnsupportedError: if the extra is missing.
        InputError: if there is no book.
    """
    require("book", "sqlalchemy", what="the book")
    from dpaudit.book import Book

    return Book(url)


def booking_of(url: str | None, dataset: str | None, **told: str | None) -> Booking | None:
    """Where a run is charged, if it is; from options of ``dpaudit run``."""
    if url is None or dataset is None:
        return _neither(url, dataset)
    book = opened(url)
    from dpaudit.workflow.booking import Booking

    given: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    return Booking(book, dataset, **{"by": _me(None), **given})


def room_of(url: str | None, dataset: str | None) -> Room | None:
    """What is left of a data set, from options of ``dpaudit check``."""
    if url is None or dataset is None:
        return _neither(url, dataset)
    book = opened(url)
    from dpaudit.book import room

    return room(book, dataset)[0]


def _neither(url: str | None, dataset: str | None) -> None:
    if url is not dataset:
        raise typer.BadParameter("--book and --dataset go together; give both")


def _me(by: str | None) -> str:
    return by or getpass.getuser()


@app.command()
def init(url: Url = _DEFAULT, by: By = None) -> None:
    """Make a book, or bring the tables of one up to date."""
    require("book", "sqlalchemy", what="the book")
    from dpaudit.book import Book
    from dpaudit.cli.show import say

    Book.create(url, by=_me(by))
    say("the book is there; next: dpaudit book dataset NAME --unit UNIT --relation RELATION")


@app.command()
def dataset(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    unit: Annotated[str, _option("--unit", "NOUN", "Who is protected, such as user.")],
    relation: Annotated[str, _option("--relation", "KIND", "Such as add-remove.")],
    trust: Annotated[str, _option("--trust", "MODEL", "Who sees raw data.")] = "central",
    per: Annotated[
        str, _option("--per", "PERIOD", "day, week, month or year: protects a unit's data of each.")
    ] = "",
    url: Url = _DEFAULT,
    by: By = None,
) -> None:
    """Enter a data set."""
    book = opened(url)
    from dpaudit import validate
    from dpaudit.book import DataSet
    from dpaudit.cli.show import say
    from dpaudit.plan import PrivacyUnit, Relation, TrustModel

    about = (PrivacyUnit(unit), Relation.parse(relation), validate.member(TrustModel, trust=trust))
    made = book.add_dataset(DataSet(name, *about, per), by=_me(by))
    say(f"{made.name} protects {made.protects}", markup=False)


@app.command()
def budget(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    dataset: OneDataSet = None,
    limit: Annotated[
        str | None,
        _option("--limit", "'KEY = VALUE, …'", "'epsilon = 1', with 'delta = 1e-6', 'rho = 0.1'…"),
    ] = None,
    window: Annotated[
        str, _option("--window", "WINDOW", "ever, day, week, month, year, or '30 days'.")
    ] = "ever",
    retire: Annotated[str | None, _option("--retire", "WHY", "It counts no longer.")] = None,
    url: Url = _DEFAULT,
    by: By = None,
) -> None:
    """Enter a budget on a data set, or retire one."""
    book = opened(url)
    from dpaudit.book import BudgetRecord, limit_of
    from dpaudit.cli.show import say
    from dpaudit.project.targets import parse_table

    if retire is not None:
        book.retire(name, by=_me(by), why=retire)
        say(f"{name} counts no longer", markup=False)
        return
    if dataset is None or limit is None:
        raise typer.BadParameter("a new budget needs --dataset and --limit")
    known = limit_of(parse_table("--limit", limit, "epsilon = 1, delta = 1e-6"))
    made = book.add_budget(BudgetRecord(name, dataset, known, window), by=_me(by))
    say(f"{made.name}: {made.limit}, {made.window}, of {made.dataset}", markup=False)


@app.command()
def reserve(
    target: Annotated[str, typer.Argument(metavar="PLAN.toml|SUBJECT")],
    dataset: DataSetName,
    purpose: Purpose = None,
    approved: Approved = "",
    request: Request = None,
    period: Period = None,
    settings: Settings = None,
    url: Url = _DEFAULT,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Charge a plan, before any of it runs; exit code 1 where a budget refuses."""
    book = opened(url)
    from dpaudit.cli import show_book
    from dpaudit.workflow.booking import planned

    with foreign_code():
        plan = planned(target, settings or ())
    told = {"approved": approved, "request": request, "period": period}
    reserved = book.reserve(dataset, plan, by=_me(by), purpose=purpose or target, **told)
    show_book.releases([reserved.release], as_json=as_json)


@app.command()
def close(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Such as R7.")],
    journal: JournalFile = None,
    certificate: Annotated[Path | None, _option("--certificate", "FILE", "Of the run.")] = None,
    abandon: Annotated[str | None, _option("--abandon", "WHY", "It ended early.")] = None,
    url: Url = _DEFAULT,
    by: By = None,
    as_json: Json = False,
) -> None:
    """End a release: it ran, or it is abandoned. It stays charged, but for what did not run."""
    book = opened(url)
    from dpaudit.certificate import load_certificate
    from dpaudit.cli import show_book

    if abandon is not None:
        ended = book.abandon(release, by=_me(by), why=abandon, journal=journal)
    else:
        known = None if certificate is None else load_certificate(certificate).to_dict()
        digest = "" if known is None else str(known["digest"])
        ended = book.close(release, by=_me(by), journal=journal, certificate=digest)
    show_book.releases([ended], as_json=as_json)


@app.command()
def status(
    dataset: OneDataSet = None,
    plan: Annotated[
        str | None,
        _option("--plan", "PLAN.toml|SUBJECT", "How often would it fit, and with what noise?"),
    ] = None,
    period: Period = None,
    settings: Settings = None,
    url: Url = _DEFAULT,
    as_json: Json = False,
) -> None:
    """What is left of each budget, and what could still be released."""
    book = opened(url)
    from dpaudit.book import room
    from dpaudit.cli import show_book
    from dpaudit.workflow.booking import noise_that_fits, planned

    with foreign_code():
        wanted = None if plan is None else planned(plan, settings or ())
    rooms = room(book, dataset, period=period)
    if wanted is not None and dataset is None and len(rooms) > 1:
        raise typer.BadParameter("--plan is given for several data sets; add --dataset")
    times = None if wanted is None else rooms[0].times(wanted)
    file = str(plan).endswith(".toml")
    noise = noise_that_fits(rooms[0], str(plan)) if wanted is not None and file else None
    show_book.status(rooms, wanted is not None, times, noise, as_json=as_json)


@app.command()
def history(dataset: OneDataSet = None, url: Url = _DEFAULT, as_json: Json = False) -> None:
    """All releases, the newest last."""
    book = opened(url)
    from dpaudit.cli import show_book

    found = book.releases() if dataset is None else book.releases("dataset = :d", d=dataset)
    show_book.releases(sorted(found, key=lambda one: int(one.id[1:])), as_json=as_json)


@app.command()
def export(
    output: Annotated[Path, typer.Option("-o", "--output", help="*.csv, .json, .registry.yaml.")],
    url: Url = _DEFAULT,
) -> None:
    """Write all releases: for a spreadsheet, a program, or the registry of deployments."""
    book = opened(url)
    from dpaudit.cli.show import written
    from dpaudit.workflow import booking

    written(booking.export(book, output))


@app.command()
def verify(
    journals: Annotated[list[Path] | None, typer.Argument(metavar="[LEDGER...]")] = None,
    anchor: Annotated[
        Path | None, _option("--anchor", "FILE", "Keeps the head of the log; moved on if it holds.")
    ] = None,
    url: Url = _DEFAULT,
    as_json: Json = False,
) -> None:
    """Recompute the whole book from its log; and are these journals the ones that it anchors?"""
    book = opened(url)
    from dpaudit.book import verify_book
    from dpaudit.cli.show import verification
    from dpaudit.ledger import FileAnchor
    from dpaudit.workflow.verifying import Verification

    facts = verify_book(book, None if anchor is None else FileAnchor(anchor))
    for path in journals or ():
        book.check_journal(path)
    checked = {"journals": len(journals)} if journals else {}
    at = datetime.now(UTC).isoformat(timespec="seconds")
    verification(Verification("book", vars(facts) | checked | {"at": at}), as_json=as_json)
