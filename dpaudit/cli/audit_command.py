"""The command ``audit``: attacks on running code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.options import Seed, Settings, Stated, number, option, whole_number, working


def audit(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="SUBJECT|FILE.py:function|module:function",
            help="A subject; or a function f(data, rng), f(data, rng, size) for batches, or "
            "f(data) with its own randomness; or train(mask, rng), with --canaries; or "
            "Class.method, of an instance made of its defaults and --set.",
        ),
    ] = None,
    command: Annotated[
        str | None,
        option(
            "--command",
            "'PROGRAM ARGS'",
            "A program in its place: data as JSON on stdin, the answer as JSON on stdout.",
        ),
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        option(
            "--pair",
            "JSON JSON",
            "Two neighbouring data sets; without them, neighbours of --data, or lists of "
            "numbers, of which a pilot finds the most telling.",
        ),
    ] = None,
    data: Annotated[
        str | None, option("--data", "FILE", "Data (.json, .csv, .npy, .parquet).")
    ] = None,
    epsilon: Annotated[
        float | None,
        option("--epsilon", "NUMBER", "Claimed ε; the subject's own by default.", parser=number),
    ] = None,
    delta: Annotated[
        float | None,
        option("--delta", "NUMBER", "Claimed δ; the subject's own, or 0.", parser=number),
    ] = None,
    claim: Stated = None,
    plan: Annotated[
        str | None, option("--plan", "FILE", "Test all that this plan file proves.")
    ] = None,
    unit: Annotated[str | None, option("--unit", "NOUN", "Who a function protects.")] = None,
    relation: Annotated[
        str | None,
        option(
            "--relation",
            "KIND",
            "Which data sets are neighbours; each: every number of a list may move by 1.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        option(
            "--runs",
            "N",
            "Runs on each side: 10000 by default, with --through-run what takes two minutes.",
            parser=whole_number,
        ),
    ] = None,
    confidence: Annotated[
        float, option("--confidence", "NUMBER", "Of the lower bound, in (0, 1).", parser=number)
    ] = 0.95,
    through_run: Annotated[
        bool,
        typer.Option(
            "--through-run", help="Attack the real run of a subject, not its audit_release."
        ),
    ] = False,
    canaries: Annotated[
        int | None,
        option(
            "--canaries",
            "N",
            "The function is train(mask, rng): it trains with the canaries of the mask, and "
            "gives a score for each of N; attack memberships.",
            parser=whole_number,
        ),
    ] = None,
    attack: Annotated[
        str | None,
        option(
            "--attack",
            "KIND",
            "On memberships: one-run (default), loss-threshold, lira-online, lira-offline, "
            "rmia, rmia-offline.",
        ),
    ] = None,
    shadows: Annotated[
        int | None, option("--shadows", "N", "Shadow models; 32.", parser=whole_number)
    ] = None,
    targets: Annotated[
        int | None, option("--targets", "N", "Attacked models; 1.", parser=whole_number)
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    workers: Annotated[int, option("--workers", "N", "Worker processes.", parser=whole_number)] = 1,
    dask: Annotated[
        str | None, option("--dask", "ADDRESS", "Run on this dask scheduler instead.")
    ] = None,
    timeout: Annotated[
        float | None,
        option(
            "--timeout",
            "SECONDS",
            "That one run may take: 60 by default; with --canaries, any time.",
            parser=number,
        ),
    ] = None,
    memory: Annotated[
        float | None,
        option(
            "--memory", "MB", "That the code may take beyond what it begins with.", parser=number
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None, option("--arg", "NAME=JSON", "Set a parameter of the function.")
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
) -> None:
    """Attack running code on neighbouring data, with a stated error rate."""
    from dpaudit.base.errors import InputError
    from dpaudit.cli import show
    from dpaudit.project import Execution
    from dpaudit.project.execution import DEFAULTS
    from dpaudit.training.membership.training_audit import audit_training
    from dpaudit.workflow.attacking import audit_target
    from dpaudit.workflow.through_run import SECONDS

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
    kept = "nothing is kept; with --journal FILE and --seed N the same command would go on"
    if journal is not None:
        kept = f"finished runs are in {journal}, and the same command goes on with them"
    with working(f"audit {subject or command}", kept):
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
    show.audit(outcome)
    raise typer.Exit(outcome.exit_code)


def _refuse(options: Mapping[str, object], where: str) -> None:
    from dpaudit.base.errors import InputError

    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name} is given {where}, and has no meaning there; leave it out.")
