"""``dpaudit replay``: what a rehearsal does, shown to whoever may see the data."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaudit.cli.options import Runnable, Settings, option, working


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
    from dpaudit.cli.exits import Exit
    from dpaudit.cli.show_replay import neighbours, one_neighbour
    from dpaudit.workflow.replaying import replay_subject

    with working(f"replay {subject}"):
        found = list(
            replay_subject(subject, settings or (), data=data, seed=seed, neighbour=neighbour)
        )
    if neighbour:
        one_neighbour(found[0])
    else:
        neighbours(found)
    raise typer.Exit(Exit.CERTIFIED if all(each.report.clean for each in found) else Exit.REFUTED)
