"""The command ``book recheck``: do the promises of a book still hold?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.book.commands.book import DEFAULT_BOOK, By, Url, opened, who
from dpaudit.cli.options import AllowWork, option, working


def recheck(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of certificates and ledgers.")],
    audit: Annotated[
        list[Path] | None, option("--audit", "FILE", "A certificate with an audit made since.")
    ] = None,
    allow_work: AllowWork = False,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Verify again all that the book knows, by this version; exit code 1 where less holds now.

    Exit code 2: all that is there holds, and files are missing.
    """
    book = opened(url)
    from dpaudit.book.rechecking import recheck
    from dpaudit.cli import show
    from dpaudit.cli.exits import Exit

    with working(f"recheck {folder}", "what was found stays in the book's log; begin anew"):
        found = recheck(book, folder, audits=audit or (), by=who(by), allow_work=allow_work)
    show.verification(found)
    short = Exit.UNPROVEN if found.facts["missing"] or found.remarks else Exit.CERTIFIED
    raise typer.Exit(Exit.REFUTED if found.lacks else short)
