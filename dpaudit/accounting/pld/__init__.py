"""Privacy loss distributions with two-sided error bounds."""

from dpaudit.accounting.pld.accountant import PLDAccountant, PLDComposition, compose_terms
from dpaudit.accounting.pld.terms import DirectedTerm

__all__ = [
    "DirectedTerm",
    "PLDAccountant",
    "PLDComposition",
    "compose_terms",
]
