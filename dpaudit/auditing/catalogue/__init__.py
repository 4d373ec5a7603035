"""Right and wrong mechanisms of known loss, on which the auditors are measured."""

from dpaudit.auditing.catalogue.entries import Catalogue, Entry, FixedScore, Row
from dpaudit.auditing.catalogue.floats import FloatEntry, FloatRow

__all__ = ["Catalogue", "Entry", "FixedScore", "FloatEntry", "FloatRow", "Row"]
