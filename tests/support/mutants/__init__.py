"""Subjects that keep their plan and subjects that do not, written blind to the detectors."""

from tests.support.mutants import bounding, composition, frames, outputs, relations, right

__all__ = ["RIGHT", "WRONG"]

_FAMILIES = (bounding, relations, composition, outputs, frames, right)
WRONG = tuple(subject for family in _FAMILIES for subject in family.WRONG)
RIGHT = tuple(subject for family in _FAMILIES for subject in family.RIGHT)
