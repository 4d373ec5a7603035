"""What the commands of the book print."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rich.markup import escape

from dpaudit import files
from dpaudit.book import Release, Room
from dpaudit.cli.show import answering, grid, say, table
from dpaudit.numbers import percent, up


@answering()
def releases(listed: Sequence[Release], *, as_json: bool) -> None:
    """Print releases, one a row."""
    if as_json:
        records = [each.to_dict() for each in listed]
        sys.stdout.write(files.pretty_json(records[0] if len(records) == 1 else records))
        return
    rows = table("release", "status", "data set", "made", "by", "approved", "purpose", "plan")
    for each in listed:
        cells = (each.id, each.status, each.dataset, each.made[:16], each.by, each.approved)
        rows.add_row(*map(escape, (*cells, each.purpose, each.plan[:12])))
    say(rows)


@answering()
def status(
    rooms: Sequence[Room],
    asked: bool,
    times: int | None,
    noise: Mapping[str, tuple[str, float]] | None,
    *,
    as_json: bool,
) -> None:
    """Print what is left; and of a plan, where one is asked for, how often it fits."""
    plan = {"times": times, "noise": noise} if asked else None
    if as_json:
        records = [
            {
                "dataset": each.dataset.to_dict(),
                "budgets": [own.to_dict() for own in each.left],
                "releases": dict(each.releases),
            }
            for each in rooms
        ]
        sys.stdout.write(files.pretty_json({"datasets": records, "plan": plan}))
        return
    for each in rooms:
        counted = ", ".join(f"{n} {name}" for name, n in sorted(each.releases.items()))
        say(f"[bold]{escape(each.dataset.name)}[/] {escape(each.dataset.protects)}; {counted}")
        rows = table("budget", "limit", "over", "reached", "used")
        for own in each.left:
            reached = own.budget.limit.reached(own.total).items()
            told = ", ".join(f"{name} = {up(value)}" for name, value in reached)
            used = percent(own.share) if own.share <= 1 else "more than all"
            cells = own.budget.name, str(own.budget.limit), own.bucket, told, used
            rows.add_row(*map(escape, cells))
        say(rows)
    if asked:
        facts = grid()
        facts.add_row("this plan fits", "as often as you like" if times is None else f"{times} ×")
        for at, (name, value) in (noise or {}).items():
            facts.add_row(f"least noise that fits, {escape(at)}", f"{name} = {value!r}")
        say(facts)
