"""What ``dpaudit list NAME``, ``dpaudit explain`` and ``dpaudit calibrate`` print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.padding import Padding

from dpaudit.base.numbers import percent, plain, up
from dpaudit.cli.show import answered, answering, grid, say, table, written

if TYPE_CHECKING:
    from dpaudit.base.finding_table import Finding
    from dpaudit.project.describing import Description, Parameter
    from dpaudit.workflow.calibrating import Calibrated


@answering()
def descriptions(described: Sequence[Description]) -> None:
    """Print all of some kinds: what they are, their keys, a plan file."""
    if answered("kinds", {"kinds": [each.to_dict() for each in described]}):
        return
    for each in described:
        say(f"[bold]{escape(each.name)}[/] ({each.family}): {escape(each.about)}")
        if len(described) > 1 or not each.example:
            say(Padding(escape(each.written), (0, 0, 0, 2)))
        _parameters(each.parameters)
        if each.shared:
            say("\nof every invocation:")
        _parameters(each.shared)
        if len(described) == 1 and each.example:
            say("\n[dim]# a plan file[/]")
            say(escape(each.example), soft_wrap=True)


def _parameters(listed: Sequence[Parameter]) -> None:
    for each in listed:
        kind = f"{each.type}, in units {each.unit}" if each.unit else each.type
        default = f"; {each.default} by default" if each.default else ""
        kept = "; must be given" if each.default is None else default
        say(
            Padding(f"[cyan]{each.name}[/] = {escape(each.example)}", (0, 0, 0, 2)),
            Padding(escape(f"{kind}{kept}: {each.meaning}"), (0, 0, 0, 6)),
        )


@answering()
def findings(known: Sequence[Finding], *, in_full: bool) -> None:
    """Print what may be found: names and severities, or causes and cures."""
    if answered("findings", {"findings": [each.to_dict() for each in known]}):
        return
    if not in_full:
        listed = table("finding", "", "what it says")
        listed.columns[0].no_wrap = True
        for each in known:
            listed.add_row(escape(each.rule), each.severity, escape(each.message))
        say(listed)
    for each in known if in_full else ():
        say(
            f"[bold]{escape(each.rule)}[/] ({each.severity})",
            Padding(escape(each.message), (0, 0, 0, 2)),
            Padding(f"What to do: {escape(each.remedy)}", (0, 0, 0, 2)),
        )


@answering()
def calibrated(found: Calibrated, output: Path | None) -> None:
    """Print the noise, what it proves, and what other noise would cost."""
    if answered("calibration", found.to_dict()):
        return
    certificate = found.certificate
    proved = certificate.guarantee
    assert proved is not None
    facts = grid()
    facts.add_row("claim", f"{escape(str(certificate.claim))}: [green]{certificate.verdict}[/]")
    for at, (name, value) in list(found.noise.items())[:20]:
        facts.add_row(escape(at), f"[bold]{name} = {value!r}[/]")
    if len(found.noise) > 20:
        facts.add_row("", f"… and {len(found.noise) - 20} more")
    facts.add_row("guarantee", f"ε = {up(proved.epsilon)}, δ = {plain(proved.delta)}")
    say(facts)
    name = next(iter(found.noise.values()))[0]
    costs = table("noise", name, f"ε at δ = {plain(proved.delta)}", "advantage", "50:50 guess", "")
    costs.columns[0].no_wrap = True
    for cost in found.costs:
        costs.add_row(
            f"× {cost.factor:g}",
            plain(cost.noise),
            up(cost.epsilon),
            up(cost.advantage),
            percent((1 + cost.advantage) / 2),
            "[green]certified[/]" if cost.certified else "[red]not certified[/]",
        )
    say(costs)
    if output is not None:
        written(output)
