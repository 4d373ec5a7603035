"""Options that several commands have, and how their words are parsed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import typer

from dpaudit.cli.exits import InterruptedRunError


def option(name: str, metavar: str | None, about: str, **more: Any) -> Any:
    """An option, and what it takes."""
    return typer.Option(name, metavar=metavar, help=about, **more)


def without_password(context: typer.Context, given: typer.CallbackParam, url: str | None) -> Any:
    """A book's URL; one that was typed has no password, as the list of processes would show it."""
    source = context.get_parameter_source(str(given.name))
    typed = source is not None and source.name == "COMMANDLINE"
    if typed and url and (_PASSWORD.search(url) or "password=" in unquote(url).lower()):
        raise typer.BadParameter(
            "the URL has a password, which the list of processes would show; leave it out, and set "
            "PGPASSWORD or PGPASSFILE, or give the whole URL in DPAUDIT_BOOK to dpaudit book"
        )
    return url


_PASSWORD = re.compile("://[^/@]*:[^@]*@")


def number(text: str) -> float:
    """A float, or an error that shows what was given."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r:.80} is not a number") from None


def whole_number(text: str) -> int:
    """An integer of at least 0, or an error that shows what was given."""
    try:
        number = int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r:.80} is not a whole number") from None
    if number < 0:
        raise typer.BadParameter(f"{text!r:.80} is below 0; give 0 or more")
    return number


def typed(kind: Any, usage: str, about: str, **more: Any) -> Any:
    """The annotation of an option that may be left out: its name, what it takes, its help."""
    name, _, metavar = usage.partition(" ")
    if parser := {float: number, int: whole_number}.get(kind):
        more["parser"] = parser
    annotated: Any = Annotated
    return annotated[
        kind if kind is bool else kind | None, option(name, metavar or None, about, **more)
    ]


NOTHING = "nothing was written; the same command starts again"


@contextmanager
def working(label: str, kept: str | Callable[[], str] = NOTHING) -> Iterator[None]:
    """While something runs: its progress, and what foreign code prints, go to stderr.

    Raises:
        InterruptedRunError: at Ctrl-C, with what is kept and how to go on.
    """
    from dpaudit.auditing import progress_bar

    try:
        with redirect_stdout(sys.stderr), progress_bar(label):
            yield
    except KeyboardInterrupt:
        raise InterruptedRunError(kept if isinstance(kept, str) else kept()) from None


def kept_of(folder: Path) -> str:
    """Return what an interrupted run leaves in its folder."""
    if not (folder / "ledger.jsonl").exists():
        return f"nothing was released; {NOTHING}"
    return f"what was released is charged and recorded in {folder}; to run again, use another -o"


Runnable = Annotated[str, typer.Argument(metavar="SUBJECT", help="module:Object.")]
Anchor = Annotated[
    Path | None, option("--anchor", "FILE", "Also keep the ledger's last hash in this file.")
]
LedgerSurvives = Annotated[
    str,
    option(
        "--durability",
        "END",
        "What the ledger survives: the end of its process (process) or a power cut (power).",
    ),
]
RunFolder = Annotated[
    Path,
    typer.Option("-o", "--output", help="Folder for ledger, results, certificate and report."),
]
CertificateFile = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write the certificate (JSON).")
]
AllowWork = Annotated[
    bool, typer.Option("--allow-work", help="Recompute a proof, however long it takes.")
]
Settings = Annotated[
    list[str] | None, option("--set", "KEY=VALUE", "Set a public field of the subject.")
]
Delta = Annotated[float | None, option("--delta", "NUMBER", "δ of the guarantee.", parser=number)]
Stated = Annotated[
    str | None,
    option(
        "--claim",
        "'KEY = VALUE, …'",
        "What is claimed, as in a plan file: 'epsilon = 1, delta = 1e-5', 'advantage = 0.1', "
        "'tpr = 0.1, fpr = 0.01', 'success = 0.6, prior = 0.5', 'mu = 1', 'rho = 0.5', "
        "'curve = [[0.5, 1e-3], [1, 1e-6]]'.",
    ),
]
Seed = Annotated[
    int | None,
    option(
        "--seed",
        "N",
        "Seed of the whole experiment; without it, fresh entropy.",
        parser=whole_number,
    ),
]
Witness = Annotated[
    bool | None,
    typer.Option(
        "--witness/--no-witness",
        help="Also let the independent checker prove it; by default, only where that is cheap.",
    ),
]
Checked = Annotated[
    bool, typer.Option("--checked", help="Judge the claim by what the independent checker proves.")
]
