"""Counts of keys that nobody knows beforehand, to which every unit adds a bounded part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import InputError
from dpaudit.ledger.bounding import Units, first_rows
from dpaudit.ledger.entry import Key
from dpaudit.mechanisms import StableHistogram
from dpaudit.plan import AddRemove, Invocation


def key_counts(
    invocation: Invocation, keys: Sequence[Key] | NDArray[Any], units: ArrayLike | None
) -> tuple[tuple[Key, ...], NDArray[np.int64]]:
    """How many units have each key that occurs, counting the first distinct keys of each unit.

    Args:
        invocation: a stable histogram, whose contribution says how many keys of a unit count.
        keys: of the rows, n texts or n whole numbers.
        units: to whom the rows belong; without it every row is a unit of its own.

    Returns:
        The keys in their order, and a count of at least 0 for each.

    Raises:
        InputError: if an argument is wrong, or the mechanism covers fewer keys than one unit may
            change.
    """
    most = _keys_of_one(invocation)
    listed = _listed(keys)
    distinct = sorted(set(listed))
    place = {key: number for number, key in enumerate(distinct)}
    cells = np.fromiter(map(place.__getitem__, listed), dtype=np.int64, count=len(listed))
    members = Units.of(units, len(listed))
    if members.codes is not None:
        _, rows = np.unique(members.codes * len(distinct) + cells, return_index=True)
        rows.sort()
        cells = cells[rows][first_rows(Units(members.codes[rows], members.count), most)]
    return tuple(distinct), np.bincount(cells, minlength=len(distinct))


def _keys_of_one(invocation: Invocation) -> int:
    """How many keys of one unit count."""
    mechanism, contribution = invocation.mechanism, invocation.contribution
    if not isinstance(mechanism, StableHistogram):
        raise InputError(f"{invocation.describe()} is no stable histogram; unknown keys need one.")
    if contribution is None or contribution.rows is None:
        raise InputError(
            f"{invocation.describe()} bounds no rows of a unit; unknown keys need that."
        )
    # Who is replaced, or zeroed, leaves its own keys and may come to others.
    moved = contribution.rows * (1 if isinstance(invocation.relation, AddRemove) else 2)
    if mechanism.key_sensitivity < moved:
        raise InputError(
            f"key_sensitivity of {invocation.describe()} is {mechanism.key_sensitivity}; under "
            f"{invocation.relation} {contribution.rows} keys of a unit can change {moved} counts."
        )
    return contribution.rows


def _listed(keys: Sequence[Key] | NDArray[Any]) -> list[Key]:
    """All texts or all whole numbers; which other ones there are is nobody's business."""
    listed: Any = keys.tolist() if isinstance(keys, np.ndarray) else keys
    if isinstance(listed, list | tuple):
        plain = [each.item() if isinstance(each, np.generic) else each for each in listed]
        kinds = set(map(type, plain))
        if len(kinds) <= 1 and kinds <= {str, int}:
            return plain
    raise InputError(
        "keys must be a list, a tuple or an array of texts alone or of whole numbers alone."
    )
