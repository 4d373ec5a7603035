"""The one door through which private data leave, and the record of what did."""

from dpaudit.base.chain import Durability
from dpaudit.ledger.anchor import Anchor, AnchorState, FileAnchor
from dpaudit.ledger.entry import Budget, Entry, ExternalDraw, NoiseBackend
from dpaudit.ledger.float_noise import FloatNoise
from dpaudit.ledger.journal import (
    Journal,
    JournalContent,
    JournalSummary,
    read_journal,
    summarise_journal,
)
from dpaudit.ledger.ledger import Ledger
from dpaudit.ledger.secure import SecureNoise
from dpaudit.ledger.stream import Stream

__all__ = [
    "Anchor",
    "AnchorState",
    "Budget",
    "Durability",
    "Entry",
    "ExternalDraw",
    "FileAnchor",
    "FloatNoise",
    "Journal",
    "JournalContent",
    "JournalSummary",
    "Ledger",
    "NoiseBackend",
    "SecureNoise",
    "Stream",
    "read_journal",
    "summarise_journal",
]
