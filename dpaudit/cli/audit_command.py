"""The command ``audit``: attacks on running code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.options import (
    Json,
    Seed,
    Settings,
    Stated,
    foreign_code,
    number,
    whole_number,
)


def audit(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="SUBJECT|FILE.py:function|module:function",
            help="A subject; or a function f(data, rng), f(data, rng, size) for batches, or "
            "f(data) with its own randomness; or train(mask, rng), with --canaries; or "
            "Class.method of a class without arguments.",
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="'PROGRAM ARGS'",
            help="A program in its place: data as JSON on stdin, the answer as JSON on stdout.",
        ),
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--pair",
            metavar="JSON JSON",
            help="Two neighbouring data sets; without them, neighbours of --data, or lists of "
            "numbers, of which a pilot finds the most telling.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="Data (.json, .csv, .npy, .parquet)."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            parser=number,
            metavar="NUMBER",
            help="Claimed ε; the subject's own by default.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            parser=number,
            metavar="NUMBER",
            help="Claimed δ; the subject's own, or 0.",
        ),
    ] = None,
    claim: Stated = None,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="FILE", help="Test all that this plan file proves."),
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="NOUN", help="Who a function protects.")
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(
            "--relation",
            metavar="KIND",
            help="Which data sets are neighbours; each: every number of a list may move by 1.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            parser=whole_number,
            metavar="N",
            help="Runs on each side: 10000 by default, with --through-run what takes two minutes.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence", parser=number, metavar="NUMBER", help="Of the lower bound, in (0, 1)."
        ),
    ] = 0.95,
    through_run: Annotated[
        bool,
        typer.Option(
            "--through-run",
            help="Attack the real run of a subject, not its audit_release.",
        ),
    ] = False,
    canaries: Annotated[
        int | None,
        typer.Option(
            "--canaries",
            parser=whole_number,
            metavar="N",
            help="The function is train(mask, rng): it trains with the canaries of the mask, and "
            "gives a score for each of N; attack memberships.",
        ),
    ] = None,
    attack: Annotated[
        str | None,
        typer.Option(
            "--attack",
            metavar="KIND",
            help="On memberships: one-run (default), loss-threshold, lira-online, lira-offline, "
            "rmia, rmia-offline.",
        ),
    ] = None,
    shadows: Annotated[
        int | None,
        typer.Option("--shadows", parser=whole_number, metavar="N", help="Shadow models; 32."),
    ] = None,
    targets: Annotated[
        int | None,
        typer.Option("--targets", parser=whole_number, metavar="N", help="Attacked models; 1."),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    workers: Annotated[
        int, typer.Option("--workers", parser=whole_number, metavar="N", help="Worker processes.")
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Run on this dask scheduler instead."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            parser=number,
            metavar="SECONDS",
            help="That one run may take: 60 by default; with --canaries, any time.",
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            parser=number,
            metavar="MB",
            help="That the code may take beyond what it begins with.",
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="NAME=JSON", help="Set a parameter of the function."),
    ] = None,
    own_randomness: Annotated[
        bool,
        typer.Option(
            "--own-randomness",
            help="The code draws from elsewhere than its rng; no audit of it can be replayed.",
        ),
    ] = False,
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal", help="Keep finished runs here, and go on from them (needs --seed)."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the certificate with this audit (JSON)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Attack running code on neighbouring data, with a stated error rate."""
    from dpaudit.cli import show
    from dpaudit.errors import InputError
    from dpaudit.project import Execution
    from dpaudit.project.execution import DEFAULTS
    from dpaudit.workflow.attacking import audit_target
    from dpaudit.workflow.through_run import SECONDS
    from dpaudit.workflow.training import audit_training

    if (subject is None) == (command is None):
        raise InputError("SUBJECT and --command are given both or not at all; give one of them.")
    execution = Execution(
        runs=DEFAULTS.runs if runs is None else runs,
        confidence=confidence,
        seed=seed,
        workers=workers,
        dask=dask,
        timeout=DEFAULTS.timeout if timeout is None and canaries is None else timeout,
        memory=memory,
        own_randomness=own_randomness,
        journal=journal,
    )
    with foreign_code():
        if canaries is not None:
            others = {"--command": command, "--pair": pair, "--data": data, "--runs": runs}
            _refuse(others | {"--through-run": through_run or None}, "with --canaries")
            outcome = audit_training(
                subject or "",
                canaries,
                execution,
                attack=attack,
                models={"shadows": shadows, "targets": targets},
                settings=settings or (),
                arguments=arguments or (),
                plan=plan,
                **{"epsilon": epsilon, "delta": delta, "claim": claim},
                **{"unit": unit, "relation": relation},
            )
        else:
            given = {"--attack": attack, "--shadows": shadows, "--targets": targets}
            _refuse(given, "without --canaries")
            outcome = audit_target(
                subject or command or "",
                settings or (),
                pair,
                epsilon,
                delta,
                execution,
                through_run=through_run,
                seconds=SECONDS if runs is None else None,
                claim=claim,
                arguments=arguments or (),
                plan=plan,
                unit=unit,
                relation=relation,
                command=command is not None,
                data=data,
            )
    if output is not None:
        outcome.certificate().save(output)
    show.audit(outcome, as_json=as_json)
    raise typer.Exit(outcome.exit_code)


def _refuse(options: Mapping[str, object], where: str) -> None:
    from dpaudit.errors import InputError

    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name} is given {where}, and has no meaning there; leave it out.")
