"""The commands around the book's server: tokens, approvals, what is public, pages and reports."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from dpaudit.cli import book_commands
from dpaudit.cli.book_commands import DEFAULT_BOOK, By, OneDataSet, Url, opened, who
from dpaudit.cli.options import Json
from dpaudit.errors import AccessError
from dpaudit.extras import require

app = book_commands.app
OneRelease = Annotated[str, typer.Argument(metavar="RELEASE", help="Such as R7.")]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="A remark.")]


@app.command()
def token(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Without it all are listed.")] = "",
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="viewer, analyst or approver.")
    ] = "viewer",
    until: Annotated[str, typer.Option("--until", metavar="DATE", help="Its last day.")] = "",
    revoked: Annotated[bool, typer.Option("--revoke", help="It holds no longer.")] = False,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Give somebody a token for the server, in place of the one that they had; it is shown once."""
    book = opened(url)
    from dpaudit.book import issue, revoke, tokens
    from dpaudit.cli import show_book
    from dpaudit.cli.show import say

    if not name:
        show_book.tokens(tokens(book))
    elif revoked:
        revoke(book, name, by=who(by))
        say(f"the token of {name} holds no longer", markup=False)
    else:
        typer.echo(issue(book, name, role, by=who(by), until=until))


@app.command()
def approve(
    release: OneRelease,
    why: Why = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Approve a release that somebody else asked for; exit code 1 for one's own."""
    _decide(url, release, who(by), why, approved=True, as_json=as_json)


@app.command()
def deny(
    release: OneRelease,
    why: Why = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Deny a release that waits, or withdraw one's own; its charge is given back."""
    _decide(url, release, who(by), why, approved=False, as_json=as_json)


def _decide(url: str, release: str, by: str, why: str, *, approved: bool, as_json: bool) -> None:
    book = opened(url)
    from dpaudit.book import bar, decide
    from dpaudit.cli import show_book

    try:
        decided = decide(book, release, by=by, approve=approved, why=why)
    except AccessError as error:
        bar(book, by, what="approve", why=str(error))
        raise
    show_book.releases([decided], as_json=as_json)


@app.command()
def publish(
    name: Annotated[str, typer.Argument(metavar="DATASET")],
    withdraw: Annotated[bool, typer.Option("--withdraw", help="It is public no longer.")] = False,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Declare a data set public: anybody may see on the server what is released about it."""
    book = opened(url)
    from dpaudit.book import publish as declare
    from dpaudit.cli.show import say

    declare(book, name, by=who(by), public=not withdraw)
    say(f"{name} is {'no longer ' if withdraw else ''}public", markup=False)


@app.command()
def report(
    output: Annotated[Path, typer.Option("-o", "--output", help="*.html or *.pdf.")],
    dataset: OneDataSet = None,
    first: Annotated[
        str, typer.Option("--from", metavar="DATE", help="A year ago by default.")
    ] = "",
    last: Annotated[str, typer.Option("--until", metavar="DATE", help="Today by default.")] = "",
    url: Url = DEFAULT_BOOK,
) -> None:
    """What was released in a period, what it cost and who answers for it; the book is verified."""
    book = opened(url)
    from dpaudit.cli.show import written
    from dpaudit.web.compliance import compliance, write

    first = first or (book.today - timedelta(days=364)).isoformat()
    made = compliance(book, first, last or book.today.isoformat(), dataset=dataset or "")
    written(write(output, made))


@app.command()
def serve(
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N")] = 8710,
    tls_certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", metavar="FILE", help="With its chain, PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy before it speaks TLS with browsers.")
    ] = False,
    names: Annotated[
        list[str] | None, typer.Option("--name", metavar="HOST", help="By which browsers ask.")
    ] = None,
    certificates: Annotated[
        Path | None, typer.Option("--certificates", metavar="FOLDER", help="Found by their hash.")
    ] = None,
    url: Url = DEFAULT_BOOK,
) -> None:
    """Serve the book's pages and its HTTP API; to this machine alone, if nothing else is said."""
    book = opened(url)
    for module in ("fastapi", "uvicorn"):
        require("book", module, what="the book's server")
    from dpaudit.web import Place
    from dpaudit.web import serve as listen

    tls: dict[str, Any] = {"certificate": tls_certificate, "key": tls_key}
    place = Place(host, port, behind_proxy=behind_proxy, names=tuple(names or ()), **tls)
    told = "the book is at {}; Ctrl-C ends it, and dpaudit book token NAME lets somebody in"
    listen(book, place, certificates=certificates, ready=lambda at: typer.echo(told.format(at)))
