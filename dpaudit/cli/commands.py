"""The commands. Each parses its words, calls the library and prints; nothing is decided here."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer


def _number(text: str) -> float:
    """A float, or an error that shows what was given."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r:.80} is not a number") from None


def _whole(text: str) -> int:
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
    typer.Option("--delta", parser=_number, metavar="NUMBER", help="δ of the guarantee."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        parser=_whole,
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


def list_subjects(as_json: Json = False) -> None:
    """List the installed subjects, mechanisms and accountants."""
    from dpaudit.cli import show
    from dpaudit.cli.inventory import inventory

    show.inventory(inventory(), as_json=as_json)


def certify(
    subject: Annotated[
        str, typer.Argument(metavar="SUBJECT|PLAN.toml", help="module:Object, or a plan file.")
    ],
    settings: Settings = None,
    delta: Delta = None,
    accountant: Annotated[
        str,
        typer.Option(
            "--accountant", metavar="NAME", help="best, pure, gaussian, zcdp, rdp, moments or pld."
        ),
    ] = "best",
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Put the code to the test too, on neighbouring data."),
    ] = False,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="NAME|PATH", help="What to rehearse on."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the certificate (JSON).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove what can be proved of a plan, before any data exist."""
    from dpaudit.certificate import Scope
    from dpaudit.cli import show
    from dpaudit.cli.exits import Exit, exit_of
    from dpaudit.workflow.certifying import certify_target

    with foreign_code():
        certificate = certify_target(
            subject, settings or (), delta, accountant, rehearse=rehearse, data=data
        )
    if output is not None:
        certificate.save(output)
    show.certificate(certificate, as_json=as_json)
    code = exit_of(certificate)
    if rehearse and certificate.scope is Scope.PLAN:  # what was asked for could not be done
        code = code or Exit.UNPROVEN
    raise typer.Exit(code)


def run(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="module:Object.")],
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="NAME|PATH", help="What to run on; the subject's own by default."
        ),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for ledger, certificate and report.")
    ] = Path("out"),
    float_noise: Annotated[
        bool,
        typer.Option(
            "--float-noise",
            help="Without a seed: draw in floating point, not from exact samplers.",
        ),
    ] = False,
    durability: Annotated[
        str,
        typer.Option(
            "--durability", metavar="process|power", help="What a line of the ledger survives."
        ),
    ] = "process",
    anchor: Annotated[
        Path | None,
        typer.Option("--anchor", metavar="FILE", help="Keep the ledger's head here too."),
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse/--no-rehearsal", help="Put the code to the test first, on the same data."
        ),
    ] = True,
    as_json: Json = False,
) -> None:
    """Run a subject on data through a ledger; writes ledger, certificate and report.

    With --seed it is an experiment. Without, the noise comes from exact samplers
    (dpaudit[secure]) unless --float-noise is given.
    """
    from dpaudit import validate
    from dpaudit.cli import show
    from dpaudit.cli.exits import exit_of
    from dpaudit.ledger import Durability
    from dpaudit.workflow.running import run_subject

    with foreign_code():
        certificate, files = run_subject(
            subject,
            settings or (),
            data,
            seed,
            output,
            float_noise=float_noise,
            durability=validate.member(Durability, durability=durability),
            anchor=anchor,
            rehearse=rehearse,
        )
    show.certificate(certificate, as_json=as_json, files=files)
    raise typer.Exit(exit_of(certificate))


def audit(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="SUBJECT|FILE.py:function",
            help="A subject, or a function f(data, rng) or f(data, rng, size).",
        ),
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option("--pair", metavar="JSON JSON", help="Two neighbouring data sets."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            parser=_number,
            metavar="NUMBER",
            help="Claimed ε; the subject's own by default.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            parser=_number,
            metavar="NUMBER",
            help="Claimed δ; the subject's own, or 0.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs", parser=_whole, metavar="N", help="Runs on each side; 10 000 by default."
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence", parser=_number, metavar="NUMBER", help="Of the lower bound, in (0, 1)."
        ),
    ] = 0.95,
    through_run: Annotated[
        bool,
        typer.Option(
            "--through-run",
            help="Attack the real run of a subject, not its audit_release.",
        ),
    ] = False,
    settings: Settings = None,
    seed: Seed = None,
    workers: Annotated[
        int, typer.Option("--workers", parser=_whole, metavar="N", help="Worker processes.")
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Run on this dask scheduler instead."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", parser=_number, metavar="SECONDS", help="That one run may take."),
    ] = 60.0,
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal", help="Keep finished runs here, and go on from them (needs --seed)."
        ),
    ] = None,
    catalogue: Annotated[
        bool,
        typer.Option(
            "--catalogue",
            help="Measure the auditors on a folder of right and wrong mechanisms "
            "(the argument, or audits/catalogue).",
        ),
    ] = False,
    seeds: Annotated[
        int,
        typer.Option("--seeds", parser=_whole, metavar="N", help="Audits of each catalogue row."),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the certificate with this audit (JSON)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Attack running code on neighbouring data, with a stated error rate."""
    if catalogue:
        _audit_catalogue(subject, runs, seed, seeds, as_json=as_json)
    if subject is None:
        raise typer.BadParameter("give a subject or FILE.py:function, or --catalogue")
    from dpaudit.cli import show
    from dpaudit.project import Execution
    from dpaudit.workflow.attacking import audit_target

    execution = Execution(
        runs=10_000 if runs is None else runs,
        confidence=confidence,
        seed=seed,
        workers=workers,
        dask=dask,
        timeout=timeout,
        journal=journal,
    )
    with foreign_code():
        outcome = audit_target(
            subject, settings or (), pair, epsilon, delta, execution, through_run=through_run
        )
    if output is not None:
        outcome.certificate().save(output)
    show.audit(outcome, as_json=as_json)
    raise typer.Exit(outcome.exit_code)


def _audit_catalogue(
    folder: str | None, runs: int | None, seed: int | None, seeds: int, *, as_json: bool
) -> NoReturn:
    """The table of a catalogue, row by row as they are done."""
    from dpaudit.cli import show
    from dpaudit.workflow.catalogue import DEFAULT_CATALOGUE, audit_catalogue

    table = audit_catalogue(
        folder or DEFAULT_CATALOGUE,
        seed=seed,
        seeds=seeds,
        runs=runs,
        progress=None if as_json else show.catalogue_row,
    )
    show.catalogue(table, as_json=as_json)
    raise typer.Exit(0 if table.as_expected else 1)


def report(
    certificates: Annotated[list[Path], typer.Argument(metavar="CERT.json...")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="File to write; its ending (.html, .pdf …) decides."),
    ],
    owner: Annotated[
        Path | None,
        typer.Option(
            "--owner",
            metavar="owner.json",
            help="Add what the owner of the data alone may see, and say so.",
        ),
    ] = None,
    second_opinion: WithSecondOpinion = False,
    allow_work: AllowWork = False,
) -> None:
    """Verify a certificate, or several, and render them for people or for machines."""
    from dpaudit.cli import show
    from dpaudit.reporting import render_to, renderer_for, require_shown
    from dpaudit.workflow.owner import with_owner
    from dpaudit.workflow.verifying import load_verified, opinion_on

    if second_opinion:
        require_shown(renderer_for(output))
    if owner is not None and len(certificates) > 1:
        raise typer.BadParameter("--owner goes with one certificate")
    verified = [load_verified(path, allow_work=allow_work) for path in certificates]
    opinions = [opinion_on(each) for each in verified] if second_opinion else []
    if owner is not None:
        verified = [with_owner(verified[0], owner)]
    show.written(render_to(verified, output, opinions))


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A certificate or a ledger.")],
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", metavar="FILE", help="The ledger of the certificate's run."),
    ] = None,
    anchor: Annotated[
        Path | None,
        typer.Option("--anchor", metavar="FILE", help="What kept the ledger's head."),
    ] = None,
    second_opinion: WithSecondOpinion = False,
    allow_work: AllowWork = False,
    as_json: Json = False,
) -> None:
    """Recompute a certificate's guarantee, or check a ledger's chain."""
    from dpaudit.cli import show
    from dpaudit.cli.exits import exit_of_opinion
    from dpaudit.workflow.verifying import verify_file

    found = verify_file(
        file,
        ledger=ledger,
        anchor=anchor,
        with_second_opinion=second_opinion,
        allow_work=allow_work,
    )
    show.verification(found, as_json=as_json)
    raise typer.Exit(exit_of_opinion(found.opinion))


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for ledger, certificate and report.")
    ] = Path("out/demo"),
    seed: Annotated[
        int, typer.Option("--seed", parser=_whole, metavar="N", help="Seed of the experiment.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Certify, run, audit and report one algorithm on real house prices."""
    from dpaudit.cli import show
    from dpaudit.cli.exits import exit_of
    from dpaudit.workflow.demo import run_demo

    certificate, files = run_demo(output, seed)
    show.certificate(certificate, as_json=as_json, files=files)
    raise typer.Exit(exit_of(certificate))
