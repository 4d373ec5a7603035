"""The one door through which private data leave, and the record of what did."""

from dpaudit.ledger.journal import Journal, JournalContent, read_journal
from dpaudit.ledger.ledger import Budget, Entry, ExternalDraw, Ledger, NoiseBackend
from dpaudit.ledger.secure import SecureNoise

__all__ = [
    "Budget",
    "Entry",
    "ExternalDraw",
    "Journal",
    "JournalContent",
    "Ledger",
    "NoiseBackend",
    "SecureNoise",
    "read_journal",
]
