"""The commands. Each parses its words, calls the library and prints; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.option_groups import Service
from dpaudit.cli.options import (
    AllowWork,
    CertificateFile,
    Checked,
    Delta,
    RunFolder,
    Runnable,
    Seed,
    Settings,
    Stated,
    Witness,
    kept_of,
    option,
    working,
)

if TYPE_CHECKING:
    from dpaudit.workflow.verifying import Verification


def certify(
    subject: Annotated[
        str, typer.Argument(metavar="SUBJECT|PLAN.toml", help="module:Object, or a plan file.")
    ],
    settings: Settings = None,
    claim: Stated = None,
    delta: Delta = None,
    accountant: Annotated[
        str,
        option(
            "--accountant",
            "NAME",
            "best, pure, gaussian, zcdp, rdp, moments, bounded-range or pld.",
        ),
    ] = "best",
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="Put the code to the test too, on neighbouring data; sealed, on made-up rows.",
        ),
    ] = False,
    data: Annotated[str | None, option("--data", "NAME|PATH", "What to rehearse on.")] = None,
    witness: Witness = None,
    checked: Checked = False,
    output: CertificateFile = None,
) -> None:
    """Prove what can be proved of a plan, before any data exist."""
    from dpaudit.certificate import lacks_check
    from dpaudit.cli import show
    from dpaudit.cli.exits import Exit, exit_of
    from dpaudit.workflow.certifying import certify_target

    with working(f"certify {subject}"):
        certificate = certify_target(
            subject,
            settings or (),
            delta,
            accountant,
            rehearse=rehearse,
            data=data,
            claim=claim,
            witness=True if checked and witness is None else witness,
        )
    if output is not None:
        certificate.save(output)
    show.certificate(certificate)
    code = exit_of(certificate)
    if checked and (lacks := lacks_check(certificate)):
        show.remark(lacks)
        code = code or Exit.UNPROVEN
    raise typer.Exit(code)


def run(
    subject: Runnable,
    data: Annotated[
        str | None, option("--data", "NAME|PATH", "What to run on; the subject's own by default.")
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    output: RunFolder = Path("out"),
    float_noise: Annotated[
        bool,
        typer.Option(
            "--float-noise", help="Without a seed: draw in floating point, not from exact samplers."
        ),
    ] = False,
    durability: Annotated[
        str, option("--durability", "END", "What the ledger survives: process or power.")
    ] = "process",
    anchor: Annotated[
        Path | None, option("--anchor", "FILE", "Keep the ledger's head here too.")
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse/--no-rehearsal", help="Put the code to the test first, on the same data."
        ),
    ] = True,
    sealed: Annotated[
        bool,
        typer.Option(
            "--sealed", help="Refuse a run whose code this machine cannot keep from the data."
        ),
    ] = False,
    witness: Witness = None,
    charging: Service = None,
) -> None:
    """Run a subject on data through a ledger; writes ledger, certificate and report.

    With --seed it is an experiment. Without, the noise comes from exact samplers (the extra
    secure) unless --float-noise is given. The code of a SealedSubject runs in a process that has
    no way to the data, where this machine can do that; it is not rehearsed.
    """
    from dpaudit.base import validate
    from dpaudit.base.chain import Durability
    from dpaudit.cli import show
    from dpaudit.cli.exits import exit_of
    from dpaudit.workflow.running import run_subject

    with working(f"run {subject}", partial(kept_of, output)):
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
            charging=None if charging is None else charging(subject),
            witness=witness,
            sealed=sealed,
        )
    show.certificate(certificate, files=files)
    raise typer.Exit(exit_of(certificate))


def report(
    certificates: Annotated[
        list[Path], typer.Argument(metavar="CERT.json...", help="Certificates, or folders of them.")
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="File to write; its ending (.html, .pdf …) decides."),
    ],
    owner: Annotated[
        Path | None,
        option(
            "--owner", "owner.json", "Add what the owner of the data alone may see, and say so."
        ),
    ] = None,
    second_opinion: Service = None,
    allow_work: AllowWork = False,
) -> None:
    """Verify a certificate, or several, and render them for people or for machines."""
    from dpaudit.cli import show
    from dpaudit.reporting import render_to, renderer_for, require_shown
    from dpaudit.workflow.publishing import certificate_files
    from dpaudit.workflow.running import with_owner
    from dpaudit.workflow.verifying import load_verified

    if second_opinion:
        require_shown(renderer_for(output))
    certificates = [file for path in certificates for file in certificate_files(path)]
    if owner is not None and len(certificates) > 1:
        raise typer.BadParameter("--owner goes with one certificate")
    with working(f"report {output.name}"):
        verified = [load_verified(path, allow_work=allow_work) for path in certificates]
        opinions = [second_opinion(each) for each in verified] if second_opinion else []
        if owner is not None:
            verified = [with_owner(verified[0], owner)]
        made = render_to(verified, output, opinions)
    show.written(made)


def card(
    file: Annotated[Path, typer.Argument(metavar="CERT.json", help="A certificate.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")] = Path(
        "README.md"
    ),
    name: Annotated[
        str | None, option("--name", "TEXT", "Of the model; the subject's by default.")
    ] = None,
    utility: Annotated[
        list[str] | None,
        option(
            "--utility",
            "NAME=SCORE[,SCORE]",
            "A score of the model, and of one without privacy: accuracy=0.85,0.91.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    allow_work: AllowWork = False,
) -> None:
    """Verify a certificate, and write a model card of it, as Hugging Face shows it.

    The card says in words what is proved, what was attacked, and what stays open.
    """
    from dpaudit.cli import show
    from dpaudit.reporting import Utility
    from dpaudit.workflow.publishing import write_card

    scores = tuple(map(Utility.parse, utility or ()))
    with working(f"card {file.name}"):
        made = write_card(file, output, scores, name=name, replacing=force, allow_work=allow_work)
    show.written(made)


def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A certificate or a ledger, or signed.")
    ],
    ledger: Annotated[
        Path | None, option("--ledger", "FILE", "The ledger of the certificate's run.")
    ] = None,
    anchor: Annotated[
        Path | None, option("--anchor", "FILE", "What kept the ledger's head.")
    ] = None,
    signed: Service = None,
    second_opinion: Service = None,
    checked: Checked = False,
    allow_work: AllowWork = False,
) -> None:
    """Recompute a certificate's guarantee, or check a ledger's chain, and who signed them.

    Exit code 0 says that FILE is sound, whatever the verdict in it.
    """
    from dpaudit.cli import show
    from dpaudit.cli.exits import Exit, exit_of_opinion
    from dpaudit.workflow.verifying import verify_file

    check: Callable[..., Verification] = signed or verify_file
    with working(f"verify {file.name}"):
        found = check(
            file,
            ledger=ledger,
            anchor=anchor,
            opinion_on=second_opinion,
            allow_work=allow_work,
        )
    if checked and found.kind == "certificate" and (lacks := found.unchecked):
        found = replace(found, lacks=(*found.lacks, lacks))
    show.verification(found)
    raise typer.Exit(Exit.REFUTED if found.lacks else exit_of_opinion(found.opinion))
