"""Privacy loss distributions with two-sided error bounds."""

from dpaudit.accounting.pld import allocation  # noqa: F401  # it registers
from dpaudit.accounting.pld.accountant import PLDAccountant, PLDComposition, compose_terms
from dpaudit.accounting.pld.incremental import IncrementalPLD
from dpaudit.accounting.pld.terms import DirectedTerm

__all__ = [
    "DirectedTerm",
    "IncrementalPLD",
    "PLDAccountant",
    "PLDComposition",
    "compose_terms",
]
