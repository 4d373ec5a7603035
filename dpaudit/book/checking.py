"""Whether the subjects of a project fit what is left of the budgets of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dpaudit.base.errors import InputError
from dpaudit.book.remaining_budget import BudgetUsage, RemainingBudget
from dpaudit.certificate import Claim
from dpaudit.workflow.budgets import in_sequence
from dpaudit.workflow.outcomes import BudgetRow, Status, SubjectRow


def budget_rows(left: RemainingBudget, rows: Mapping[str, SubjectRow]) -> Iterator[BudgetRow]:
    """A row for each budget of a data set, for one more run of all subjects."""
    return (_row(each, left, rows) for each in left.left)


def _row(left: BudgetUsage, room: RemainingBudget, rows: Mapping[str, SubjectRow]) -> BudgetRow:
    """Whether all subjects together fit what is left of a budget of the book."""
    known = {name: row.certificate for name, row in rows.items()}
    point = left.budget.limit.point
    row = BudgetRow(f"{left.budget.name} (book)", tuple(rows), Claim(*point), Status.ERROR)
    plans = {name: each.plan for name, each in known.items() if each is not None}
    if len(plans) < len(known):
        return replace(row, note="a subject could not be certified.")
    try:
        whole = in_sequence(plans)
        room.dataset.require(whole)
        times = left.times(whole)
    except InputError as error:
        return replace(row, note=str(error))
    status = Status.EXCEEDED if times == 0 else Status.CERTIFIED
    return replace(row, status=status, note="" if times is None else f"{times} runs are left.")
