"""What this application offers: ``book``, runs that it charges, budgets, and signed exports."""

from __future__ import annotations

from typing import Any

from dpaudit.base.applications import offer
from dpaudit.book.commands import book, people, recheck, serve


def verify_export(*given: Any) -> Any:
    """As :func:`dpaudit.book.signed_exports.verify_export`, which takes long to import."""
    from dpaudit.book import signed_exports

    return signed_exports.verify_export(*given)


for name, command in {
    "people": people.people,
    "charge": people.charge,
    "recheck": recheck.recheck,
}.items():
    serve.app.command(name)(command)
offer("group", "book", serve.app)
offer("options of run", "charging", book.charging_of)
offer("options of check", "budgets", book.budgets_of)
offer("statement", "urn:dpaudit:book-export:1", verify_export)
