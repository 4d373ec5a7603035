"""Bandit problems: a finite domain, its true means, and the users who answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked
from private_bo.gp import FiniteDomain, Kernel
from private_bo.gp.types import Array, Indices, array_of


@dataclass(frozen=True)
class Response:
    """One user's raw answer, before any privacy mechanism.

    Attributes:
        user: identifier of the person whose datum this is; a ledger charges releases to it.
        value: the raw reward, in the units of the problem's means.
    """

    user: str
    value: float


class RewardSource(ABC):
    """Whom a problem asks. Only sources of finitely many real people have state."""

    @abstractmethod
    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """Ask one user about the point ``index``, which the problem has checked."""

    def available(self, size: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of the ``size`` points somebody can still be asked about."""
        return np.ones(size, dtype=np.bool_)

    def reset(self) -> None:  # noqa: B027 - only sources with state override it
        """Forget who has answered; nothing to do where every round has a fresh user."""


def fresh_user(rng: np.random.Generator) -> str:
    """An identifier for a user who answers once, drawn from 2^63 (so reproducible with ``rng``).

    A collision, of probability below 1e-10 over 40 000 rounds, could only overcharge.
    """
    return f"user-{int(rng.integers(2**63)):016x}"


@dataclass(frozen=True, eq=False)
class RecordedRewards(RewardSource):
    """Fresh simulated users, each with a value drawn from those recorded for the point.

    The recorded values are the population, sampled with replacement; their tails are the data's
    own. Nobody's own value is asked for twice, because the users are simulated: whoever deploys
    on the recorded people themselves must charge each of them for every answer.

    Attributes:
        values: recorded rewards, one array a point.
    """

    values: Sequence[Array] = field(repr=False)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """A fresh user with one of the recorded rewards of the point."""
        recorded = self.values[index]
        return Response(fresh_user(rng), float(recorded[rng.integers(recorded.size)]))


@dataclass(frozen=True, eq=False)
class BanditProblem(Checked):
    """A finite-armed problem with known truth, for measuring regret.

    Attributes:
        name: what the problem is called in reports.
        domain: the n points.
        kernel: the prior covariance that algorithms use.
        f: true mean reward of every point, (n,), read-only.
        B: bound of |f|. The theorems want a bound of the RKHS norm of f; the experiments of the
            paper use that of |f|, and so does this field.
        R: bound of the noise |y - f|, infinite if there is none.
        v: bound of E y².
        c: bound of E (y - f)².
        bounds_are_public: whether B, R, v and c are public constants. If not, they are statistics
            of the private data itself, and a mechanism calibrated by them has no proof.
        rewards: whom the problem asks.
        labels: names of the points, or empty.

    Raises:
        InputError: if ``f`` has not one finite mean for each point.
    """

    name: str
    domain: FiniteDomain
    kernel: Kernel
    f: Annotated[Array, array_of("n")] = field(repr=False)
    B: float
    R: float
    v: float
    c: float
    bounds_are_public: bool
    rewards: RewardSource = field(repr=False)
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.f) != self.domain.size:
            raise InputError(
                f"f has shape {self.f.shape}; it must hold one mean for each of the "
                f"{self.domain.size} points."
            )

    @property
    def best(self) -> int:
        """Row number of the point of largest mean, the first of equals."""
        return int(self.f.argmax())

    @property
    def available(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which points somebody can still be asked about, (n,)."""
        return self.rewards.available(self.domain.size)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """Ask one user about a point.

        Args:
            index: row number of the point, 0 <= index < n.
            rng: source of the reward; it draws no privacy noise.

        Raises:
            InputError: if there is no such point, or nobody is left to ask about it.
        """
        if not 0 <= index < self.domain.size:
            raise InputError(f"index is {index!r}; it must be from 0 to {self.domain.size - 1}.")
        return self.rewards.respond(index, rng)

    def reset(self) -> None:
        """Make everybody available again, as before the first round of a new trial."""
        self.rewards.reset()

    def regret(self, choices: Sequence[int] | Indices) -> Array:
        """Cumulative regret Σ_{s<=t} f(x*) - f(x_s) after every choice, (T,)."""
        chosen = np.asarray(choices, dtype=np.intp)
        return np.asarray(np.cumsum(self.f[self.best] - self.f[chosen]))
