"""What ``dpaudit list NAME`` and ``dpaudit calibrate`` print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from dpaudit import files
from dpaudit.cli.show import answering
from dpaudit.numbers import percent, plain, up

if TYPE_CHECKING:
    from dpaudit.project.describing import Description, Parameter
    from dpaudit.workflow.calibrating import Calibrated


@answering()
def descriptions(described: Sequence[Description], *, as_json: bool) -> None:
    """Print all of some kinds: what they are, their keys, a plan file."""
    if as_json:
        records = [each.to_dict() for each in described]
        sys.stdout.write(files.pretty_json(records[0] if len(records) == 1 else records))
        return
    console = Console(highlight=False)
    for each in described:
        console.print(f"[bold]{escape(each.name)}[/] ({each.family}): {escape(each.about)}")
        if len(described) > 1 or not each.example:
            console.print(Padding(escape(each.written), (0, 0, 0, 2)))
        _parameters(console, each.parameters)
        if each.shared:
            console.print("\nof every invocation:")
        _parameters(console, each.shared)
        if len(described) == 1 and each.example:
            console.print("\n[dim]# a plan file[/]")
            console.print(escape(each.example), soft_wrap=True)


def _parameters(console: Console, listed: Sequence[Parameter]) -> None:
    for each in listed:
        kind = f"{each.type}, in units {each.unit}" if each.unit else each.type
        default = f"; {each.default} by default" if each.default else ""
        kept = "; must be given" if each.default is None else default
        console.print(
            Padding(f"[cyan]{each.name}[/] = {escape(each.example)}", (0, 0, 0, 2)),
            Padding(escape(f"{kind}{kept}: {each.meaning}"), (0, 0, 0, 6)),
        )


def _table(*heads: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, overflow="fold", no_wrap=number == 0)
    return table


@answering()
def calibrated(found: Calibrated, written: Path | None, *, as_json: bool) -> None:
    """Print the noise, what it proves, and what other noise would cost."""
    if as_json:
        sys.stdout.write(files.pretty_json(found.to_dict()))
        return
    console = Console(highlight=False)
    certificate = found.certificate
    proved = certificate.guarantee
    assert proved is not None
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    facts.add_row("claim", f"{escape(str(certificate.claim))}: [green]{certificate.verdict}[/]")
    for at, (name, value) in list(found.noise.items())[:20]:
        facts.add_row(escape(at), f"[bold]{name} = {value!r}[/]")
    if len(found.noise) > 20:
        facts.add_row("", f"… and {len(found.noise) - 20} more")
    facts.add_row("guarantee", f"ε = {up(proved.epsilon)}, δ = {plain(proved.delta)}")
    console.print(facts)
    name = next(iter(found.noise.values()))[0]
    table = _table("noise", name, f"ε at δ = {plain(proved.delta)}", "advantage", "50:50 guess", "")
    for cost in found.costs:
        table.add_row(
            f"× {cost.factor:g}",
            plain(cost.noise),
            up(cost.epsilon),
            up(cost.advantage),
            percent((1 + cost.advantage) / 2),
            "[green]certified[/]" if cost.certified else "[red]not certified[/]",
        )
    console.print(table)
    if written is not None:
        console.print(f"wrote {escape(str(written))}", soft_wrap=True)
