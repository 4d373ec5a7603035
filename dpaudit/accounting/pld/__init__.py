"""Privacy loss distributions with two-sided error bounds."""

from dpaudit.accounting.pld.accountant import PLDAccountant, PLDComposition, compose_terms
from dpaudit.accounting.pld.cumulants import Term
from dpaudit.accounting.pld.incremental import IncrementalPLD
from dpaudit.accounting.pld.mixture import MixtureGaussianPair

__all__ = [
    "IncrementalPLD",
    "MixtureGaussianPair",
    "PLDAccountant",
    "PLDComposition",
    "Term",
    "compose_terms",
]
