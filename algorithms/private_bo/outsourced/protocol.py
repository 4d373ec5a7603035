"""What curator and modeller exchange: one release, row numbers, and outputs. Nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Annotated

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, NonNegative
from private_bo.gp.types import Array, array_of

Query = Callable[[int], float]
"""The modeller's only way back to the curator: a row number in, its output out."""


@dataclass(frozen=True, eq=False)
class Release(Checked):
    """What the curator publishes.

    Attributes:
        points: the transformed rows Z (n, r), read-only.
        noise_variance: public variance of the noise in each entry; 0 if none was added.

    Raises:
        InputError: if ``points`` is no matrix of finite numbers or the variance is negative.
    """

    points: Annotated[Array, array_of("n", "r")] = field(repr=False)
    noise_variance: NonNegative = 0.0

    @property
    def size(self) -> int:
        """n, the number of rows."""
        return int(self.points.shape[0])


@dataclass(eq=False)
class AnswerDesk(Checked):
    """The curator's side of a query: measures a row once and hands out its output.

    Attributes:
        size: number of rows n.
        measure: measures the output of a row.
        publish: how an output leaves; None for in the clear, outside the privacy claim.
    """

    size: Count
    measure: Query
    publish: Callable[[int, float], float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
        if not whole or not 0 <= row < self.size:
            raise InputError(
                f"row is {row!r}; it must be a whole number from 0 to {self.size - 1}."
            )
        number = int(row)
        if number in self._asked:
            raise InputError(f"row is {number}, which has been measured; ask for another row.")
        output = validate.finite(output=self.measure(number))
        released = output if self.publish is None else self.publish(number, output)
        self._asked.add(number)
        return released
