"""The commands that help to write a plan, or read a report or an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.options import Stated, option, working


def list_kinds(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A mechanism, relation, sampling scheme, factorization or accountant: all its "
            "keys, and a plan that certifies.",
        ),
    ] = None,
    relations: Annotated[
        bool, typer.Option("--relations", help="What each relation means, and how to write it.")
    ] = False,
) -> None:
    """List what is installed, or tell all of one mechanism, relation or sampling scheme."""
    from dpaudit.cli import show
    from dpaudit.cli.inventory import inventory
    from dpaudit.plan import Relation
    from dpaudit.project.describing import described

    if relations or name is not None:
        names = sorted(Relation.kinds()) if name is None else [name]
        show.descriptions([described(each) for each in names])
    else:
        show.inventory(inventory())


def explain(
    finding: Annotated[
        str | None,
        typer.Argument(metavar="[FINDING]", help="Its name in a report, such as float-noise."),
    ] = None,
) -> None:
    """Say why a finding is reported, and what to do about it."""
    from dpaudit.base import toml_tables
    from dpaudit.base.finding_table import known_findings
    from dpaudit.cli import show
    from dpaudit.reporting.wording.words import RULES

    known = known_findings()
    if finding in RULES:
        show.print_result(f"{finding} is no finding, but a rule of SARIF: {RULES[finding]['help']}")
        return
    if finding is not None:
        finding = finding.removeprefix("finding/")  # as SARIF has it
        toml_tables.chosen({each.rule for each in known}, finding=finding)
        known = tuple(each for each in known if each.rule == finding)
    show.findings(known, in_full=finding is not None)


def checker(
    file: Annotated[Path, typer.Argument(metavar="[FILE.py]", help="Where it is written.")] = Path(
        "checker.py"
    ),
) -> None:
    """Write the independent checker: one file of Python that needs nothing but Python.

    python3 checker.py certificate.json proves a certificate's ε again where nothing is installed.
    """
    from importlib import resources

    from dpaudit.base import files
    from dpaudit.cli import show

    text = resources.files("dpaudit").joinpath("checker.py").read_text("utf-8")
    show.written(files.write(file, text))


def calibrate(
    target: Annotated[
        str, typer.Argument(metavar="MECHANISM|PLAN.toml", help="Such as gaussian, or a plan file.")
    ],
    claim: Stated = None,
    settings: Annotated[
        list[str] | None,
        option("--set", "KEY=VALUE", "A key of the invocation or of the plan, such as count=100."),
    ] = None,
    at: Annotated[
        str, option("--at", "LABEL", "Change the noise of this invocation alone, not of all.")
    ] = "",
    accuracy: Annotated[
        float | None,
        option("--accuracy", "T", "The most noise that is at most T, not the least for a claim."),
    ] = None,
    confidence: Annotated[
        float, option("--confidence", "P", "With what probability noise is at most T.")
    ] = 0.95,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the calibrated plan (TOML).")
    ] = None,
) -> None:
    """Find the least noise for which a claim is certified, or the most that is accurate enough."""
    from dpaudit.cli import show
    from dpaudit.workflow.calibrating import calibrate_target

    with working(f"calibrate {target}"):
        found = calibrate_target(target, settings or (), claim, at, accuracy, confidence)
    if output is not None:
        found.save(output)
    show.calibrated(found, output)
