"""Right and wrong mechanisms of known loss, on which the auditors are measured."""

from dpaudit.auditing.catalogue.entries import Catalogue, Entry, load_catalogue
from dpaudit.auditing.catalogue.floats import FloatEntry, FloatRow
from dpaudit.auditing.catalogue.rows import Row
from dpaudit.auditing.distinguishing.scores import FixedScore

__all__ = [
    "Catalogue",
    "Entry",
    "FixedScore",
    "FloatEntry",
    "FloatRow",
    "Row",
    "load_catalogue",
]
