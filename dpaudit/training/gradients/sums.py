"""The sum of the gradients of a chunk, each times its factor.

On a processor, the first units of a sample are added with 32 bits, a few at once, and these sums
with 64: widening every gradient takes several times as long. NumPy multiplies, as torch may round
its products to 16 bits. All others are added with 64 bits, as the rounding of 32 grows with the
number of units, which is private.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

GROUP = 8
"""Rows that 32 bits add. A sum of a group is off by at most GROUP 2^-24 times its rows' lengths."""
NARROW = 512
"""Units of a sample, of clip norm C, that 32 bits add: off by NARROW GROUP 2^-24 C = 2.5e-4 C."""
_WIDENED = {"cpu": 2**16}
"""Entries that are widened to 64 bits at once: half a megabyte, which a core's own cache holds."""


class ChunkSum:
    """Adds up the rows of chunks of one size.

    Args:
        chunk: rows of one.
    """

    def __init__(self, chunk: int) -> None:
        self._chunk, self._group = chunk, math.gcd(chunk, GROUP)
        self._wide = torch.empty(0, dtype=torch.float64)  # a part of the rows in 64 bits

    def __call__(self, factors: Any, rows: list[Any], start: int) -> NDArray[np.float64]:
        """The sum of each row times its factor.

        Args:
            factors: shape (chunk,).
            rows: parts of the rows, each of shape (chunk, its entries).
            start: units of the sample before this chunk.
        """
        narrow = factors.device.type == "cpu" and start + self._chunk <= NARROW
        return self._grouped(factors, rows) if narrow else self._widened(factors, rows)

    def _grouped(self, factors: Any, rows: list[Any]) -> NDArray[np.float64]:
        groups = self._chunk // self._group, self._group
        weights = factors.numpy().reshape(groups[0], 1, groups[1])
        parts = (each.numpy().reshape(*groups, each.shape[1]) for each in rows)
        return np.concatenate([(weights @ each).sum((0, 1), dtype=np.float64) for each in parts])

    def _widened(self, factors: Any, rows: list[Any]) -> NDArray[np.float64]:
        if factors.device.type == "mps":  # which has floats of 32 bits alone
            factors, rows = factors.cpu(), [each.cpu() for each in rows]
        wide = factors.double()
        columns = max(1, _WIDENED.get(wide.device.type, 2**24) // len(wide))
        if not self._wide.numel():  # kept, as the system clears memory that it hands out anew
            room = len(wide) * min(columns, sum(each.shape[1] for each in rows))
            self._wide = torch.empty(room, dtype=wide.dtype, device=wide.device)
        sums = []
        for part in (part for each in rows for part in each.split(columns, 1)):
            here = self._wide[: part.numel()].view(part.shape)
            sums.append(wide @ here.copy_(part))
        return np.asarray(torch.cat(sums).numpy(force=True))
