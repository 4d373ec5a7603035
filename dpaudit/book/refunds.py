"""What is given back of a charge: what the journal of a release proves not to have run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpaudit.base.errors import InputError
from dpaudit.book.limits import Cost
from dpaudit.book.records import Release
from dpaudit.book.store import Page
from dpaudit.ledger import JournalSummary
from dpaudit.plan import Plan


def returned(page: Page, known: Release, held: JournalSummary) -> dict[str, Any]:
    """What a journal proves not to have run, and the plan that ran, for a line of the log."""
    if not known.journal:  # of what ran without one, no text can tell
        return {}
    nothing = {name: (0,) * len(known.cost(name)) for name in known.charged}
    try:
        ran = _ran(held)
        spent = {name: page.state.budgets[name].limit.cost(ran) for name in nothing} if ran else {}
    except InputError:  # what ran cannot be counted by itself
        return {}
    costs = nothing | spent
    given = {name: given_back(known.cost(name), costs[name]) for name in known.charged}
    if not any(any(each) for each in given.values()):
        return {}
    if ran is not None:
        page.keep(ran)
    return {"ran": "nothing" if ran is None else ran.hash, "returned": given}


def _ran(held: JournalSummary) -> Plan | None:
    """What ran, whoever is named: by the names of units alone nothing is proved to be disjoint."""
    ran = ((each, held.account.charged(each.at)) for each in held.plan.invocations)
    found = [replace(own, count=min(own.count, n), total=n) for own, n in ran if n]
    return Plan.of(*found) if found else None


def given_back(charged: Cost, ran: Cost) -> list[int]:
    """What was charged beyond what ran, in each number."""
    return [max(0, a - b) for a, b in zip(charged, ran, strict=True)]
