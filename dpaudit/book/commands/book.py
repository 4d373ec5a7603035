"""The commands of the book: what an organisation may still release, and what it has released."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaudit.base.names import checked_name
from dpaudit.base.optional_import import require
from dpaudit.cli.command import App
from dpaudit.cli.option_groups import Service
from dpaudit.cli.options import Settings, option, without_password, working

if TYPE_CHECKING:
    from dpaudit.book import Book
    from dpaudit.book.booking import Booking
    from dpaudit.workflow.checking import OtherBudgets

app = App(
    help="An organisation's privacy budget: data sets, budgets, releases.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


_WHERE = "A SQLite file, or postgresql://USER@HOST/NAME."
DEFAULT_BOOK = "book.db"
_SAFE: dict[str, Any] = {"callback": without_password}
Url = Annotated[str, option("--book", "URL", _WHERE, envvar="DPAUDIT_BOOK", **_SAFE)]
BookUrl = Annotated[str | None, option("--book", "URL", f"Ask a book too. {_WHERE}", **_SAFE)]
_BY = "Who does it; the user's name by default."


def _named(by: str | None) -> str | None:
    return by and checked_name(by=by)


By = Annotated[str | None, option("--by", "NAME", _BY, callback=_named)]
OneDataSet = Annotated[str | None, option("--dataset", "NAME", "Name of the data set.")]
Period = Annotated[str | None, option("--period", "FROM..TO", "The days whose data are read.")]
Purpose = Annotated[str | None, option("--purpose", "TEXT", "What it is for.")]
Approved = Annotated[str, option("--approved", "NAME", "Who approved it.")]
Request = Annotated[str | None, option("--request", "ID", "The same request is charged once.")]


def who(by: str | None) -> str:
    """Who does it: the user of this process, where nobody is named."""
    return by or getpass.getuser()


def opened(url: str, dataset: str | None = "") -> Book:
    """The book at a URL.

    Raises:
        UnsupportedError: if the extra is missing.
        InputError: if there is no book.
    """
    if dataset is None:
        raise typer.BadParameter("--dataset is missing; name a data set of the book")
    require("book", "sqlalchemy", what="the book")
    from dpaudit.book import Book

    return Book(url)


def charging_of(
    book: BookUrl = None,
    dataset: OneDataSet = None,
    purpose: Purpose = None,
    approved: Approved = "",
    request: Request = None,
    period: Period = None,
    by: By = None,
) -> Callable[[str], Booking] | None:
    """Where a run of a subject is charged, if it is: options of ``dpaudit run``."""
    if book is None:
        _refuse_alone(dataset)
        return None
    kept = opened(book, dataset)
    from dpaudit.book.booking import Booking

    told = {"approved": approved, "request": request, "period": period}
    given: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    return lambda subject: Booking(
        kept, str(dataset), **given, by=who(by), purpose=purpose or subject
    )


def budgets_of(book: BookUrl = None, dataset: OneDataSet = None) -> OtherBudgets | None:
    """Whether what is left of a data set admits all subjects: options of ``dpaudit check``."""
    if book is None:
        _refuse_alone(dataset)
        return None
    kept = opened(book, dataset)
    from dpaudit.book import remaining_budgets
    from dpaudit.book.checking import budget_rows

    return partial(budget_rows, remaining_budgets(kept, dataset)[0])


def _refuse_alone(dataset: str | None) -> None:
    if dataset is not None:  # who names one must not run uncharged
        raise typer.BadParameter("--dataset is given without --book; give both")


@app.command()
def init(url: Url = DEFAULT_BOOK, by: By = None) -> None:
    """Make a book, or bring the tables of one up to date."""
    require("book", "sqlalchemy", what="the book")
    from dpaudit.book import Book
    from dpaudit.cli.show import print_result

    Book.create(url, by=who(by))
    print_result(
        "the book is there; next: dpaudit book dataset NAME --unit UNIT --relation RELATION"
    )


@app.command()
def clock(
    day: Annotated[str, typer.Argument(metavar="DATE", help="The day that it is, in UTC.")],
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Say that the clock is right, after a pause in which a budget would begin anew."""
    book = opened(url)
    from dpaudit.base.errors import InputError
    from dpaudit.book import set_clock
    from dpaudit.cli.show import print_result

    try:
        told = date.fromisoformat(day)
    except ValueError:
        raise InputError("DATE is no day; it must be like 2026-11-23.") from None
    set_clock(book, told, by=who(by))
    print_result(f"it is {told}, and the book goes on")


@app.command()
def dataset(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    unit: Annotated[str, option("--unit", "NOUN", "Who is protected, such as user.")],
    relation: Annotated[str, option("--relation", "KIND", "Such as add-remove.")],
    trust: Annotated[str, option("--trust", "MODEL", "Who sees raw data.")] = "central",
    per: Annotated[str, option("--per", "PERIOD", "Of data: day, week, month or year.")] = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Enter a data set: who is protected, and of a period if not of all time."""
    book = opened(url)
    from dpaudit.book import DataSet
    from dpaudit.cli.show import print_result

    record = {"name": name, "unit": unit, "relation": relation, "trust": trust, "per": per}
    made = DataSet.from_dict(record)
    book.add(made, by=who(by))
    print_result(f"{made.name} protects {made.protects}", dataset=made.to_dict())


@app.command()
def budget(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    dataset: OneDataSet = None,
    limit: Annotated[
        str, option("--limit", "'KEY = VALUE, …'", "'epsilon = 1, delta = 1e-6', 'rho = 0.1' …")
    ] = "",
    window: Annotated[
        str, option("--window", "WINDOW", "ever, day, week, month, year, or '30 days'.")
    ] = "ever",
    approval: Annotated[
        bool, typer.Option("--approval", help="A second person must approve each release.")
    ] = False,
    retire: Annotated[str | None, option("--retire", "WHY", "It counts no longer.")] = None,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Enter a budget on a data set, or retire one."""
    book = opened(url, dataset if retire is None else "")
    from dpaudit.book import BudgetRecord, limit_of
    from dpaudit.cli.show import print_result
    from dpaudit.project.targets import parse_table

    if retire is not None:
        book.retire(name, by=who(by), why=retire)
        print_result(f"{name} counts no longer", budget=name)
        return
    stated = limit_of(parse_table("--limit", limit, "epsilon = 1, delta = 1e-6"))
    made = BudgetRecord(name, str(dataset), stated, window, approval=approval or None)
    book.add(made, by=who(by))
    print_result(f"{name}: {stated}, {window}, of {dataset}", budget=made.to_dict())


@app.command()
def reserve(
    target: Annotated[str, typer.Argument(metavar="PLAN.toml|SUBJECT")],
    dataset: OneDataSet = None,
    purpose: Purpose = None,
    approved: Approved = "",
    request: Request = None,
    period: Period = None,
    settings: Settings = None,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Charge a plan, before any of it runs; exit code 1 where a budget refuses."""
    charging = charging_of(url, dataset, purpose, approved, request, period, by)
    assert charging is not None
    from dpaudit.book.booking import planned
    from dpaudit.book.commands import show

    with working(f"plan of {target}"):
        plan = planned(target, settings or ())
    show.releases([charging(target).reserve(plan).release])


@app.command()
def close(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Such as R7.")],
    journal: Annotated[
        Path | None,
        option("--journal", "FILE", "Of its ledger: what it proves not to have run is given back."),
    ] = None,
    certificate: Annotated[Path | None, option("--certificate", "FILE", "Of the run.")] = None,
    abandon: Annotated[str, option("--abandon", "WHY", "It ended early.")] = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """End a release: it ran, or it is abandoned. It stays charged, but for what did not run."""
    book = opened(url)
    from dpaudit.book.booking import certificate_of
    from dpaudit.book.commands import show

    digest = "" if certificate is None else certificate_of(book, release, certificate)
    told = {"certificate": digest, "abandoned": abandon}
    ended = book.close(release, by=who(by), journal=journal, **told)
    show.releases([ended])


@app.command()
def status(
    dataset: OneDataSet = None,
    plan: Annotated[
        str | None,
        option("--plan", "PLAN.toml|SUBJECT", "How often would it fit, and with what noise?"),
    ] = None,
    period: Period = None,
    settings: Settings = None,
    url: Url = DEFAULT_BOOK,
) -> None:
    """What is left of each budget, and what could still be released."""
    book = opened(url)
    from dpaudit.book import remaining_budgets
    from dpaudit.book.booking import fit
    from dpaudit.book.commands import show

    rooms = remaining_budgets(book, dataset, period=period)
    if plan is not None and len(rooms) != 1:
        raise typer.BadParameter("--plan asks of one data set; add --dataset")
    with working("room"):
        found = None if plan is None else fit(rooms[0], plan, settings or ())
    show.status(rooms, found)


@app.command()
def history(dataset: OneDataSet = None, url: Url = DEFAULT_BOOK) -> None:
    """All releases, the newest last."""
    book = opened(url)
    from dpaudit.book.commands import show

    found = book.releases() if dataset is None else book.releases("dataset = :d", d=dataset)
    show.releases(sorted(found, key=lambda one: int(one.id[1:])))


def export(
    output: Annotated[Path, typer.Option("-o", "--output", help="*.csv, .json, .registry.yaml.")],
    signing: Service = None,
    url: Url = DEFAULT_BOOK,
) -> None:
    """Write all releases: for a spreadsheet, a program, or the registry of deployments."""
    book = opened(url)
    from dpaudit.book import booking
    from dpaudit.cli.show import written

    if signing is None:
        written(booking.export(book, output))
        return
    from dpaudit.book.signed_exports import export_signed

    written(*export_signed(book, output, *signing()))


@app.command()
def verify(
    journals: Annotated[list[Path] | None, typer.Argument(metavar="[LEDGER...]")] = None,
    anchor: Annotated[
        Path | None, option("--anchor", "FILE", "Keeps the head of the log; moved on if it holds.")
    ] = None,
    new_anchor: Annotated[
        bool, typer.Option("--new-anchor", help="It begins with this, and knows nothing yet.")
    ] = False,
    url: Url = DEFAULT_BOOK,
) -> None:
    """Recompute the whole book from its log; and are these journals the ones that it anchors?"""
    book = opened(url)
    from dpaudit.book import verify_book
    from dpaudit.cli.show import verification
    from dpaudit.ledger import FileAnchor
    from dpaudit.workflow.verifying import Verification

    if new_anchor and anchor is None:
        raise typer.BadParameter("--new-anchor is given without --anchor; give its path too")
    kept = None if anchor is None else FileAnchor(anchor)
    facts = verify_book(book, kept, new_anchor=new_anchor)
    for path in journals or ():
        book.check_journal(path)
    found = facts | {"journals": len(journals or ())}
    verification(Verification("book", found))
