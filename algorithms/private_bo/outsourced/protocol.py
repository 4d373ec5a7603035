"""What curator and modeller exchange: one release, row numbers, and outputs. Nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from dpaudit import validate
from dpaudit.errors import InputError
from private_bo.gp.types import Array, point_set, read_only

__all__ = ["AnswerDesk", "Query", "Release"]

Query = Callable[[int], float]
"""The modeller's only way back to the curator: a row number in, its output out."""


@dataclass(frozen=True, eq=False)
class Release:
    """What the curator publishes.

    Attributes:
        points: the transformed rows Z (n, r), read-only.
        noise_variance: public variance of the noise in each entry; 0 if none was added.

    Raises:
        InputError: if ``points`` is no matrix of finite numbers or the variance is negative.
    """

    points: Array = field(repr=False)
    noise_variance: float = 0.0

    def __post_init__(self) -> None:
        points = point_set(points=self.points)
        if points.size == 0:
            raise InputError(f"points has shape {points.shape}; it must hold at least one number.")
        object.__setattr__(self, "points", read_only(points))
        variance = validate.non_negative(noise_variance=self.noise_variance)
        object.__setattr__(self, "noise_variance", variance)

    @property
    def size(self) -> int:
        """The number of rows n."""
        return int(self.points.shape[0])


class AnswerDesk:
    """The curator's side of a query: measures a row once and hands out its output.

    Args:
        size: number of rows n.
        measure: measures the output of a row.
        publish: how an output leaves; by default in the clear, outside the privacy claim.
    """

    def __init__(
        self, size: int, measure: Query, publish: Callable[[int, float], float] | None = None
    ) -> None:
        self._size = validate.integer_at_least(1, size=size)
        self._measure = measure
        self._publish = publish
        self._asked: set[int] = set()

    def ask(self, row: int) -> float:
        """The output of a row.

        Args:
            row: row number, 0 <= row < n, not asked before.

        Raises:
            InputError: if there is no such row, it has been measured already, or its output is no
                finite number.
        """
        asked: object = row  # callers without a type checker may ask anything
        whole = isinstance(asked, Integral) and not isinstance(asked, bool | np.bool_)
        if not whole or not 0 <= row < self._size:
            raise InputError(
                f"row is {row!r}; it must be a whole number from 0 to {self._size - 1}."
            )
        number = int(row)
        if number in self._asked:
            raise InputError(f"row is {number}, which has been measured; ask for another row.")
        output = validate.finite(output=self._measure(number))
        released = output if self._publish is None else self._publish(number, output)
        self._asked.add(number)
        return released
