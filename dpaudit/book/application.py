"""The commands of the book, and what else this application offers to the kernel and to signatures.

Every command loads this module, so each imports what it needs when it runs. A URL with a password
is refused where it was typed.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaudit import book as books
from dpaudit.base.applications import offer
from dpaudit.base.errors import AccessError, InputError
from dpaudit.base.names import checked_name
from dpaudit.base.optional_import import require
from dpaudit.cli.command import App, Described, Service
from dpaudit.cli.options import AllowWork, Settings, option, without_password, working

if TYPE_CHECKING:
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
BookUrl = Annotated[
    str | None, option("--book", "URL", f"Also charge or ask a book. {_WHERE}", **_SAFE)
]
_BY = "Who acts; by default, the user's name."


def _named(by: str | None) -> str | None:
    return by and checked_name(by=by)


By = Annotated[str | None, option("--by", "NAME", _BY, callback=_named)]
OneDataSet = Annotated[str | None, option("--dataset", "NAME", "Name of the data set.")]
Period = Annotated[
    str | None,
    option("--period", "DAYS", "The days whose data are read, such as 2026-W47 or FROM..TO."),
]
Purpose = Annotated[str | None, option("--purpose", "TEXT", "What the release is for.")]
Approved = Annotated[str, option("--approved", "NAME", "Who approved the release.")]
Request = Annotated[
    str | None, option("--request", "ID", "Name of the request; the same one is charged only once.")
]


def who(by: str | None) -> str:
    """Say who does it: the user of this process, where nobody is named."""
    return by or getpass.getuser()


def open_book(url: str, dataset: str | None = "") -> books.Book:
    """Open the book at a URL.

    Raises:
        UnsupportedError: if the extra is missing.
        InputError: if there is no book.
    """
    if dataset is None:
        raise typer.BadParameter("--dataset is missing; name a data set of the book")
    require("book", "sqlalchemy", what="the book")
    return books.Book(url)


def charging_of(
    book: BookUrl = None,
    dataset: OneDataSet = None,
    purpose: Purpose = None,
    approved: Approved = "",
    request: Request = None,
    period: Period = None,
    by: By = None,
) -> Callable[[str], Booking] | None:
    """Say where a run of a subject is charged, if it is: options of ``dpaudit run``."""
    if book is None:
        _refuse_alone(dataset)
        return None
    kept = open_book(book, dataset)
    from dpaudit.book.booking import Booking

    told = {"approved": approved, "request": request, "period": period}
    given: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    return lambda subject: Booking(
        kept, str(dataset), **given, by=who(by), purpose=purpose or subject
    )


def budgets_of(book: BookUrl = None, dataset: OneDataSet = None) -> OtherBudgets | None:
    """Make what asks if a data set's budgets admit all subjects: options of ``dpaudit check``."""
    if book is None:
        _refuse_alone(dataset)
        return None
    kept = open_book(book, dataset)
    from dpaudit.book.booking import budget_rows

    return partial(budget_rows, books.remaining_budgets(kept, dataset)[0])


def _refuse_alone(dataset: str | None) -> None:
    if dataset is not None:  # who names one must not run uncharged
        raise typer.BadParameter("--dataset is given without --book; give both")


@app.command()
def init(url: Url = DEFAULT_BOOK, by: By = None) -> None:
    """Make a book, or bring the tables of one up to date."""
    require("book", "sqlalchemy", what="the book")
    from dpaudit.cli.show import print_result

    books.Book.create(url, by=who(by))
    print_result(
        "the book is made; next: dpaudit book dataset NAME --unit UNIT --relation RELATION"
    )


@app.command()
def clock(
    day: Annotated[str, typer.Argument(metavar="DATE", help="Today's date in UTC, to confirm it.")],
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Confirm the date after a pause in which a budget would begin anew."""
    book = open_book(url)
    from dpaudit.cli.show import print_result

    try:
        told = date.fromisoformat(day)
    except ValueError:
        raise InputError("DATE is not a day; it must be like 2026-11-23.") from None
    books.set_clock(book, told, by=who(by))
    print_result(f"the date {told} is confirmed, and the book accepts changes again")


@app.command()
def dataset(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    unit: Annotated[str, option("--unit", "NOUN", "Who is protected, such as user.")],
    relation: Annotated[str, option("--relation", "KIND", "Such as add-remove.")],
    trust: Annotated[str, option("--trust", "MODEL", "Who sees raw data.")] = "central",
    per: Annotated[
        str,
        option(
            "--per",
            "PERIOD",
            "Period of data that a unit is protected for: day, week, month or year.",
        ),
    ] = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Enter a data set: who is protected, for all time or per period."""
    book = open_book(url)
    from dpaudit.cli.show import print_result

    record = {"name": name, "unit": unit, "relation": relation, "trust": trust, "per": per}
    made = books.DataSet.from_dict(record)
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
    retire: Annotated[str | None, option("--retire", "WHY", "Retire the budget; why.")] = None,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Enter a budget on a data set, or retire one."""
    book = open_book(url, dataset if retire is None else "")
    from dpaudit.cli.show import print_result
    from dpaudit.project.targets import parse_table

    if retire is not None:
        book.retire(name, by=who(by), why=retire)
        print_result(f"{name} counts no longer", budget=name)
        return
    stated = books.limit_of(parse_table("--limit", limit, "epsilon = 1, delta = 1e-6"))
    made = books.BudgetRecord(name, str(dataset), stated, window, approval=approval or None)
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
    """Charge a plan before any of it runs; exit code 1 if a budget refuses it."""
    charging = charging_of(url, dataset, purpose, approved, request, period, by)
    assert charging is not None
    from dpaudit.book import show
    from dpaudit.book.booking import plan_of_target

    with working(f"plan of {target}"):
        plan = plan_of_target(target, settings or ())
    show.reserved(charging(target).reserve(plan).release)


@app.command()
def close(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Such as R7.")],
    journal: Annotated[
        Path | None,
        option(
            "--journal",
            "FILE",
            "The ledger's journal: the charge of parts that did not run is given back.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None, option("--certificate", "FILE", "Certificate of the run.")
    ] = None,
    abandon: Annotated[str, option("--abandon", "WHY", "Why the release ended early.")] = "",
    withdraw: Annotated[
        str, option("--withdraw", "WHY", "Why nothing ran; the whole charge is given back.")
    ] = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """End a release that ran, was abandoned, or is withdrawn before anything ran.

    Its charge stays, except for the part that provably did not run.
    """
    book = open_book(url)
    from dpaudit.book import show
    from dpaudit.book.booking import certificate_of

    if withdraw:
        if abandon or journal is not None or certificate is not None:
            raise typer.BadParameter(
                "--withdraw states that nothing ran; give it without other options"
            )
        show.ended(book.withdraw(release, by=who(by), why=withdraw))
        return
    if abandon and journal is None and book.release(release).status is books.Status.RESERVED:
        raise InputError(
            f"no ledger was begun for release {release}; if abandoned, it stays charged. If "
            "nothing ran, use --withdraw WHY, which gives the charge back."
        )
    digest = "" if certificate is None else certificate_of(book, release, certificate)
    told = {"certificate": digest, "abandoned": abandon}
    ended = book.close(release, by=who(by), journal=journal, **told)
    show.ended(ended)


@app.command()
def status(
    dataset: OneDataSet = None,
    plan: Annotated[
        str | None,
        option(
            "--plan", "PLAN.toml|SUBJECT", "A plan: how often does it fit, and with which noise?"
        ),
    ] = None,
    period: Period = None,
    settings: Settings = None,
    url: Url = DEFAULT_BOOK,
) -> None:
    """Show what is left of each budget, and what could still be released."""
    book = open_book(url)
    from dpaudit.book import show
    from dpaudit.book.booking import fit

    rooms = books.remaining_budgets(book, dataset, period=period)
    if plan is not None and len(rooms) != 1:
        raise typer.BadParameter("--plan asks about one data set; add --dataset")
    with working("room"):
        found = None if plan is None else fit(rooms[0], plan, settings or ())
    show.status(rooms, found)


@app.command()
def history(dataset: OneDataSet = None, url: Url = DEFAULT_BOOK) -> None:
    """List all releases, the newest last, with what each costs on its own.

    A release is numbered by its line in the book's log. Other lines have the numbers between.
    """
    book = open_book(url)
    from dpaudit.book import show
    from dpaudit.book.costs import ReleaseCosts

    found = book.releases() if dataset is None else book.releases("dataset = :d", d=dataset)
    show.releases(sorted(found, key=lambda one: int(one.id[1:])), ReleaseCosts(book))


def export(
    output: Annotated[Path, typer.Option("-o", "--output", help="*.csv, .json, .registry.yaml.")],
    signing: Service = None,
    url: Url = DEFAULT_BOOK,
) -> None:
    """Write all releases: for a spreadsheet, a program, or the registry of deployments."""
    book = open_book(url)
    from dpaudit.book import booking
    from dpaudit.cli.show import written
    from dpaudit.workflow.certifying import replaces

    replaced = replaces(output, "id,made,status", '"releases":[', "OpenDP deployments registry")
    if signing is None:
        written(booking.export(book, output), replaced=replaced)
        return
    from dpaudit.book.signed_exports import export_signed

    written(*export_signed(book, output, *signing()), replaced=replaced)


@app.command()
def verify(
    journals: Annotated[list[Path] | None, typer.Argument(metavar="[LEDGER...]")] = None,
    anchor: Annotated[
        Path | None,
        option(
            "--anchor",
            "FILE",
            "File that keeps the head of the log; updated if the book is right.",
        ),
    ] = None,
    new_anchor: Annotated[
        bool, typer.Option("--new-anchor", help="Start a new anchor in that file.")
    ] = False,
    url: Url = DEFAULT_BOOK,
) -> None:
    """Recompute the whole book from its log, and check that it anchors these journals."""
    book = open_book(url)
    from dpaudit.cli.show import verification
    from dpaudit.ledger import FileAnchor
    from dpaudit.workflow.verifying import Verification

    if new_anchor and anchor is None:
        raise typer.BadParameter(
            "--new-anchor is given without --anchor; give the anchor's path too"
        )
    kept = None if anchor is None else FileAnchor(anchor)
    facts = books.verify_book(book, kept, new_anchor=new_anchor)
    for path in journals or ():
        book.check_journal(path)
    found = facts | {"journals": len(journals or ())}
    verification(Verification("book", found))


_Key = Annotated[
    Path, option("--key", "FILE", "File of the key that hides names; keep it out of the book.")
]


def people(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    limit: Annotated[
        str, option("--limit", "'KEY = VALUE, …'", "Limit of each unit, such as 'rho = 0.1'.")
    ],
    key: _Key,
    dataset: OneDataSet = None,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Give each unit of a data set a budget of its own; a missing key file is made."""
    book = open_book(url, dataset)
    from dpaudit.book.people import key_of
    from dpaudit.cli.show import print_result
    from dpaudit.project.targets import parse_table

    stated = books.limit_of(parse_table("--limit", limit, "rho = 0.1"))
    own = key_of(key, make=True)
    books.add_people(book, name, str(dataset), stated, key=own, by=who(by))
    print_result(f"{name}: {stated}, of each unit of {dataset}", limit=stated.to_dict())


def charge(
    target: Annotated[str, typer.Argument(metavar="PLAN.toml|SUBJECT")],
    name: Annotated[str, option("--of", "NAME", "Name of the budgets.")],
    people: Annotated[Path, option("--people", "FILE", "File with one name in each line.")],
    key: _Key,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="File to write: the names of those who may take part."),
    ],
    purpose: Purpose = None,
    request: Request = None,
    settings: Settings = None,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Charge a plan to many people at once; people with too little left are left out."""
    book = open_book(url)
    from dpaudit.book.booking import plan_of_target
    from dpaudit.book.people import charge_file
    from dpaudit.cli.show import say, written

    with working(f"plan of {target}"):
        plan = plan_of_target(target, settings or ())
    told = {"by": who(by), "purpose": purpose or target, "request": request}
    written(charge_file(book, name, plan, people, output, key=key, **told))
    say("only these may take part; who is left out, and how many, is private")


def recheck(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Certificates and ledgers.")],
    audit: Annotated[
        list[Path] | None, option("--audit", "FILE", "A certificate with a newer audit.")
    ] = None,
    allow_work: AllowWork = False,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Verify all releases of the book again with this version; exit code 1 if less is proved now.

    Exit code 2: the files that are there are right, but others are missing.
    """
    book = open_book(url)
    from dpaudit.book.rechecking import recheck
    from dpaudit.cli import show
    from dpaudit.cli.exits import Exit

    with working(
        f"recheck {folder}", "the book's log keeps what has been found so far; start again"
    ):
        found = recheck(book, folder, audits=audit or (), by=who(by), allow_work=allow_work)
    show.verification(found)
    short = Exit.UNPROVEN if found.facts["missing"] or found.remarks else Exit.CERTIFIED
    raise typer.Exit(Exit.REFUTED if found.lacks else short)


OneRelease = Annotated[str, typer.Argument(metavar="RELEASE", help="Such as R7.")]
Why = Annotated[str, option("--why", "TEXT", "A remark.")]


@app.command()
def token(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Whose token; without it, list all.")
    ] = "",
    role: Annotated[str, option("--role", "ROLE", "viewer, analyst or approver.")] = "viewer",
    until: Annotated[str, option("--until", "DATE", "Last day of the token.")] = "",
    revoked: Annotated[bool, typer.Option("--revoke", help="Revoke the token.")] = False,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Make a token for the server; it replaces an earlier one, and is shown only once."""
    book = open_book(url)
    from dpaudit.book import show
    from dpaudit.cli.show import answered, print_result

    if not name:
        show.tokens(books.tokens(book))
        return
    if revoked:
        books.revoke(book, name, by=who(by))
        print_result(f"the token of {name} is no longer valid", name=name)
        return
    text = books.issue(book, name, role, by=who(by), until=until)
    if not answered("token", {"name": name, "token": text}):
        typer.echo(text)


@app.command()
def approve(
    release: OneRelease,
    why: Why = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Approve a release that somebody else asked for; exit code 1 for your own."""
    _decide(url, release, who(by), why, approved=True)


@app.command()
def deny(
    release: OneRelease,
    why: Why = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Deny a release that waits for approval, or withdraw your own; its charge is given back."""
    _decide(url, release, who(by), why, approved=False)


def _decide(url: str, release: str, by: str, why: str, *, approved: bool) -> None:
    book = open_book(url)
    from dpaudit.book import show

    try:
        decided = books.decide(book, release, by=by, approve=approved, why=why)
    except AccessError as error:
        books.record_refusal(book, by, what="approve", why=str(error))
        raise
    show.releases([decided])


@app.command()
def publish(
    name: Annotated[str, typer.Argument(metavar="DATASET")],
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Make the data set private.")
    ] = False,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Declare a data set public: anybody may see on the server what is released about it."""
    book = open_book(url)
    from dpaudit.cli.show import print_result

    books.publish(book, name, by=who(by), public=not withdraw)
    print_result(
        f"{name} is {'no longer ' if withdraw else ''}public", dataset=name, public=not withdraw
    )


@app.command()
def report(
    output: Annotated[Path, typer.Option("-o", "--output", help="*.html or *.pdf.")],
    dataset: OneDataSet = None,
    first: Annotated[str, option("--from", "DATE", "A year ago by default.")] = "",
    last: Annotated[str, option("--until", "DATE", "Today by default.")] = "",
    url: Url = DEFAULT_BOOK,
) -> None:
    """Report the releases of a period, their cost and who is responsible; verifies the book."""
    book = open_book(url)
    from dpaudit.book.server.compliance import compliance, write
    from dpaudit.cli.show import written
    from dpaudit.workflow.certifying import replaces

    replaced = replaces(output, "Privacy report of", "dpaudit")
    first = first or (book.today - timedelta(days=364)).isoformat()
    made = compliance(book, first, last or book.today.isoformat(), dataset=dataset or "")
    written(write(output, made), replaced=replaced)


@app.command(cls=Described)
def serve(
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N")] = 8710,
    tls_certificate: Annotated[
        Path | None, option("--tls-certificate", "FILE", "Certificate with its chain, in PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front of the server provides TLS.")
    ] = False,
    names: Annotated[
        list[str] | None, option("--name", "HOST", "Host name that browsers use.")
    ] = None,
    certificates: Annotated[
        Path | None, option("--certificates", "FOLDER", "Certificates, found by their hash.")
    ] = None,
    url: Url = DEFAULT_BOOK,
) -> None:
    """Serve the book's pages and its HTTP API; by default, to this machine only."""
    book = open_book(url)
    for module in ("fastapi", "uvicorn"):
        require("book", module, what="the book's server")
    from dpaudit.book.server import Place
    from dpaudit.book.server import serve as listen

    tls: dict[str, Any] = {"certificate": tls_certificate, "key": tls_key}
    place = Place(host, port, behind_proxy=behind_proxy, names=tuple(names or ()), **tls)
    told = "the book is at {}; Ctrl-C stops the server, and dpaudit book token NAME makes a token"
    listen(book, place, certificates=certificates, ready=lambda at: typer.echo(told.format(at)))


def verify_export(*given: Any) -> Any:
    """Do as :func:`dpaudit.book.signed_exports.verify_export`, which takes long to import."""
    from dpaudit.book import signed_exports

    return signed_exports.verify_export(*given)


offer("group", "book", app)
offer("command", "book export", export)
offer("command", "book people", people)
offer("command", "book charge", charge)
offer("command", "book recheck", recheck)
offer("options of run", "charging", charging_of)
offer("options of release", "charging", charging_of)
offer("options of check", "budgets", budgets_of)
offer("statement", "urn:dpaudit:book-export:1", verify_export)
