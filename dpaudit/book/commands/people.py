"""The commands of the book for budgets of very many people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.book.commands.book import (
    DEFAULT_BOOK,
    By,
    OneDataSet,
    Purpose,
    Request,
    Url,
    opened,
    who,
)
from dpaudit.cli.options import Settings, option, working

_Key = Annotated[Path, option("--key", "FILE", "It names people; keep it out of the book.")]


def people(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    limit: Annotated[str, option("--limit", "'KEY = VALUE, …'", "'rho = 0.1', … of each.")],
    key: _Key,
    dataset: OneDataSet = None,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Give each unit of a data set a budget of its own; the key is made where there is none."""
    book = opened(url, dataset)
    from dpaudit.book import add_people, limit_of
    from dpaudit.book.people_files import key_of
    from dpaudit.cli.show import print_result
    from dpaudit.project.targets import parse_table

    stated = limit_of(parse_table("--limit", limit, "rho = 0.1"))
    own = key_of(key, make=True)
    add_people(book, name, str(dataset), stated, key=own, by=who(by))
    print_result(f"{name}: {stated}, of each unit of {dataset}", limit=stated.to_dict())


def charge(
    target: Annotated[str, typer.Argument(metavar="PLAN.toml|SUBJECT")],
    name: Annotated[str, option("--of", "NAME", "Name of the budgets.")],
    people: Annotated[Path, option("--people", "FILE", "A name a line.")],
    key: _Key,
    output: Annotated[Path, typer.Option("-o", "--output", help="Who may take part; a new file.")],
    purpose: Purpose = None,
    request: Request = None,
    settings: Settings = None,
    url: Url = DEFAULT_BOOK,
    by: By = None,
) -> None:
    """Charge a plan to many people at once; those who have not enough left are left out."""
    book = opened(url)
    from dpaudit.book.booking import planned
    from dpaudit.book.people_files import charge_file
    from dpaudit.cli.show import say, written

    with working(f"plan of {target}"):
        plan = planned(target, settings or ())
    told = {"by": who(by), "purpose": purpose or target, "request": request}
    written(charge_file(book, name, plan, people, output, key=key, **told))
    say("only they may take part; who is not among them, and how many, is private")
