"""What the command ``release`` prints: costs before any data, and results with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table

from dpaudit.certificate import Certificate
from dpaudit.cli import show
from dpaudit.cli.show import escape
from dpaudit.reporting.results import ResultTable, result_tables

if TYPE_CHECKING:
    from dpaudit.workflow.releasing import QueryCost

_MOST = 20
"""Rows of a query that a terminal shows; the files have all."""


@show.answering()
def planned(certificate: Certificate, costs: Sequence[QueryCost]) -> None:
    """Print what each query asks for and how exact it will be, and the certificate."""
    queries = [asdict(each) for each in costs]
    record = {"queries": queries, "certificate": certificate.to_dict()}
    if show.answered("release-plan", record):
        return
    for each in costs:
        show.say(f"[bold]{escape(each.query)}[/]: {escape(each.what)}")
        facts = show.grid()
        facts.add_row("  error (95 %)", escape(each.error))
        facts.add_row("  noise", escape("; ".join(each.noise)))
        show.say(facts)
    show.certificate(certificate)


def results(certificate: Certificate) -> None:
    """Print the released numbers of each query, each with the interval of its noise."""
    for told in result_tables(certificate, _MOST):
        what = f": {told.what}" if told.what else ""
        show.say(f"[bold]{escape(told.query)}[/]{escape(what)}")
        show.say(_table(told))
        if told.left:
            show.say(f"… and {told.left} more rows in the files")
        if told.note:
            show.say(f"[dim]{escape(told.note)}[/]")


def _table(told: ResultTable) -> Table:
    table = show.table()
    for place, head in enumerate(told.heads):
        number = place >= len(told.heads) - told.numbers
        table.add_column(escape(head), justify="right" if number else "left", overflow="fold")
    for row in told.rows:
        table.add_row(*map(escape, row))
    return table
