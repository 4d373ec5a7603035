"""An organisation's privacy budget: data sets, budgets on them, and every release (extra ``book``).

>>> from dpaudit import AddRemove, Gaussian, Invocation, Plan, PrivacyUnit, TrustModel
>>> from dpaudit.book import Book, BudgetRecord, DataSet, limit_of
>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> book = Book.create(f"{folder.name}/book.db", by="officer")
>>> user = PrivacyUnit("user"), AddRemove(), TrustModel.CENTRAL
>>> book.add(DataSet("visits", *user), by="officer")
>>> book.add(BudgetRecord("all of it", "visits", limit_of({"rho": 0.5})), by="officer")
>>> plan = Plan.of(Invocation(Gaussian(sigma=2.0), 1.0, *user, count=3))
>>> reserved = book.reserve("visits", plan, by="ann", purpose="a dashboard", request="7")
>>> book.reserve("visits", plan, by="ann", purpose="a dashboard", request="7").id == reserved.id
True
>>> book.reserve("visits", plan, by="bob", purpose="another")
Traceback (most recent call last):
    ...
dpaudit.base.errors.BudgetExceededError: budget 'all of it' (rho = 0.5 (rho), ever) has not that
much left; nothing is charged, and nothing may run: as rho counts, the plan takes rho = 0.375; used:
rho = 0.375.
>>> book.disconnect()
>>> folder.cleanup()
"""

from dpaudit.book.access import (
    decide,
    holder,
    issue,
    publish,
    record_refusal,
    revoke,
    still_held,
    tokens,
)
from dpaudit.book.book import Book
from dpaudit.book.clock import set_clock
from dpaudit.book.limits import (
    CurveLimit,
    Limit,
    PureLimit,
    RenyiLimit,
    RhoLimit,
    ZcdpLimit,
    limit_of,
)
from dpaudit.book.people import add_people, charge_people, people_of
from dpaudit.book.records import (
    BudgetRecord,
    DataSet,
    People,
    Release,
    Role,
    Status,
    Token,
)
from dpaudit.book.remaining_budget import BudgetUsage, RemainingBudget, remaining_budget
from dpaudit.book.reservation import Reservation
from dpaudit.book.verifying import records_as_of, releases_as_logged, verify_book

__all__ = [
    "Book",
    "BudgetRecord",
    "BudgetUsage",
    "CurveLimit",
    "DataSet",
    "Limit",
    "People",
    "PureLimit",
    "Release",
    "RemainingBudget",
    "RenyiLimit",
    "Reservation",
    "RhoLimit",
    "Role",
    "Status",
    "Token",
    "ZcdpLimit",
    "add_people",
    "charge_people",
    "decide",
    "holder",
    "issue",
    "limit_of",
    "people_of",
    "publish",
    "record_refusal",
    "records_as_of",
    "releases_as_logged",
    "remaining_budget",
    "revoke",
    "set_clock",
    "still_held",
    "tokens",
    "verify_book",
]
