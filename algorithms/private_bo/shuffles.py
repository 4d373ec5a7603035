"""Batches of one-bit answers that a trusted shuffler releases without names, and their sizes.

A batch is asked about several points; who is asked about which is drawn in secret, so that all of a
batch hide each other (:class:`~dpaudit.mechanisms.Shuffled`). What a batch releases costs (ε, δ),
and so a bit may have a larger ε₀ on its own, which makes it tell more: at ε = 1 and δ = 1e-5 its
variance is 4.7 alone, 3.0 in a batch of 50, 2.1 of 100 and 1.3 of 500, in half widths of the range.
But nobody of a batch is asked by what others of it say.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.mechanisms import RandomizedResponse, Shuffled
from dpaudit.plan import Group, Invocation, TrustModel
from private_bo.gp.types import Array

_FINDINGS = FindingTable(__name__)
_GROWTH = 2
"""A batch has at most so many users, of as many asked before, as this is a share of them."""
_MOST_BATCHES = 10_000
_FEW_BATCHES = 5
_SLACK = 1e-6
"""Of ε and δ, for the rounding of accountants."""
_LARGEST = 30.0
"""Of ε₀: a coin that lies once in 10^13 answers."""


@lru_cache(maxsize=256)
def shuffled_bits(epsilon: float, delta: float, reports: int, questions: int) -> Shuffled:
    """Shuffled bits of about the largest ε₀ whose release is (ε, δ)-private, and at least ε.

    Raises:
        InputError: if ε is so small that all bits are coins.
    """

    def at(local: float) -> Shuffled:
        response = RandomizedResponse.calibrated(epsilon=local)
        return Shuffled(response, reports, min(questions, reports))

    low, high = epsilon, max(_LARGEST, epsilon)
    if at(low).local == RandomizedResponse(1.0):
        raise InputError(
            f"epsilon is {epsilon!r}, so small that all responses are coins; it must be larger."
        )
    while reports > 1 and high - low > 1e-4 * low:
        middle = (low + high) / 2
        proved = float(at(middle).pair(1.0).delta(epsilon * (1 - _SLACK)))
        low, high = (middle, high) if proved <= delta * (1 - _SLACK) else (low, middle)
    return at(low)


def scale_of(bits: Shuffled) -> float:
    """The c of the estimate c(2 bit − 1), whose variance is at most c² in half widths."""
    assert isinstance(bits.local, RandomizedResponse)
    return 1.0 / (1.0 - bits.local.p)


def batch_sizes(users: int, first: int) -> list[int]:
    """Batches of ``first`` users, and later of half as many as were asked; of 1, all alone.

    >>> batch_sizes(500, 50), batch_sizes(3, 1)
    ([50, 50, 50, 75, 112, 163], [1, 1, 1])
    """
    sizes, asked = [], 0
    while asked < users:
        size = min(first if first == 1 else max(first, asked // _GROWTH), users - asked)
        if users - asked - size < first:
            size = users - asked
        sizes.append(size)
        asked += size
    return sizes


def first_batch(users: int, epsilon: float, delta: float, questions: int) -> int:
    """The batch that costs least: a share of all users, and what noise costs the others.

    Regret without a shuffler is about 30 % of that of uniform play, and proportional to the
    deviation of an answer; two batches are asked as in uniform play. Only public numbers count.
    """
    sizes = {1, *(users // part for part in (100, 40, 20, 10) if users >= 2 * part)}
    alone = scale_of(shuffled_bits(epsilon, delta, 1, 1))

    def cost(size: int) -> float:
        return (
            0.3 * scale_of(shuffled_bits(epsilon, delta, size, questions)) / alone
            + 2 * size / users
        )

    return min(sorted(sizes), key=cost)


def means_of(bits: Shuffled, reports: Array) -> Iterator[tuple[float, float]]:
    """Of each question the unbiased mean of its reports, within ±1, and its variance at most."""
    scale = scale_of(bits)
    for question in range(bits.questions or 1):
        own = np.asarray(reports)[bits.asked == question]
        yield scale * (2.0 * float(own.mean()) - 1.0), scale**2 / len(own)


class ShuffledBatches:
    """Mixin of studies whose users answer in batches; a user is in one of them.

    The dataclass has the fields ``epsilon``, ``delta``, ``batch`` (users of the first batch, or
    None for a number that follows from public ones) and ``points`` (how many points a batch is
    asked about at most), and says how many ``people`` there are.
    """

    if TYPE_CHECKING:  # at run time the dataclass's own annotations, with their checks, count
        epsilon: float
        delta: float
        batch: int | None
        points: int
        invocation: Any

    trust: ClassVar[TrustModel] = TrustModel.CENTRAL
    source: ClassVar[str] = "Feldman, McMillan & Talwar 2023, of Duchi, Jordan & Wainwright's bits"

    @property
    @abstractmethod
    def people(self) -> int:
        """How many users there are."""

    def require_batches(self) -> None:
        """Refuse a batch that cannot be, and an ε of which nothing is left.

        Raises:
            InputError: if a batch has more users than there are, or ε is too small.
        """
        shuffled_bits(self.epsilon, self.delta, 1, 1)
        if self.batch is not None and self.batch > self.people:
            raise InputError(
                f"batch is {self.batch}; it must be at most the number of users, {self.people}."
            )

    @cached_property
    def batches(self) -> tuple[Shuffled, ...]:
        """What each batch releases.

        Raises:
            InputError: if there are more than 10 000.
        """
        public = self.epsilon, self.delta
        first = self.batch or first_batch(self.people, *public, self.points)
        sizes = batch_sizes(self.people, first)
        if len(sizes) > _MOST_BATCHES:
            raise InputError(
                f"batch is {first}, which makes {len(sizes)} batches; at most {_MOST_BATCHES} are "
                "possible, so make it larger, or where it is 1 take trust local."
            )
        return tuple(shuffled_bits(*public, size, self.points) for size in sizes)

    def invocations(self) -> Iterator[Invocation]:
        """One release for each of the disjoint batches."""
        for number, bits in enumerate(self.batches):
            at = place_of(number)
            yield self.invocation(bits, 1.0, group=Group(at), at=at)

    @property
    def bit_information(self) -> float:
        """Of all bits about one point: the inverse of the variance of their mean, half widths."""
        return sum(bits.reports / scale_of(bits) ** 2 for bits in self.batches)

    def batch_findings(self) -> tuple[Finding, ...]:
        """Whom the users trust, with the ε₀ that they keep without; and batches that are few."""
        if (many := len(self.batches)) == self.people:
            return (_FINDINGS("nobody-to-hide-among"),)
        largest = max(float(bits.local.pair(1.0).pure_epsilon) for bits in self.batches)
        found = [_FINDINGS("trusted-shuffler", local=f"{math.ceil(largest * 1000) / 1000:g}")]
        if many < _FEW_BATCHES:
            found.append(_FINDINGS("few-batches", batches=many, first=self.batches[0].reports))
        return tuple(found)

    def statistic(self, releases: Any) -> NDArray[Any]:
        """How many reports of the first batch are a one."""
        return np.asarray(np.sum(releases[0], axis=-1))

    def ones(self, own: Any, rng: np.random.Generator) -> NDArray[Any]:
        """How many reports of the first batch are a one, for each bit of one user; others have 0.

        Args:
            own: bits, (n,).
            rng: of the noise.
        """
        bits, mine = self.batches[0], np.asarray(own)
        others = np.zeros((mine.size, bits.reports - 1), dtype=np.int64)
        drawn = bits.local.sample(np.column_stack([mine, others]), rng)
        return np.asarray(drawn.sum(axis=1))


def place_of(batch: int) -> str:
    """Label of a batch's release."""
    return f"batch {batch}"
