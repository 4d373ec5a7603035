"""What ``dpaudit replay`` prints; it holds private values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table

from dpaudit.auditing.replaying.replay import Comparison
from dpaudit.cli.show import answering, escape, say
from dpaudit.workflow.rehearsing import NeighbourReplay, share

MOST_ROWS = 20


@answering()
def neighbours(replays: Sequence[NeighbourReplay]) -> None:
    """One line for each neighbour, with the release that it moves most."""
    table = Table("neighbour", "furthest", "at", box=None, pad_edge=False)
    table.add_column("found", no_wrap=True)
    for each in replays:
        largest = None if math.isinf(each.hops) else each.largest
        apart = ("", "") if largest is None else (f"{share(largest):.4g}", _place(largest))
        rules = ", ".join(dict.fromkeys(finding.rule for finding in each.report.findings))
        raised = f"raised {each.report.raised}" if each.report.raised else ""
        table.add_row(*map(escape, (each.neighbour, *apart, rules or raised)))
    table.caption = "furthest: distance of values before noise, over the declared sensitivity"
    say(table)


@answering()
def one_neighbour(replay: NeighbourReplay) -> None:
    """The releases that a neighbour moves most, and what is found."""
    say(_releases(replay))
    for finding in replay.report.findings:
        say(f"[red]{finding.rule}[/]: {escape(finding.message)}")
    if replay.report.raised:
        say(f"[red]raised[/]: {escape(replay.report.raised)}")


def _releases(replay: NeighbourReplay) -> Table:
    """The releases that one neighbour moves most."""
    table = Table("release", "distance", "declared", box=None, pad_edge=False)
    ordered = sorted(replay.report.comparisons, key=share, reverse=True)
    for one in ordered[:MOST_ROWS]:
        table.add_row(escape(_place(one)), f"{one.observed:.6g}", f"{one.declared:.6g}")
    if len(ordered) > MOST_ROWS:
        table.caption = f"{len(ordered) - MOST_ROWS} more releases, which it moves less"
    return table


def _place(one: Comparison) -> str:
    whom = "" if one.unit is None else f" for {one.unit}"
    return f"{one.at}{whom} ({one.source})"
