"""The commands around the book's server: tokens, approvals, what is public, pages and reports."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from dpaudit.base.errors import AccessError
from dpaudit.base.optional_import import require
from dpaudit.book.commands import book
from dpaudit.book.commands.book import DEFAULT_BOOK, By, OneDataSet, Url, opened, who
from dpaudit.cli.command import Described
from dpaudit.cli.options import option

app = book.app
OneRelease = Annotated[str, typer.Argument(metavar="RELEASE", help="Such as R7.")]
Why = Annotated[str, option("--why", "TEXT", "A remark.")]


@app.command()
def token(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Without it all are listed.")] = "",
    role: Annotated[str, option("--role", "ROLE", "viewer, analyst or approver.")] = "viewer",
    until: Annotated[str, option("--until", "DATE", "Its last day.")] = "",
    revoked: Annotated[bool, typer.Option("--revoke", help="It holds no longer.")] = False,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Give somebody a token for the server, in place of the one that they had; it is shown once."""
    book = opened(url)
    from dpaudit.book import issue, revoke, tokens
    from dpaudit.book.commands import show
    from dpaudit.cli.show import answered, print_result

    if not name:
        show.tokens(tokens(book))
        return
    if revoked:
        revoke(book, name, by=who(by))
        print_result(f"the token of {name} holds no longer", name=name)
        return
    text = issue(book, name, role, by=who(by), until=until)
    if not answered("token", {"name": name, "token": text}):
        typer.echo(text)


@app.command()
def approve(
    release: OneRelease,
    why: Why = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Approve a release that somebody else asked for; exit code 1 for one's own."""
    _decide(url, release, who(by), why, approved=True)


@app.command()
def deny(
    release: OneRelease,
    why: Why = "",
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Deny a release that waits, or withdraw one's own; its charge is given back."""
    _decide(url, release, who(by), why, approved=False)


def _decide(url: str, release: str, by: str, why: str, *, approved: bool) -> None:
    book = opened(url)
    from dpaudit.book import decide, record_refusal
    from dpaudit.book.commands import show

    try:
        decided = decide(book, release, by=by, approve=approved, why=why)
    except AccessError as error:
        record_refusal(book, by, what="approve", why=str(error))
        raise
    show.releases([decided])


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
    from dpaudit.cli.show import print_result

    declare(book, name, by=who(by), public=not withdraw)
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
    """What was released in a period, what it cost and who answers for it; the book is verified."""
    book = opened(url)
    from dpaudit.book.server.compliance import compliance, write
    from dpaudit.cli.show import written

    first = first or (book.today - timedelta(days=364)).isoformat()
    made = compliance(book, first, last or book.today.isoformat(), dataset=dataset or "")
    written(write(output, made))


@app.command(cls=Described)
def serve(
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N")] = 8710,
    tls_certificate: Annotated[
        Path | None, option("--tls-certificate", "FILE", "With its chain, PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy before it speaks TLS with browsers.")
    ] = False,
    names: Annotated[list[str] | None, option("--name", "HOST", "By which browsers ask.")] = None,
    certificates: Annotated[
        Path | None, option("--certificates", "FOLDER", "Found by their hash.")
    ] = None,
    url: Url = DEFAULT_BOOK,
) -> None:
    """Serve the book's pages and its HTTP API; to this machine alone, if nothing else is said."""
    book = opened(url)
    for module in ("fastapi", "uvicorn"):
        require("book", module, what="the book's server")
    from dpaudit.book.server import Place
    from dpaudit.book.server import serve as listen

    tls: dict[str, Any] = {"certificate": tls_certificate, "key": tls_key}
    place = Place(host, port, behind_proxy=behind_proxy, names=tuple(names or ()), **tls)
    told = "the book is at {}; Ctrl-C ends it, and dpaudit book token NAME lets somebody in"
    listen(book, place, certificates=certificates, ready=lambda at: typer.echo(told.format(at)))
