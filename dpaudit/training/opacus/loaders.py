"""Batches of units: drawn by coins, of users with all their rows, or the same in every pass.

Users as units (McMahan et al. 2018, *Learning differentially private recurrent language models*,
here by coins): who takes part does so with all rows, whose averaged gradient is clipped to C. So a
user moves a sum by at most C, and what is proved of DP-SGD is proved of users.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence, Sized
from functools import partial
from itertools import chain
from typing import Any

import torch
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch.utils.data import DataLoader, Sampler, default_collate

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PlanMismatchError, UnsupportedError
from dpaudit.ledger.units import Name, Whole, distinct_names
from dpaudit.training.opacus.side_effects import watch_inputs
from dpaudit.training.opacus.step import clips_in_the_loss


class UnitBatch(list[int]):
    """The rows of one batch, of so many units."""

    units: int = 0


class UnitBatches(UniformWithReplacementSampler):  # type: ignore[misc]
    """A sampler of units by coins, as opacus', with all rows of at most ``most`` of them.

    Attributes:
        by_user: whether a unit is a user, or a row.
        sizes: how many rows each unit of a batch has, of the batches that were drawn; private.
    """

    def __init__(
        self, groups: Sequence[Sequence[int]], most: int | None, *, by_user: bool, **settings: Any
    ) -> None:
        super().__init__(num_samples=len(groups), **settings)
        self.groups, self.most, self.by_user = groups, most, by_user
        self.sizes: deque[tuple[int, ...]] = deque()

    def __iter__(self) -> Iterator[UnitBatch]:
        for drawn in super().__iter__():
            if self.most is not None and len(drawn) > self.most:
                order = torch.randperm(len(drawn), generator=self.generator)
                drawn = [drawn[place] for place in order[: self.most].tolist()]
            rows = UnitBatch(chain.from_iterable(self.groups[unit] for unit in drawn))
            rows.units = len(drawn)
            self.sizes.append(tuple(len(self.groups[unit]) for unit in drawn))
            yield rows


_DRAWS = {"batch_size", "shuffle", "sampler", "batch_sampler", "drop_last"}
"""Settings of a DataLoader that would draw other batches."""

Batch = tuple[list[Any], tuple[int, ...]]
"""A batch as it left the loader: its tensors, and how many rows each unit has."""


class PoissonLoader(DataLoader):  # type: ignore[misc]
    """A loader whose every batch has each unit with probability ``sample_rate``, with all its rows.

    It goes to ``make_private`` in place of the usual one, and stays what it is. With users the
    model must see the loader's rows, in their order: transforms belong to the data set.

    Args:
        data: a data set with a length.
        users: whose each row is, one name a row, all texts or all integers; each row its own unit
            where not given.
        sample_rate: q, in (0, 1].
        most: a batch has at most so many units, of more drawn ones a uniform subset.
        steps: batches of a pass; ⌊1/q⌋ where not given.
        among: the names of all users, where these are public; who has no rows is drawn as well.
        generator: that draws the users; torch's own where not given.
        settings: further ones of a ``DataLoader``.

    Raises:
        InputError: if a number or a name is wrong.

    >>> from torch.utils.data import TensorDataset
    >>> rows = TensorDataset(torch.arange(5.0))
    >>> loader = PoissonLoader(rows, ["ann", "bob", "ann", "bob", "cy"], sample_rate=1.0)
    >>> next(iter(loader))
    [tensor([0., 2., 1., 3., 4.])]
    """

    def __init__(
        self,
        data: Any,
        users: Sequence[Hashable] | None = None,
        *,
        sample_rate: float,
        most: int | None = None,
        steps: int | None = None,
        among: Sequence[Hashable] | None = None,
        generator: Any = None,
        **settings: Any,
    ) -> None:
        validate.fraction(sample_rate=sample_rate)
        for name, value in (("most", most), ("steps", steps)):
            if value is not None:
                validate.integer_at_least(1, **{name: value})
        if drawn := settings.keys() & _DRAWS:
            raise InputError(
                f"{min(drawn)} is given, but sample_rate and most decide how batches are "
                "drawn; leave it out."
            )
        if not isinstance(data, Sized):
            raise InputError("data has no length; take a data set whose rows have numbers.")
        self.by_user = users is not None
        self.batch: Batch | None = None  # private
        sampler = UnitBatches(
            _groups(range(len(data)) if users is None else users, len(data), among),
            most,
            by_user=self.by_user,
            sample_rate=sample_rate,
            steps=steps,
            generator=generator,
        )
        settings["collate_fn"] = partial(
            _collated, settings.get("collate_fn") or default_collate, data
        )
        super().__init__(data, batch_sampler=sampler, generator=generator, **settings)

    def __iter__(self) -> Iterator[Any]:
        drawn = self.batch_sampler.sizes
        drawn.clear()
        for batch in super().__iter__():
            sizes = drawn.popleft()
            if self.by_user:
                kept = [each.detach().clone() for each in _leaves(batch)]
                self.batch = kept, sizes
            yield batch


def _collated(collate: Any, data: Any, rows: list[Any]) -> Any:
    """Return a batch of rows; of none it is one of one row that is cut off."""
    return collate(rows) if rows else _emptied(collate([data[0]]))


def _emptied(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return {key: _emptied(each) for key, each in batch.items()}
    if isinstance(batch, list | tuple):
        return [_emptied(each) for each in batch]
    return batch[:0]


def _leaves(batch: Any) -> list[Any]:
    """Return the tensors of a batch."""
    if isinstance(batch, torch.Tensor):
        return [batch]
    held = batch.values() if isinstance(batch, Mapping) else batch
    parts = held if isinstance(batch, Mapping | list | tuple) else ()
    return [leaf for each in parts for leaf in _leaves(each)]


def _groups(users: object, rows: int, among: object) -> list[list[int]]:
    """Return the rows of each user."""
    names, codes = _distinct("users", users)
    if len(codes) != rows:
        raise InputError("users has more or fewer names than data has rows; give one for each row.")
    if not rows:
        raise InputError("data has no rows; training needs some.")
    everyone = names if among is None else _distinct("among", among)[0]
    groups: dict[Name, list[int]] = {name: [] for name in everyone}
    if not groups.keys() >= set(names):
        raise InputError("among lacks a user who has rows; it must name all of them.")
    for row, code in enumerate(codes.tolist()):
        groups[names[code]].append(row)
    return list(groups.values())


def _distinct(field: str, names: object) -> tuple[list[Name], Whole]:
    try:
        return distinct_names(names)
    except InputError as error:
        raise InputError(str(error).replace("units", field, 1)) from None


class UserSums:
    """The sums of users, which are clipped in place of rows in one attached optimizer."""

    def __init__(self, optimizer: Any, loader: PoissonLoader, module: Any) -> None:
        if module is None:
            raise InputError("optimizer has no known model; attach the PrivacyEngine for users.")
        if clips_in_the_loss(optimizer):
            raise UnsupportedError(
                "optimizer clips each row in the loss, before the rows of a user are together; "
                "take grad_sample_mode='hooks' for users."
            )
        self._optimizer, self._loader = optimizer, loader
        self._clip, optimizer.clip_and_accumulate = optimizer.clip_and_accumulate, self._clipped
        self._batch: Batch | None = None  # that the model saw last
        watch_inputs(module, self._look)

    def _look(self, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        batch = self._loader.batch
        seen = _leaves([args, named])
        right = batch is not None and seen and all(_among(each, batch[0]) for each in seen)
        self._batch = batch if right else None

    def _clipped(self) -> None:
        batch, self._batch, self._loader.batch = self._batch, None, None
        held = [p.grad_sample for p in self._optimizer.params]
        rows = None if batch is None else sum(batch[1])
        if any(isinstance(each, list) or each is None or len(each) != rows for each in held):
            raise PlanMismatchError(
                "the gradients are not those of the rows that the loader just drew, each once and "
                "in their order, so users cannot be distinguished; give the model what the "
                "loader gives, once, and do all transforms in the data set."
            )
        assert batch is not None
        for p in self._optimizer.params:
            p.grad_sample = _together(p.grad_sample, batch[1])
        self._clip()


def fresh_generator(seed: Any = None, device: Any = "cpu") -> Any:
    """Return a generator of a seed, or of one that the system draws."""
    generator = torch.Generator(device)
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(validate.integer_at_least(0, 2**63 - 1, seed=seed))
    return generator


def _together(rows: Any, sizes: tuple[int, ...]) -> Any:
    """Average gradients of rows (n, ...) to gradients of users (m, ...)."""
    counts = torch.tensor(sizes, dtype=torch.long, device=rows.device)
    owner = torch.repeat_interleave(torch.arange(len(sizes), device=rows.device), counts)
    total = rows.new_zeros((len(sizes), *rows.shape[1:])).index_add_(0, owner, rows)
    return total / counts.clamp(min=1).view(-1, *[1] * (rows.ndim - 1))


def _among(seen: Any, rows: list[Any]) -> bool:
    """Tell whether a tensor has the values of one of the loader's, row by row."""
    flat = seen.detach().flatten()
    return any(
        len(seen) == len(each)
        and flat.numel() == each.numel()
        and torch.equal(flat, each.flatten().to(flat))
        for each in rows
        if seen.ndim and each.ndim
    )


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
