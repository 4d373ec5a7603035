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
dpaudit.base.errors.BudgetExceededError: budget 'all of it' (rho = 0.5 (rho), ever) has too little
left; nothing was charged, and nothing may run: as rho counts, the plan costs rho = 0.375; used:
rho = 0.375.
>>> book.disconnect()
>>> folder.cleanup()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
