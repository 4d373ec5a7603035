"""Batches that are the same in every pass."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.utils.data import Sampler

from dpaudit.base import validate
from dpaudit.training.opacus.units import fresh_generator


class FixedBatches(Sampler[list[int]]):  # type: ignore[misc]
    """The same batches in the same order in every pass, for ``DataLoader(batch_sampler=...)``.

    Args:
        size: number of units; public.
        batch_size: of every batch but the last one, which may be smaller.
        seed: of the order; public.

    Raises:
        InputError: if a number is no whole number, or too small.

    >>> [len(batch) for batch in FixedBatches(10, 4)]
    [4, 4, 2]
    """

    def __init__(self, size: int, batch_size: int, seed: int = 0) -> None:
        self.size = validate.integer_at_least(1, size=size)
        width = validate.integer_at_least(1, batch_size=batch_size)
        mixed = fresh_generator(validate.integer_at_least(0, seed=seed))
        order = torch.randperm(self.size, generator=mixed).tolist()
        self.batches = [order[at : at + width] for at in range(0, self.size, width)]

    def __iter__(self) -> Iterator[list[int]]:
        return iter([list(batch) for batch in self.batches])

    def __len__(self) -> int:
        return len(self.batches)
