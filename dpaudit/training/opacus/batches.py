"""What a data loader draws: which scheme it follows, and the sizes of its batches.

:func:`watch` counts what a sampler yields; findings compare it with the plan. Sizes of sampled
batches are private (they tell of who takes part), so they stay in memory.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import (
    DistributedUniformWithReplacementSampler,
    UniformWithReplacementSampler,
)
from torch.utils.data import (
    BatchSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from dpaudit.base.errors import InputError
from dpaudit.plan.dp_sgd import Batching
from dpaudit.training.opacus.loaders import FixedBatches, UnitBatches
from dpaudit.training.opacus.side_effects import Randomness

FALSE_ALARM = 1e-6


@dataclass
class BatchStream:
    """The batches of one loader, as they are drawn and used.

    Attributes:
        batching: the scheme of the sampler; None where it is not known.
        repeats: whether a unit may be in one batch twice.
        rate: of Poisson sampling.
        population: number of units (private under add-remove).
        most: units of a batch, where it is cut.
        by_user: whether its units are users, or rows.
        per_epoch: batches of one pass.
        epochs: passes that were begun.
        drawn: batches that were drawn since the last pass began.
        strays: steps on something else than the batches drawn for them.
        counted: whether draws are observed and tell the sizes of batches.
        left_out: drawn batches that no step used, though a later one of their pass was used.
        changed: whether the sampler became another one after it was described.
        sampler: that of the loader, where it shares units out among processes or is fixed.
        position: place, in its pass, of the batch that was used last.
    """

    batching: Batching | None
    repeats: bool = False
    rate: float | None = None
    population: int | None = None
    most: int | None = None
    by_user: bool = False
    per_epoch: int | None = None
    epochs: int = 0
    drawn: int = 0
    strays: int = 0
    counted: bool = True
    left_out: int = 0
    changed: bool = False
    sampler: Any = None
    position: int = -1

    def __post_init__(self) -> None:
        self._waiting: deque[int] = deque()  # batches of this pass that no step has used yet
        self.used: Counter[int] = Counter()
        self.randomness = Randomness()
        self._steps = 0  # of this pass
        self._steps_of_last: int | None = None  # of the one before it
        self._uneven = False
        self._seen: set[int] = set()  # batches of this pass, by digest

    def begin(self) -> None:
        """Return a new pass over the loader; what the last one left unused at its end is gone."""
        looked = not self._steps and (self._steps_of_last is None or self.drawn == self.per_epoch)
        if not looked:  # a pass that nothing was learned from cuts none
            if self._steps_of_last is not None:
                self._uneven |= self._steps != self._steps_of_last
            self._steps, self._steps_of_last = 0, self._steps
        self.epochs += 1
        self.drawn = 0
        self._waiting.clear()
        self._seen.clear()

    def draw(self, size: int) -> None:
        """Return one batch, before it is split or handed to a worker."""
        self.drawn += 1
        self._waiting.append(size)

    @property
    def uneven(self) -> bool:
        """Whether passes ended after different numbers of steps; the last one may be shorter."""
        last = self._steps_of_last
        return self._uneven or (last is not None and self._steps > last)

    def shards(self) -> tuple[float, float, float]:
        """Return what decides which units a process has: number of units, seed and epoch."""
        held = self.sampler
        if not isinstance(held, DistributedUniformWithReplacementSampler):
            return 0.0, 0.0, 0.0
        seed = float(held.shuffle_seed) if held.shuffle else -1.0
        return float(held.total_size), seed, float(held.epoch)

    def seed(self) -> int:
        """Return the seed of the generator that draws the units of this process."""
        own = getattr(self.sampler, "generator", None)
        return torch.initial_seed() if own is None else int(own.initial_seed())

    def compare(self, now: BatchStream) -> None:
        """Note whether the sampler still does what it did when it was first described."""
        self.repeats |= now.repeats
        same = (self.batching, self.rate, self.most) == (now.batching, now.rate, now.most)
        if self.rate is not None:
            same &= self.population == now.population
        self.changed |= not same

    def use(
        self,
        size: int,
        batches: int,
        digest: int | None = None,
        chance: Callable[[], float] = float,
    ) -> None:
        """Note a step on ``batches`` drawn batches that have ``size`` units together.

        Batches that were drawn earlier and left out are passed over and counted. A digest that this
        pass had already is a batch used again, unless such a batch may well be drawn twice by
        ``chance``, its probability.
        """
        self._steps += 1
        if digest is not None and self.rate != 1:
            again = digest in self._seen
            self.strays += again and chance() * len(self._seen) ** 2 <= FALSE_ALARM
            self._seen.add(digest)
        if batches == 1 and self._waiting and self._waiting[0] == size:  # nearly always
            self.used[self._waiting.popleft()] += 1
            self.position = self.drawn - len(self._waiting) - 1
            return
        waiting = list(self._waiting)
        for start in range(len(waiting) - batches + 1):
            found = sum(waiting[start : start + batches])
            # opacus may put one random unit in place of none
            if found == size or (found == 0 and size == batches):
                for _ in range(start + batches):
                    self._waiting.popleft()
                self.left_out += start
                self.used[found] += 1
                self.position = self.drawn - len(self._waiting) - 1
                return
        self.strays += 1

    @property
    def p_value(self) -> float:
        """Bound on the probability that so many independent Poisson batches are equally large.

        Among T sizes of the law Bin(n, q), some m are equal with probability at most
        C(T, m) p^(m−1), where p is the largest probability of one size.
        """
        sizes, rate = self.used, self.rate
        if not sizes or rate is None or not self.population or rate == 1 or self.most:
            return 1.0
        same, total = max(sizes.values()), sum(sizes.values())
        if same < 2:
            return 1.0
        mode = min(self.population, math.floor((self.population + 1) * rate))
        largest = _log_choose(self.population, mode)
        largest += mode * math.log(rate) + (self.population - mode) * math.log1p(-rate)
        return math.exp(min(0.0, _log_choose(total, same) + (same - 1) * min(0.0, largest)))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def watch(data_loader: Any) -> BatchStream:
    """Return the stream of a loader's batches, one and the same for every loader of one sampler.

    The sampler is given a subclass of its own class, which counts what it yields. So it does not
    matter whether the loader itself is read, or another one that splits its batches.

    Raises:
        InputError: if it is no data loader.
    """
    sampler = getattr(data_loader, "batch_sampler", None)
    if not hasattr(data_loader, "dataset"):
        raise InputError(f"data_loader is {data_loader!r:.60}; it must be a DataLoader.")
    while isinstance(sampler, BatchSplittingSampler):
        sampler = sampler.sampler
    held = getattr(sampler, "_dpaudit_stream", None)
    if isinstance(held, BatchStream):
        return held
    stream = _described(type(sampler), sampler, data_loader.dataset)
    if sampler is not None:
        _count(sampler, stream, data_loader.dataset)
    return stream


def _count(sampler: Any, stream: BatchStream, dataset: Any) -> None:
    kind = type(sampler)

    def counted(self: Any) -> Iterator[Any]:
        stream.begin()
        if stream.rate is not None:
            stream.randomness.note(Randomness.state(self.generator))
        stream.compare(_described(kind, self, dataset))
        for batch in _batches(kind, self):
            if stream.rate is not None and self.sample_rate != stream.rate:
                stream.changed = True
            stream.draw(getattr(batch, "units", len(batch)))
            yield batch

    # The class is replaced, and no wrapper is put around the sampler: loaders keep the object that
    # they were made with, opacus asks isinstance of it, and Python looks for __iter__ in its class.
    sampler.__class__ = type(kind.__name__, (kind,), {"__iter__": counted})
    sampler._dpaudit_stream = stream


def _batches(kind: Any, sampler: Any) -> Iterator[Any]:
    """Yield a pass over the sampler.

    That of several processes passes over empty batches, so that their number would depend on the
    data and processes fall out of step; here an empty batch is one too.
    """
    if kind is not DistributedUniformWithReplacementSampler:
        yield from kind.__iter__(sampler)
        return
    mixed = torch.Generator().manual_seed(sampler.shuffle_seed + sampler.epoch)
    total = sampler.total_size
    order = torch.randperm(total, generator=mixed) if sampler.shuffle else torch.arange(total)
    mine = order[sampler.rank : total : sampler.num_replicas]
    for _ in range(sampler.num_batches):
        drawn = torch.rand(len(mine), generator=sampler.generator) < sampler.sample_rate
        yield mine[drawn].tolist()


def _described(kind: type, sampler: Any, dataset: Any) -> BatchStream:
    """Return the scheme, told by the classes of the samplers; a subclass may do anything."""
    shared = kind is DistributedUniformWithReplacementSampler
    if shared or kind in (UniformWithReplacementSampler, UnitBatches):
        most = getattr(sampler, "most", None)
        return BatchStream(
            Batching.POISSON if most is None else Batching.TRUNCATED,
            rate=float(sampler.sample_rate),
            population=int(sampler.num_samples),
            per_epoch=len(sampler),
            most=most,
            by_user=getattr(sampler, "by_user", False),
            sampler=sampler if shared else None,
        )
    if kind is FixedBatches:
        per_epoch = len(sampler)
        return BatchStream(
            Batching.DISJOINT, population=sampler.size, per_epoch=per_epoch, sampler=sampler
        )
    if kind is not BatchSampler or isinstance(dataset, IterableDataset):
        # Of an iterable data set samplers tell nothing, and the last batch may be smaller.
        return BatchStream(
            None, counted=sampler is not None and not isinstance(dataset, IterableDataset)
        )
    units, rows = sampler.sampler, len(dataset) if hasattr(dataset, "__len__") else 0
    repeats = (
        (isinstance(units, WeightedRandomSampler | RandomSampler) and units.replacement)
        or (type(units) is RandomSampler and units.num_samples > rows)
        or (type(units) is SubsetRandomSampler and _repeated(units.indices, rows))
    )
    once = type(units) in (RandomSampler, SequentialSampler, SubsetRandomSampler) and not repeats
    scheme = Batching.DISJOINT if once else None
    return BatchStream(scheme, repeats, population=rows, per_epoch=len(sampler))


def _repeated(indices: Iterable[Any], size: int) -> bool:
    """Tell whether two indices mean the same row; negative ones count from the end."""
    rows = [int(each) % size if size else int(each) for each in indices]
    return len(set(rows)) < len(rows)
