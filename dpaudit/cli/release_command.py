"""The command ``release``: declared queries over a table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.option_groups import Service
from dpaudit.cli.options import RunFolder, Seed, Witness, kept_of, option, whole_number, working


def release(
    file: Annotated[Path, typer.Argument(metavar="RELEASE.toml", help="What is to be released.")],
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Print costs and expected errors; no data are touched."),
    ] = False,
    synthetic: Annotated[
        int | None,
        option("--synthetic", "N", "Try it on N made-up rows of the schema.", parser=whole_number),
    ] = None,
    cluster: Annotated[
        str | None,
        option("--cluster", "ADDRESS", "Work off the rows on a dask cluster (tcp://…)."),
    ] = None,
    seed: Seed = None,
    output: RunFolder = Path("out"),
    durability: Annotated[
        str, option("--durability", "END", "What the ledger survives: process or power.")
    ] = "process",
    anchor: Annotated[
        Path | None, option("--anchor", "FILE", "Keep the ledger's head here too.")
    ] = None,
    witness: Witness = None,
    charging: Service = None,
) -> None:
    """Release declared queries over a table: CSV, Parquet, DuckDB or PostgreSQL.

    The file declares schema, privacy and queries; no code sees a row. Try --plan and --synthetic
    first: both leave the data alone.
    """
    from dpaudit.base import validate
    from dpaudit.base.chain import Durability
    from dpaudit.cli import show, show_release
    from dpaudit.cli.exits import exit_of
    from dpaudit.workflow.releasing import planned, release_table

    if plan:
        with working(f"plan {file.name}"):
            certificate, costs = planned(file)
        show_release.planned(certificate, costs)
        raise typer.Exit(exit_of(certificate))
    with working(f"release {file.name}", partial(kept_of, output)):
        certificate, files = release_table(
            file,
            output,
            synthetic=synthetic,
            cluster=cluster,
            seed=seed,
            durability=validate.member(Durability, durability=durability),
            anchor=anchor,
            charging=None if charging is None else charging(str(file)),
            witness=witness,
        )
    show_release.results(certificate)
    show.certificate(certificate, files=files)
    raise typer.Exit(exit_of(certificate))
