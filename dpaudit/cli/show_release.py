"""What the command ``release`` prints: costs before any data, and results with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from dpaudit.certificate import Certificate
from dpaudit.cli import show

if TYPE_CHECKING:
    from dpaudit.workflow.releasing import QueryCost

_MOST = 40
"""Rows of results that a terminal shows; the files have all."""


def planned(costs: Sequence[QueryCost]) -> None:
    """Print noise and expected error of each query."""
    table = show.table("query", "what", "noise", "error (95 %)")
    for each in costs:
        table.add_row(
            escape(each.query), escape(each.what), escape("\n".join(each.noise)), escape(each.error)
        )
    show.say(table)


def results(certificate: Certificate) -> None:
    """Print the released numbers, each with the interval of its noise."""
    told = (certificate.run or {}).get("results", ())
    table = show.table("query", "cell", "value", "95 % interval of the noise")
    rows = [(result, row) for result in told for row in result["rows"]]
    for result, row in rows[:_MOST]:
        cell = ", ".join(
            f"{name} {label}" for name, label in zip(result["columns"], row["cell"], strict=True)
        )
        table.add_row(
            escape(result["query"]), escape(cell), escape(_number(row["value"])), _interval(row)
        )
    show.say(table)
    if len(rows) > _MOST:
        show.say(f"… and {len(rows) - _MOST} more rows in the files", markup=False)


def _interval(row: dict[str, Any]) -> str:
    if "low" not in row:
        return escape(row.get("note", ""))
    return f"{_number(row['low'])} to {_number(row['high'])}"


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    return str(value)
