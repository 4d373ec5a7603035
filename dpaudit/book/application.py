"""What this application offers: ``book``, runs that it charges, budgets, and signed exports."""

from __future__ import annotations

from typing import Any

from dpaudit.base.applications import offer
from dpaudit.book.commands import book, people, recheck, serve


def verify_export(*given: Any) -> Any:
    """As :func:`dpaudit.book.signed_exports.verify_export`, which takes long to import."""
    from dpaudit.book import signed_exports

    return signed_exports.verify_export(*given)


offer("group", "book", serve.app)
offer("command", "book export", book.export)
offer("command", "book people", people.people)
offer("command", "book charge", people.charge)
offer("command", "book recheck", recheck.recheck)
offer("options of run", "charging", book.charging_of)
offer("options of release", "charging", book.charging_of)
offer("options of check", "budgets", book.budgets_of)
offer("statement", "urn:dpaudit:book-export:1", verify_export)
