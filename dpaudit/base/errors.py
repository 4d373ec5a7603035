"""The exceptions of dpaudit.

::

    DpAuditError
    ├── InputError               a value from outside is wrong: field, value, remedy
    │   ├── UnsupportedError     the input is sound, but no theorem or library covers the wish
    │   ├── OtherSubjectError    what is named holds data itself; no run of it can be sealed
    │   ├── PublicError          the message is shown in full, whoever raised it
    │   ├── TamperedError        a ledger or certificate does not match its own hashes
    │   └── JournalError         a journal cannot be written; nothing was drawn
    ├── InconclusiveError        the audit could not end: nothing is refuted, and nothing is well
    ├── PlanMismatchError        what ran differs from what was declared
    ├── BudgetExceededError      a release would exceed the budget; nothing was drawn
    ├── AccessError              whoever asks may not do it; nothing was done
    └── ClosedLedgerError        a release was asked of a ledger that is closed
"""

from __future__ import annotations


class DpAuditError(Exception):
    """Base of every exception that dpaudit raises on purpose."""


class InputError(DpAuditError, ValueError):
    """A parameter, file or datum is wrong; the message is one sentence with the remedy."""


class UnsupportedError(InputError):
    """The input is sound, but no accountant, theorem or library covers it."""


class OtherSubjectError(InputError):
    """What is named holds data itself, so that no run of it can be sealed."""


class PublicError(InputError):
    """The message tells public facts, and of a user's function which kind of error it raised where.

    Kind and line may follow from the records of that function, and no words of the error do. The
    message is shown in full even where foreign code, which may hold private data, was on the way.
    """


class TamperedError(InputError):
    """A ledger or certificate does not match its own hashes."""


class JournalError(InputError):
    """A journal cannot be written, so that nothing was drawn and nothing more will be."""


class InconclusiveError(DpAuditError):
    """Code under audit died, hung or gave runs that are not independent; nothing is decided."""


class PlanMismatchError(DpAuditError):
    """What ran is not what was declared; the message names the invocation."""


class BudgetExceededError(DpAuditError):
    """The release would exceed the budget; it was refused before any noise was drawn."""


class AccessError(DpAuditError):
    """Whoever asks may not do it; nothing was done."""


class ClosedLedgerError(DpAuditError):
    """The ledger has been closed and takes no more releases."""
