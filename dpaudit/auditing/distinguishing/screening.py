"""Which of many columns differ between two samples: for a choice, never as evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.auditing.evidence.types import Event
from dpaudit.mechanisms.pairs import Floats

SLAB = 2_000_000
"""Numbers that are looked at together."""
FAR = 4.0
"""Widths from the centre beyond which an entry says nothing more than "far"."""


def scale(columns: Floats) -> tuple[Floats, Floats]:
    """Median and robust width (positive) of columns, shape (n, d), in which NaN is missing."""
    ordered = np.sort(columns, axis=0)  # NaN comes last
    last = np.maximum(len(columns) - np.isnan(columns).sum(axis=0) - 1, 0)
    places = (np.rint(share * last).astype(int) for share in (0.25, 0.5, 0.75, 0.0, 1.0))
    every = np.arange(columns.shape[1])
    quarter, centre, three, least, most = (np.nan_to_num(ordered[at, every]) for at in places)
    with np.errstate(over="ignore"):
        width = np.where(three > quarter, (three - quarter) / 1.349, most - least)
    return centre, np.where(width > 0, width, 1.0)


def scaled(columns: Floats, centre: Floats, width: Floats) -> Floats:
    """Entries as widths from the centre, at most ``FAR`` of them; 0 where one is missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.clip((columns - centre) / width, -FAR, FAR)
    return np.nan_to_num(far)


def differences(x: Floats, x_prime: Floats) -> Floats:
    """Tell how clearly each column differs, as the largest of a few t-statistics.

    They compare means, squares, and how often an entry is there, 0, the median, or the least or
    largest one of a side.

    Args:
        x: sample of shape (n, d), in which NaN is a missing entry.
        x_prime: sample of shape (m, d).
    """
    slab = max(1, SLAB // (len(x) + len(x_prime)))
    starts = range(0, x.shape[1], slab)
    parts = [_clarity(x[:, at : at + slab], x_prime[:, at : at + slab]) for at in starts]
    return np.concatenate([np.zeros(0), *parts])


def _clarity(x: Floats, x_prime: Floats) -> Floats:
    both = np.concatenate([x, x_prime])
    centre, width = scale(both)
    moderate = scaled(both, centre, width)
    ends = (end.reduce(side) for end in (np.fmin, np.fmax) for side in (x, x_prime))
    atoms = np.zeros_like(centre), centre, *ends
    features = moderate, np.square(moderate), np.isnan(both), *(both == atom for atom in atoms)
    largest = np.zeros(both.shape[1])
    for feature in features:
        spread = feature.std(axis=0) * math.sqrt(1 / len(x) + 1 / len(x_prime))
        change = np.abs(feature[: len(x)].mean(axis=0) - feature[len(x) :].mean(axis=0))
        largest = np.maximum(largest, change / np.where(spread > 0, spread, np.inf))
    return largest


@dataclass(frozen=True)
class ColumnScore:
    """One entry of the output.

    Attributes:
        place: of the entry in the flattened output.
        name: what it is; of a flag, what is true where it is 1.
        flag: whether it is 0 or 1.
    """

    place: int
    name: str
    flag: bool = False
    method: str = "black-box, threshold on one entry"

    def __call__(self, outputs: Floats) -> Floats:
        """The entry of each output, shape (n,)."""
        return outputs.reshape(len(outputs), -1)[:, self.place].astype(np.float64)

    def in_words(self, event: Event) -> str | None:
        """Return what an event of a flag says; None of any other score."""
        yes, no = event.indicator([1.0, 0.0])
        if not self.flag or yes == no:
            return None
        return self.name if yes else f"not: {self.name}"
