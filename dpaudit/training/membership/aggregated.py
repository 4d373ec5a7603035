"""Trainings under attack by more than one example at once: a range of points, a whole data set.

Each is a ``train(mask, rng)`` made of another, so that every attack on memberships takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.types import Flags
from dpaudit.base.errors import InputError
from dpaudit.base.validate import probability, real_array
from dpaudit.mechanisms.pairs import Floats
from dpaudit.training.membership.shadows import Train


@dataclass(frozen=True)
class RangeScores:
    """Was the model trained on any point near this one? The question of Tao and Shokri 2024, RaMIA.

    Attributes:
        train: like a :data:`Train`, but gives for each example the scores of points sampled from
            the range around it, shape (n, points), such as images that are turned a little.
        trim: share of the points, of the smallest scores, that is left out of the mean: points of a
            range that are far from the one that was trained on say nothing.

    Raises:
        InputError: if trim is not in [0, 1); at a call, if the scores have another shape.

    Example:
        >>> near = RangeScores(lambda mask, rng: np.outer(mask, [3.0, 1.0]), trim=0.5)
        >>> near(np.array([True, False]), np.random.default_rng(0)).tolist()
        [3.0, 0.0]
    """

    about: ClassVar[str] = "ranges of points"

    train: Train
    trim: float = 0.5

    def __post_init__(self) -> None:
        probability(trim=self.trim)

    def __call__(self, mask: Flags, rng: np.random.Generator) -> Floats:
        """The trimmed mean over the range of each example, shape (n,)."""
        scores = real_array(scores=self.train(mask, rng))
        if scores.ndim != 2 or scores.shape[0] != mask.size or not scores.size:
            raise InputError(
                f"scores has shape {scores.shape}; it must be ({mask.size}, points), a row for "
                "each example."
            )
        left_out = int(self.trim * scores.shape[1])
        means: Floats = np.sort(scores, axis=1)[:, left_out:].mean(axis=1)
        return means


@dataclass(frozen=True)
class DatasetScores:
    """Was the model trained on the data of this owner, all of them together or none?

    The score of a data set is the mean rank of its examples' scores among all: how much of it looks
    used, as in dataset usage inference (Tong, Ye, Zarifzadeh and Shokri 2025), with ranks in place
    of guesses at one threshold.

    Attributes:
        train: a :data:`Train` on single examples.
        owners: for each of these the number of its data set, from 0; the canaries are data sets.

    Raises:
        InputError: if owners leave a number out; at a call, if memberships are not as many.

    Example:
        >>> whole = DatasetScores(lambda mask, rng: 1.0 * mask, [0, 0, 1])
        >>> whole(np.array([True, False]), np.random.default_rng(0)).round(2).tolist()
        [0.83, 0.33]
    """

    about: ClassVar[str] = "whole data sets"

    train: Train
    owners: ArrayLike

    def __post_init__(self) -> None:
        owners = np.asarray(self.owners)
        whole = owners.ndim == 1 and owners.dtype.kind in "iu" and owners.size > 0
        if not whole or owners.min() != 0 or (np.bincount(owners) == 0).any():
            raise InputError("owners is wrong; it must number the data sets from 0 without a gap.")

    def __call__(self, mask: Flags, rng: np.random.Generator) -> Floats:
        """The mean rank of each data set's examples, shape (data sets,), in (0, 1]."""
        from scipy.stats import rankdata

        owners = np.asarray(self.owners)
        sizes = np.bincount(owners)
        if mask.size != sizes.size:
            raise InputError(
                f"there are {mask.size} canaries and {sizes.size} data sets; give as many."
            )
        scores = real_array(scores=self.train(mask[owners], rng))
        if scores.shape != owners.shape:
            raise InputError(
                f"scores has shape {scores.shape}; it must be one for each of the {owners.size} "
                "examples."
            )
        means: Floats = np.bincount(owners, rankdata(scores) / scores.size) / sizes
        return means
