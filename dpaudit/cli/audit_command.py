"""The command ``audit``: attacks on running code, asked by options.

The options bear the names of the fields of an ``AuditRequest``, which refuses what has no meaning
together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpaudit.cli.options import Seed, Settings, Stated, given_by, typed, working

_OPTIONS: dict[str, Any] = {
    "subject": Annotated[
        str | None,
        typer.Argument(
            metavar="SUBJECT|FILE.py:function|module:function",
            help="A subject; or a function f(data, rng), f(data, rng, size) for batches, or "
            "f(data) with its own randomness; or train(mask, rng), with --canaries; or "
            "Class.method, of an instance made of its defaults and --set.",
        ),
    ],
    "command": typed(
        str,
        "--command 'PROGRAM ARGS'",
        "A program in its place: data as JSON on stdin, the answer as JSON on stdout.",
    ),
    "pair": typed(
        tuple[str, str],
        "--pair JSON JSON",
        "Two neighbouring data sets; without them, neighbours of --data, or lists of "
        "numbers, of which a pilot finds the most telling.",
    ),
    "data": typed(str, "--data FILE", "Data (.json, .csv, .npy, .parquet)."),
    "epsilon": typed(float, "--epsilon NUMBER", "Claimed ε; the subject's own by default."),
    "delta": typed(float, "--delta NUMBER", "Claimed δ; the subject's own, or 0."),
    "claim": Stated,
    "plan": typed(str, "--plan FILE", "Test all that this plan file proves."),
    "unit": typed(str, "--unit NOUN", "Who a function protects."),
    "relation": typed(
        str,
        "--relation KIND",
        "Which data sets are neighbours; each: every number of a list may move by 1.",
    ),
    "runs": typed(
        int,
        "--runs N",
        "Runs on each side: 10000 by default, with --through-run what takes two minutes.",
    ),
    "confidence": typed(float, "--confidence NUMBER", "Of the lower bound, in (0, 1)."),
    "through_run": typed(
        bool, "--through-run", "Attack the real run of a subject, not its audit_release."
    ),
    "canaries": typed(
        int,
        "--canaries N",
        "The function is train(mask, rng): it trains with the canaries of the mask, and "
        "gives a score for each of N; attack memberships.",
    ),
    "attack": typed(
        str,
        "--attack KIND",
        "On memberships: one-run (default), loss-threshold, lira-online, lira-offline, "
        "rmia, rmia-offline.",
    ),
    "shadows": typed(int, "--shadows N", "Shadow models; 32."),
    "targets": typed(int, "--targets N", "Attacked models; 1."),
    "settings": Settings,
    "seed": Seed,
    "workers": typed(int, "--workers N", "Worker processes."),
    "dask": typed(str, "--dask ADDRESS", "Run on this dask scheduler instead."),
    "timeout": typed(
        float,
        "--timeout SECONDS",
        "That one run may take: 60 by default; with --canaries, any time.",
    ),
    "memory": typed(float, "--memory MB", "That the code may take beyond what it begins with."),
    "arguments": typed(list[str], "--arg NAME=JSON", "Set a parameter of the function."),
    "own_randomness": typed(
        bool,
        "--own-randomness",
        "The code draws from elsewhere than its rng; no audit of it can be replayed.",
    ),
    "journal": typed(
        Path, "--journal", "Keep finished runs here, and go on from them (needs --seed)."
    ),
    "output": Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the certificate with this audit (JSON)."),
    ],
}


@given_by(_OPTIONS, confidence=0.95, workers=1, through_run=False, own_randomness=False)
def audit(output: Path | None, **given: Any) -> None:
    """Attack running code on neighbouring data, with a stated error rate."""
    from dpaudit.cli import show
    from dpaudit.project.audit_request import AuditRequest
    from dpaudit.workflow import attacking

    request, journal = AuditRequest.of_options(given), given["journal"]
    kept = "nothing is kept; with --journal FILE and --seed N the same command would go on"
    if journal is not None:
        kept = f"finished runs are in {journal}, and the same command goes on with them"
    with working(f"audit {request.target}", kept):
        outcome = attacking.audit(request)
    if output is not None:
        outcome.certificate().save(output)
    show.audit(outcome)
    raise typer.Exit(outcome.exit_code)
