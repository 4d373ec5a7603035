"""Options that several commands have, and how their words are parsed."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, TextIO

import typer


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
        raise typer.BadParameter(f"{text!r:.80} is below 0")
    return number


def foreign_code() -> redirect_stdout[TextIO]:
    """While a user's code runs, what it prints goes to stderr: stdout is for the answer."""
    return redirect_stdout(sys.stderr)


Runnable = Annotated[str, typer.Argument(metavar="SUBJECT", help="module:Object.")]
RunFolder = Annotated[
    Path, typer.Option("-o", "--output", help="Folder for ledger, certificate and report.")
]
CertificateFile = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write the certificate (JSON).")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
AllowWork = Annotated[
    bool,
    typer.Option("--allow-work", help="Recompute a proof however long it would take."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a public field of the subject."),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", parser=number, metavar="NUMBER", help="δ of the guarantee."),
]
Stated = Annotated[
    str | None,
    typer.Option(
        "--claim",
        metavar="'KEY = VALUE, …'",
        help="What is claimed, as in a plan file: 'epsilon = 1, delta = 1e-5', 'advantage = 0.1', "
        "'tpr = 0.1, fpr = 0.01', 'success = 0.6, prior = 0.5', 'mu = 1', 'rho = 0.5', "
        "'curve = [[0.5, 1e-3], [1, 1e-6]]'.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        parser=whole_number,
        metavar="N",
        help="Seed of the whole experiment; without it, fresh entropy.",
    ),
]
WithSecondOpinion = Annotated[
    bool,
    typer.Option(
        "--second-opinion", help="Let dp-accounting compose the plan too, and compare: seconds."
    ),
]
