"""The commands of a project (``check``, ``init``), of its rehearsals (``replay``), and ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.exits import Exit
from dpaudit.cli.option_groups import Service
from dpaudit.cli.options import RunFolder, Runnable, Settings, option, whole_number, working

if TYPE_CHECKING:
    from dpaudit.workflow.outcomes import ProjectOutcome


def check(
    project: Annotated[
        Path, typer.Argument(metavar="[dpaudit.toml]", help="The project file, or its folder.")
    ] = Path("dpaudit.toml"),
    since: Annotated[
        Path | None,
        option(
            "--since",
            "CERT",
            "Say what changed since a certificate, or a folder of them; worse is exit 1, and "
            "does not overwrite them.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder of the reports, in place of the project file's."
        ),
    ] = None,
    budgets: Service = None,
) -> None:
    """Certify, attack and report every subject of a project, and sum its budgets."""
    from dpaudit.cli import show_project
    from dpaudit.workflow.checking import check_project

    kept = "reports are written after all work: those of before stay, the same command begins anew"
    with working("check", kept):
        outcome, files = check_project(project, since=since, reports=output, others=budgets)
    show_project.checked(outcome, files)
    raise typer.Exit(exit_of_project(outcome))


def exit_of_project(outcome: ProjectOutcome) -> Exit:
    """The worst row makes the exit code; less privacy than before is never better than 1."""
    from dpaudit.workflow.outcomes import Status

    code = {
        Status.CERTIFIED: Exit.CERTIFIED,
        Status.UNPROVEN: Exit.UNPROVEN,
        Status.EXCEEDED: Exit.REFUTED,
        Status.REFUTED: Exit.REFUTED,
        Status.ERROR: Exit.INPUT,
    }[outcome.status]
    return Exit.REFUTED if outcome.is_worse and code is not Exit.INPUT else code


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Folder to make, such as my-study.")],
    survey: Annotated[
        bool, typer.Option("--survey", help="An algorithm in Python, attacked: a survey.")
    ] = False,
    counts: Annotated[
        bool, typer.Option("--counts", help="Counts and sums, by code that runs sealed.")
    ] = False,
    library: Annotated[
        bool, typer.Option("--library", help="Code that calls diffprivlib, certified as it is.")
    ] = False,
    training: Annotated[bool, typer.Option("--training", help="A private training.")] = False,
) -> None:
    """Start a project: a release of a table (or code), a project file, a test, CI."""
    from dpaudit.cli import show_project
    from dpaudit.project.scaffold.scaffolding import Kind, scaffold

    wanted = {
        Kind.SURVEY: survey,
        Kind.COUNTS: counts,
        Kind.LIBRARY: library,
        Kind.TRAINING: training,
    }
    kinds = [kind for kind, given in wanted.items() if given]
    if len(kinds) > 1:
        raise typer.BadParameter(f"--{kinds[0]} and --{kinds[1]} are both given; keep one")
    show_project.scaffolded(name, scaffold(name, *kinds))


def demo(
    output: RunFolder = Path("out/demo"),
    seed: Annotated[int, option("--seed", "N", "Seed of the experiment.", parser=whole_number)] = 1,
) -> None:
    """Certify, run, audit and report one algorithm on real house prices."""
    from dpaudit.cli import show
    from dpaudit.cli.exits import exit_of
    from dpaudit.workflow.demo import run_demo

    kept = f"the same command makes anew what there is in {output}"
    with working("demo", kept):
        certificate, files = run_demo(output, seed)
    show.certificate(certificate, files=files)
    raise typer.Exit(exit_of(certificate))


def replay(
    subject: Runnable,
    data: Annotated[
        str | None, option("--data", "NAME|PATH", "What to run on; its own by default.")
    ] = None,
    settings: Settings = None,
    seed: Annotated[int, option("--seed", "N", "Seed of the rehearsal.", min=0)] = 0,
    neighbour: Annotated[
        str, option("--neighbour", "TEXT", "How it is made; all by default.")
    ] = "",
) -> None:
    """Compare runs on neighbouring data, release by release. Prints private values.

    The same releases are given to both runs, so that all that differs is due to the data.
    """
    from dpaudit.cli.show_replay import neighbours, one_neighbour
    from dpaudit.workflow.rehearsing import replay_subject

    with working(f"replay {subject}"):
        found = list(
            replay_subject(subject, settings or (), data=data, seed=seed, neighbour=neighbour)
        )
    if neighbour:
        one_neighbour(found[0])
    else:
        neighbours(found)
    raise typer.Exit(Exit.CERTIFIED if all(each.report.clean for each in found) else Exit.REFUTED)
