"""The examples of a training, by the unit that each of them is of.

Nothing is made of several examples here: they are looked up, and stacked to chunks of one size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._pytree import (
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_unflatten,
)
from torch.utils.data import TensorDataset

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger.units import DistinctNames, distinct_names
from dpaudit.plan import PrivacyUnit
from dpaudit.training.declared import require_unit

Places = NDArray[np.int64]


class Examples:
    """Rows of tensors, each row one example.

    Args:
        data: a tensor or an array, or a tuple, a list or a dict of them, all with as many rows; or
            a ``TensorDataset``.
        users: whose each row is, all texts or all integers; each row its own unit where not given.
        most: rows of one user that count, a public number; of more the first ones do.

    Attributes:
        leaves: the tensors of the data.
        names: of the units; who is drawn is told by them.
        most: rows of a unit, at most.
        by_user: whether units are users.

    Raises:
        InputError: if data or users are nothing of this.

    >>> Examples((torch.zeros(3, 2), torch.zeros(3)), ["ann", "bob", "ann"], most=2).names
    ('ann', 'bob')
    """

    def __init__(
        self, data: Any, users: Sequence[Any] | None = None, *, most: int | None = None
    ) -> None:
        tensors = data.tensors if isinstance(data, TensorDataset) else data
        flat, self._form = tree_flatten(tensors)
        self.leaves = [_tensor(each) for each in flat]
        if not self.leaves:
            raise InputError("data has no tensors; give at least one, with a row for each example.")
        count = len(self.leaves[0])
        for name, each in zip(self.called, self.leaves, strict=True):
            if len(each) != count:
                more = "more" if len(each) > count else "fewer"
                raise InputError(
                    f"{name} has {more} rows than {self.called[0]}; each must have one row for "
                    "each example."
                )
        self.by_user = users is not None
        if not self.by_user:
            if most is not None:
                raise InputError(
                    "most_rows is given without users; it bounds the rows of one user."
                )
            self.most, self.names = 1, DistinctNames.of(f"row {row}" for row in range(count))
        else:
            self._share(users, count, most)
        if not self.names:
            raise InputError("data has no rows; training needs some.")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def called(self) -> list[str]:
        """What each of the leaves is called, such as ``data[1]`` or ``data['label']``."""
        tree = tree_unflatten(self.leaves, self._form)
        return [f"data{keystr(path)}" for path, _ in tree_flatten_with_path(tree)[0]]

    def _share(self, users: Any, rows: int, most: int | None) -> None:
        """Keep which rows each user has, shape (users, most), and how much each of them counts."""
        if most is None:
            raise InputError(
                "most_rows is missing; with users, give how many rows of each user count."
            )
        self.most = validate.integer_at_least(1, most_rows=most)
        names, codes = distinct_names(users)
        if len(codes) != rows:
            raise InputError(
                "users has more or fewer names than data has rows; give one for each row."
            )
        self.names = DistinctNames.of(map(str, names))
        held: list[list[int]] = [[] for _ in names]
        for row, code in enumerate(codes.tolist()):
            if len(held[code]) < self.most:
                held[code].append(row)
        self._weigh(held)

    def _weigh(self, held: list[list[int]]) -> None:
        """Keep the rows of each unit; what is left over repeats the first, and counts nothing."""
        held = [own[: self.most] for own in held]
        self._rows = torch.tensor([own + own[:1] * (self.most - len(own)) for own in held])
        counted = torch.tensor([len(own) for own in held])[:, None]
        self._weights = (torch.arange(self.most) < counted) / counted

    def present(self, places: Places) -> Places:
        """Where the examples of units are, of those that have some."""
        return places

    def chunk(self, places: Places, device: Any, dtype: Any) -> Any:
        """The examples of some units; of users with how much each counts for its user.

        Args:
            places: of the units among the names.
            device: to put them on.
            dtype: of the weights.

        Returns:
            A tree of tensors (units, …); of users one of (units, most, …), and (units, most).
        """
        units = torch.from_numpy(places)
        rows = self._rows[units].flatten() if self.by_user else units
        found = []
        for each in self.leaves:
            here = rows if each.device == rows.device else rows.to(each.device)
            taken = each.index_select(0, here)
            found.append(taken if each.device == device else taken.to(device))
        if not self.by_user:
            return tree_unflatten(found, self._form)
        shaped = [each.unflatten(0, (len(places), self.most)) for each in found]
        return tree_unflatten(shaped, self._form), self._weights[units].to(device, dtype)

    def zeros(self, units: int, device: Any, dtype: Any) -> Any:
        """As many made-up units of the same shapes: nothing of them follows from any row."""
        shape = (units, self.most) if self.by_user else (units,)
        made = [
            torch.zeros((*shape, *each.shape[1:]), dtype=each.dtype, device=device)
            for each in self.leaves
        ]
        tree = tree_unflatten(made, self._form)
        even = torch.full(shape, 1 / self.most, device=device, dtype=dtype)
        return (tree, even) if self.by_user else tree

    def require_unit(self, unit: PrivacyUnit) -> None:
        """Refuse a plan that protects rows where users are clipped, or users where rows are.

        Raises:
            PlanMismatchError: if it does.
        """
        require_unit(unit, drawn=self.by_user, clipped=self.by_user)


class UnitRows(Examples):
    """Rows of the units of a table, whoever keeps it; some units have none.

    Args:
        leaves: tensors, all with as many rows.
        codes: place of each row's unit among the names.
        names: of all units.
        most: rows of a unit, at most.
    """

    def __init__(self, leaves: list[Any], codes: Places, names: Sequence[str], most: int) -> None:
        self.leaves, self._form = leaves, tree_flatten(leaves)[1]
        self.names, self.most, self.by_user = DistinctNames.of(names), most, most > 1
        found, own = np.unique(codes, return_inverse=True)
        self._places = np.full(len(self.names), -1)
        self._places[found] = np.arange(len(found))
        held: list[list[int]] = [[] for _ in found]
        for row, unit in enumerate(own.tolist()):
            held[unit].append(row)
        if self.by_user:
            self._weigh(held)
        else:
            self._rows = torch.tensor([each[0] for each in held], dtype=torch.int64)
            self.leaves = [each[self._rows] for each in leaves]

    def present(self, places: Places) -> Places:
        """Where the examples of units are, of those that have some."""
        found = self._places[places]
        return found[found >= 0]

    def require_unit(self, unit: PrivacyUnit) -> None:
        """Whoever keeps the table says whose a row is."""


def _tensor(leaf: Any) -> Any:
    """A tensor with rows; an array is taken as one, and copied where torch cannot share it."""
    made = leaf
    if isinstance(leaf, np.ndarray):
        with suppress(TypeError, ValueError):  # of texts, objects, or another order of bytes
            made = torch.from_numpy(np.require(leaf, requirements=["C", "W"]))
    if not isinstance(made, torch.Tensor) or made.layout is not torch.strided or not made.ndim:
        kind = type(leaf).__name__
        if isinstance(leaf, np.ndarray):
            kind = f"{leaf.ndim}-dimensional array of {leaf.dtype.type.__name__}"
        raise InputError(
            f"data has a {kind:.60}; it must be a dense tensor, or an array of numbers in this "
            "machine's byte order, with a row for each example, or a tuple, a list or a dict of "
            "such."
        )
    return made.detach()


def usual_chunk(expected: float) -> int:
    """How many units are mapped at once: as many as most batches have, and 256 at most.

    >>> usual_chunk(64.0), usual_chunk(3.0), usual_chunk(5000.0)
    (80, 8, 256)
    """
    wanted = expected + 2 * math.sqrt(expected)
    return min(256, max(8, 8 * math.ceil(wanted / 8)))
