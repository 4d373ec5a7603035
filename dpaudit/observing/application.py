"""``dpaudit observe``: what code draws by libraries, as a plan.

Every command loads this module, so that what observes is imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.base.applications import offer
from dpaudit.cli.options import Delta, Seed, Stated, option, working


def observe(
    code: Annotated[
        str,
        typer.Argument(
            metavar="SCRIPT.py|FILE.py:function",
            help="A script; or a function f(data) or f(data, rng), with --data.",
        ),
    ],
    data: Annotated[
        str | None, option("--data", "FILE", "Data (.json, .csv, .npy, .parquet).")
    ] = None,
    libraries: Annotated[
        list[str] | None,
        option(
            "--library",
            "NAME",
            "diffprivlib, numpy, opendp, pipeline_dp, snsql, tmlt or torch; by default, what "
            "the code imports.",
        ),
    ] = None,
    plan: Annotated[
        str | None, option("--plan", "FILE", "A plan; fail if the run is not what it declares.")
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse", help="Also run it on neighbours, and compare the values before noise."
        ),
    ] = False,
    unit: Annotated[str, option("--unit", "NOUN", "Who is protected.")] = "row",
    relation: Annotated[
        str | None,
        option(
            "--relation",
            "KIND",
            "Which data sets are neighbours; by default, as OpenDP's unit says, or replace-one.",
        ),
    ] = None,
    claim: Stated = None,
    delta: Delta = None,
    seed: Seed = None,
    no_nan: Annotated[
        bool, typer.Option("--no-nan", help="No number of the data is NaN, so try none.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the plan (.toml) or the certificate (.json)."),
    ] = None,
) -> None:
    """Run code that uses a library, and say what its noise costs."""
    from dpaudit.base import files
    from dpaudit.base.errors import InputError
    from dpaudit.cli.exits import Exit, exit_of
    from dpaudit.cli.show import remark
    from dpaudit.observing.observed_code import observe_target
    from dpaudit.observing.show import print_observation
    from dpaudit.workflow.certifying import replaces, writer

    if output is not None and output.suffix not in (".toml", ".json"):
        raise InputError(f"--output is {str(output)!r:.80}; it must end with .toml or .json.")
    write = writer(output) if output is not None and output.suffix == ".json" else None
    replaced = output is not None and write is None and replaces(output, "[plan]")
    kept = "dpaudit wrote nothing; the same command starts again"
    with working(f"observe {code}", kept):
        seen = observe_target(
            code,
            data=data,
            libraries=libraries or (),
            unit=unit,
            relation=relation,
            delta=delta,
            claim=claim,
            plan=plan,
            rehearsed=rehearse,
            seed=seed,
            no_nan=no_nan,
        )
    if output is not None and output.suffix == ".toml":
        files.write(output, seen.text)
        remark(f"{files.shown(output)} replaced an earlier plan." if replaced else "")
    elif write is not None:
        remark(write(seen.certificate))
    print_observation(seen, () if output is None else (output,))
    raise typer.Exit(Exit.REFUTED if seen.overspent else exit_of(seen.certificate))


offer("command", "observe", observe)
