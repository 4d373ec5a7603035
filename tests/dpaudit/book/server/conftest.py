"""A served book with people in it."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("fastapi")

from booking import ABOUT
from web_client import Client, serving

from dpaudit.book import BudgetRecord, DataSet, issue, limit_of


@pytest.fixture
def url(tmp_path):
    """In SQLite alone: what a server does of its own, it does whatever the database."""
    return str(tmp_path / "book.db")


@pytest.fixture
def guarded(book):
    """Of ε = 1 for ``visits``, where a second person must approve; of ρ = 1 for ``sales``."""
    for name, limit in (("visits", {"epsilon": 1.0}), ("sales", {"rho": 1.0})):
        book.add(DataSet(name, *ABOUT), by="officer")
        own = BudgetRecord(f"of {name}", name, limit_of(limit), approval=name == "visits" or None)
        book.add(own, by="officer")
    return book


@pytest.fixture
def tokens(guarded):
    """By name; ann and amy are analysts, bob and ben approvers, and vic looks."""
    roles = {"ann": "analyst", "amy": "analyst", "bob": "approver", "ben": "approver"}
    roles["vic"] = "viewer"
    return {name: issue(guarded, name, role, by="officer") for name, role in roles.items()}


@pytest.fixture
def server(guarded, tmp_path):
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    with serving(guarded, certificates=shelf) as served:
        yield served


@pytest.fixture
def people(server, tokens):
    """Programs, one for each token."""
    return {name: Client(server.port, token) for name, token in tokens.items()}
