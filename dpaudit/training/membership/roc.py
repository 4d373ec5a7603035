"""How well an attack's scores tell members from non-members: a description, not evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.types import Flags, as_scores
from dpaudit.base.errors import InputError
from dpaudit.base.validate import probability
from dpaudit.mechanisms.pairs import Floats

LOW_RATES = (0.001, 0.01)
"""False positive rates at which a record states the true positive rate."""

_MOST_POINTS = 200


def require_both_kinds(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, Flags]:
    """Scores and memberships of the same length, with members and non-members among them.

    Raises:
        InputError: if the lengths differ, a score is NaN, a membership neither a boolean nor 0 or
            1, or one kind is missing.
    """
    values, given = as_scores(scores=scores), np.asarray(members)
    if given.ndim != 1 or given.dtype.kind not in "biu" or not np.isin(given, (0, 1)).all():
        raise InputError(
            f"members has type {given.dtype} and shape {given.shape}; it must be a one-dimensional "
            "array of booleans."
        )
    flags = given.astype(bool)
    if values.size != flags.size:
        raise InputError(
            f"scores has {values.size} entries and members has {flags.size}; they must be as many."
        )
    if flags.all() or not flags.any():
        missing = "no non-member" if flags.size and flags.all() else "no member"
        raise InputError(f"members has {missing} among {flags.size}; an attack needs both kinds.")
    return values, flags


@dataclass(frozen=True, eq=False)
class Roc:
    """The operating points of all thresholds on a score.

    Attributes:
        fpr: share of non-members above each threshold, from 0 to 1, shape (n,).
        tpr: share of members above it, from 0 to 1, shape (n,).
    """

    fpr: Floats
    tpr: Floats

    @classmethod
    def of(cls, scores: ArrayLike, members: ArrayLike) -> Roc:
        """The curve of scores that are large for members.

        Args:
            scores: shape (m,).
            members: whether each was a member, shape (m,).

        Raises:
            InputError: if the lengths differ, a score is NaN, or all or none are members.

        Example:
            >>> roc = Roc.of([3.0, 2.0, 1.0, 0.0], [True, False, True, False])
            >>> roc.auc, roc.tpr_at(0.0)
            (0.75, 0.5)
        """
        values, flags = require_both_kinds(scores, members)
        order = np.argsort(-values, kind="stable")
        values, flags = values[order], flags[order]
        # Equal scores are passed together.
        last = np.append(values[1:] != values[:-1], True)
        hits, alarms = np.cumsum(flags)[last], np.cumsum(~flags)[last]
        return cls(np.append(0.0, alarms / alarms[-1]), np.append(0.0, hits / hits[-1]))

    @property
    def auc(self) -> float:
        """Area below the curve: the chance that a member scores higher, ties counted half."""
        widths = np.diff(self.fpr)
        return float((widths * (self.tpr[1:] + self.tpr[:-1])).sum() / 2)

    def tpr_at(self, fpr: float) -> float:
        """The largest true positive rate of a threshold with at most that false positive rate.

        Raises:
            InputError: if ``fpr`` is outside [0, 1).
        """
        limit = probability(fpr=fpr)
        return float(self.tpr[np.searchsorted(self.fpr, limit, side="right") - 1])

    def details(self) -> dict[str, Any]:
        """``roc`` (at most 200 points, increasing), ``auc`` and ``tpr_at_fpr`` as JSON values."""
        fpr, tpr = self._thinned()
        return {
            "roc": {"fpr": fpr.tolist(), "tpr": tpr.tolist()},
            "auc": self.auc,
            "tpr_at_fpr": {f"{rate:g}": self.tpr_at(rate) for rate in LOW_RATES},
        }

    def _thinned(self) -> tuple[Floats, Floats]:
        """At most 200 points, half of them even in the logarithm of the false positive rate."""
        size = self.fpr.size
        if size <= _MOST_POINTS:
            return self.fpr, self.tpr
        even = np.linspace(0, size - 1, _MOST_POINTS // 2)
        logarithmic = np.geomspace(1, size, _MOST_POINTS // 2) - 1
        kept = np.unique(np.rint(np.concatenate([even, logarithmic])).astype(int))
        return self.fpr[kept], self.tpr[kept]
