"""What every party of a federation knows beforehand, and what travels between them.

Distributed exploration (Dai, Low & Jaillet 2021, Section 3.2): the unit cube is cut into P equal
boxes, agent n starts in box n mod P, and the server makes one weighted average for every box.
Numbers travel as the bytes of little-endian float64, so that what arrives is exactly what was sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Self, TypeAlias

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Natural, NonNegative, Record, at_least
from private_bo.gp.types import Array, Bounded, Indices, array_of, between, read_only

_ROUNDING = 1e-9
_UP = 1 + 1e-12
"""Sensitivities are rounded up: the weights are floats, and so are their norms."""


def splits(regions: int, dimension: int) -> tuple[int, ...]:
    """Into how many equal parts each axis is cut: the prime factors of P, largest first.

    Each factor goes to an axis with the fewest parts so far.

    >>> splits(4, 2), splits(2, 3), splits(12, 2), splits(1, 1)
    ((2, 2), (2, 1, 1), (3, 4), (1,))
    """
    parts = [1] * dimension
    for factor in _prime_factors(regions):
        parts[parts.index(min(parts))] *= factor
    return tuple(parts)


def _prime_factors(number: int) -> list[int]:
    factors, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors[::-1]


def region_of_point(points: Array, regions: int) -> Indices:
    """i[x], the sub-region of each point of the unit cube, (n,); a face belongs to the upper box.

    Args:
        points: (n, d), within [0, 1].
        regions: P.

    >>> region_of_point(np.array([[0.1], [0.5], [1.0]]), 2).tolist()
    [0, 1, 1]
    """
    parts = np.array(splits(regions, points.shape[1]))
    cells = np.minimum((points * parts).astype(np.intp), parts - 1)
    found: Indices = np.asarray(np.ravel_multi_index(tuple(cells.T), tuple(parts)), dtype=np.intp)
    return found


def region_of_agent(agents: int, regions: int) -> Indices:
    """i_n = n mod P, for each agent, (N,)."""
    return np.arange(agents) % regions


def contrasts(rounds: int, *, contrast: float, sharp: int, fading: int) -> Array:
    """a/𝒯_t: how far the logit of an agent's own sub-region is above the others, (rounds,).

    The temperature 𝒯 is 1 for the first ``sharp`` rounds. It then rises so that the contrast goes
    evenly from a to 0 within ``fading`` rounds, both ends included; afterwards all agents weigh the
    same. With 10 and 30 rounds that is the schedule of the paper's experiments.

    >>> contrasts(6, contrast=15.0, sharp=1, fading=4).tolist()
    [15.0, 15.0, 10.0, 5.0, 0.0, 0.0]
    """
    falling = np.linspace(contrast, 0.0, fading)
    whole = np.concatenate([np.full(min(sharp, rounds), contrast), falling, np.zeros(rounds)])
    return whole[:rounds].copy()


@dataclass(frozen=True, eq=False)
class Weights(Checked):
    """φ_n^(i) of every round: public, and the same whichever agents report.

    Attributes:
        values: (T, P, N), at least 0; over the agents each sums to 1. A read-only copy is kept.

    Raises:
        InputError: if the shape is wrong, a weight is negative or not finite, or a sum is not 1.

    >>> Weights.softmax(np.array([0.0]), agents=4, regions=2).values.tolist()
    [[[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]]
    """

    values: Annotated[Array, array_of("T", "P", "N")]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values.min() < 0:
            raise InputError(f"weights has the value {self.values.min():g}; it must be at least 0.")
        sums = self.values.sum(axis=2)
        worst = float(sums.flat[int(np.abs(sums - 1).argmax())])
        if abs(worst - 1) > _ROUNDING:
            raise InputError(
                f"weights sum to {worst:.12g} over the agents of a sub-region; they must sum to 1."
            )

    @classmethod
    def softmax(cls, contrast: Array, *, agents: int, regions: int) -> Weights:
        """Proportional to exp(contrast) for agents of the sub-region, and to 1 for the others.

        Args:
            contrast: a/𝒯_t of each round, (T,); see :func:`contrasts`.
            agents: N.
            regions: P.
        """
        own = region_of_agent(agents, regions) == np.arange(regions)[:, None]
        # The largest logit is taken off, so that no contrast overflows.
        logits = np.where(own, 0.0, -np.asarray(contrast)[:, None, None])
        unscaled = np.exp(logits)
        return cls(unscaled / unscaled.sum(axis=2, keepdims=True))

    @classmethod
    def constant(cls, values: object, rounds: int) -> Weights:
        """The same weights (P, N) in every round."""
        each = array_of("P", "N")(weights=values)
        return cls(np.broadcast_to(each, (rounds, *each.shape)))

    @property
    def regions(self) -> int:
        """P, the number of sub-regions."""
        return int(self.values.shape[1])

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return int(self.values.shape[2])

    def paper_sensitivity(self, clip: float, rate: float) -> Array:
        """φ_max S/q of each round, (T,): the paper's bound (Section 3.3)."""
        return np.asarray(self.values.max(axis=(1, 2)) * (clip / rate) * _UP)

    def true_sensitivity(self, clip: float, rate: float) -> Array:
        """max_n (S/(q√P)) √(Σ_i φ_n^(i)²) of each round, (T,).

        Agent n enters the joint release with (φ_n^(i) ω̂_n/q) for i = 1…P, where ‖ω̂_n‖ <= S/√P;
        taking its vector for zero moves the release by exactly the norm of that. It is at most
        φ_max S/q, and nearly √P less where every agent counts in one sub-region alone.
        """
        largest: Array = self.norms.max(axis=1)
        return largest * (clip / (rate * math.sqrt(self.regions))) * _UP

    @property
    def norms(self) -> Array:
        """√(Σ_i φ_n^(i)²) of each round and agent, (T, N)."""
        return np.asarray(np.sqrt(np.square(self.values).sum(axis=1)))


_MOST_FEATURES = 10_000
_MOST_ROUNDS = 1_000_000
_MOST_NUMBERS = 20_000_000
"""In one array: 160 MB."""


def _one_region(**field: Any) -> int:
    ((name, value),) = field.items()
    if value != 1:
        raise InputError(f"{name} is {value!r}; it must be 1, or the class that ends in DE.")
    return 1


OneRegion: TypeAlias = Annotated[int, _one_region]
"""P of the algorithms without distributed exploration."""


class Reliance(StrEnum):
    """1 − p_t: with which probability an agent follows the broadcast in iteration t."""

    INVERSE_ROOT = "1/sqrt(t)"
    """Of the synthetic experiments."""
    INVERSE = "1/t"
    """Of the real-world experiments."""
    INVERSE_SQUARE = "1/t^2"
    """As the regret theorem has it."""
    NEVER = "0"
    """Plain Thompson sampling."""

    def shares(self, rounds: int) -> Array:
        """1 − p_t by t = 0…T, (T + 1,); the first is not used and 0."""
        t = np.arange(1.0, rounds + 1)
        powers = {Reliance.INVERSE_ROOT: 0.5, Reliance.INVERSE: 1.0, Reliance.INVERSE_SQUARE: 2.0}
        power = powers.get(self)
        later = np.zeros(rounds) if power is None else t**-power
        return np.concatenate([[0.0], later])


@dataclass(frozen=True)
class Settings(Record):
    """Public facts of N agents that optimise their own objectives and help others to explore.

    The defaults are the setting of the synthetic experiments. Values that the paper leaves open
    (length scales, units of observations) are public constants here; only an agent's own process,
    which no other party sees, is fitted to that agent's data.

    Attributes:
        agents: N.
        regions: P, the number of sub-regions.
        features: M, even: a cosine and a sine for each random frequency.
        rounds: T, the queries of each agent after its initial ones.
        initial: N_init, the initial points of each agent, in its own sub-region.
        reliance: 1 − p_t.
        contrast: a, by how much an agent's logit is larger in its own sub-region.
        sharp_rounds: rounds at temperature 1.
        fading_rounds: further rounds, in which the contrast goes evenly to 0; later ones have none.
        weights: φ_n^(i) in all rounds, P rows of N numbers; None for the schedule above.
        shared_scale: length scale of the random features φ.
        own_scale: length scale of an agent's own process; where that is refitted, the middle one
            of the candidates, which go from a quarter to four times as much.
        refit_every: after how many of its own observations, counted from the initial ones, an
            agent chooses length scale and noise variance of its own process anew, the likeliest
            among public candidates; None keeps ``own_scale`` and ``noise_variance``. Data and
            choice stay with the agent, and so cost no privacy.
        beta: β_t of Algorithm 2, line 6, the same in all rounds: by how much the deviation of a
            draw from the own process is multiplied; 1 is a draw from the posterior itself.
        offset: what agents take off observations.
        scale: what they then divide by.
        standardise: whether each agent takes the mean and the deviation of its own observations
            instead. That is private to it; vectors are clipped in any case.
        noise_variance: λ, variance of an observation in those units. For the own process it is
            where refitted the largest candidate, beside a tenth and a hundredth of it.
        feature_seed: of φ.
    """

    agents: Count = 200
    regions: Count = 2
    features: Annotated[int, at_least(2)] = 50
    rounds: Count = 40
    initial: Count = 10
    reliance: Reliance = Reliance.INVERSE_ROOT
    contrast: NonNegative = 15.0
    sharp_rounds: Natural = 10
    fading_rounds: Natural = 30
    weights: tuple[tuple[float, ...], ...] | None = None
    shared_scale: Bounded = 0.03
    own_scale: Bounded = 0.03
    refit_every: Count | None = 5
    beta: Bounded = 1.0
    offset: Annotated[float, between(-1e6, 1e6)] = 0.5
    scale: Bounded = 0.25
    standardise: bool = False
    noise_variance: Bounded = 0.01
    feature_seed: Natural = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features % 2:
            raise InputError(
                f"features is {self.features}; it must be even, for cosines and sines."
            )
        if self.regions > self.agents:
            raise InputError(
                f"regions is {self.regions}; it must be at most the number of agents, "
                f"{self.agents}, so that every sub-region has an agent."
            )
        self._require_size()
        self._require_weights()

    def _require_size(self) -> None:
        """Refuse what no memory holds, before anything of that size is made."""
        queries, points = self.initial + self.rounds, self.regions * self.rounds
        sizes = (
            ("sharp_rounds", self.sharp_rounds, _MOST_ROUNDS),
            ("fading_rounds", self.fading_rounds, _MOST_ROUNDS),
            ("features", self.features, _MOST_FEATURES),
            ("agents × regions × rounds", self.agents * points, _MOST_NUMBERS),
            ("regions × features × rounds", self.features * points, _MOST_NUMBERS),
            ("agents × (initial + rounds)²", self.agents * queries**2, _MOST_NUMBERS),
            (
                "agents × (initial + rounds) × features",
                self.agents * queries * self.features,
                _MOST_NUMBERS,
            ),
        )
        for name, size, most in sizes:
            if size > most:
                shown = str(size) if size < 10**15 else "above 1e15"
                raise InputError(f"{name} is {shown}; it must be at most {most}.")

    def _require_weights(self) -> None:
        found = self.public_weights
        if (found.regions, found.agents) != (self.regions, self.agents):
            raise InputError(
                f"weights has shape {(found.regions, found.agents)}; it must be "
                f"{(self.regions, self.agents)}, sub-regions by agents."
            )

    @property
    def exchanges(self) -> int:
        """How often agents report: T, for t = 0…T − 1."""
        return self.rounds

    @cached_property
    def public_weights(self) -> Weights:
        """φ_n^(i) of every round (Section 3.2), public."""
        if self.weights is not None:
            return Weights.constant(self.weights, self.exchanges)
        contrast = contrasts(
            self.exchanges,
            contrast=self.contrast,
            sharp=self.sharp_rounds,
            fading=self.fading_rounds,
        )
        return Weights.softmax(contrast, agents=self.agents, regions=self.regions)


_WIRE = np.dtype("<f8")


@dataclass(frozen=True, eq=False)
class Broadcast(Checked):
    """ω_t^joint: what the server shows to every agent, private by itself (line 12, Algorithm 1).

    Attributes:
        round: t, the iteration that made it; -1 for the zeros that precede the first.
        vectors: one vector for each sub-region, (P, M), read-only.
    """

    round: Annotated[int, at_least(-1)]
    vectors: Annotated[Array, array_of("P", "M")]

    @classmethod
    def none_yet(cls, regions: int, features: int) -> Self:
        """ω_{-1}^joint = 0 (line 1)."""
        return cls(-1, np.zeros((regions, features)))

    def to_dict(self) -> dict[str, Any]:
        """As values of a Flower record: integers, and the bytes of the numbers."""
        shape = list(self.vectors.shape)
        return {"round": self.round, "shape": shape, "vectors": _packed(self.vectors)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The broadcast that :meth:`to_dict` wrote.

        Raises:
            InputError: if it is none.
        """
        _require_fields(record, "broadcast", {"round", "shape", "vectors"})
        flat = _unpacked(vectors=record["vectors"])
        shape = record["shape"]
        if not isinstance(shape, list | tuple) or len(shape) != 2:
            raise InputError(f"shape is {shape!r:.60}; it must be a pair (P, M).")
        regions, features = (validate.integer_at_least(1, shape=length) for length in shape)
        if regions * features != flat.size:
            raise InputError(f"vectors has {flat.size} numbers; shape asks for {shape}.")
        return cls(record["round"], flat.reshape(regions, features))


def _integer(**field: Any) -> int:
    ((name, value),) = field.items()
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} is {value!r:.60}; it must be an integer.")
    return int(value)


def _numbers(**field: Any) -> Array:
    """A vector of real numbers, finite or not, of any length."""
    ((name, value),) = field.items()
    try:
        vector = np.array(value)
    except ValueError:
        raise InputError(f"{name} is ragged; it must be a vector of numbers.") from None
    if vector.ndim != 1 or vector.dtype.kind not in "iuf":
        raise InputError(
            f"{name} has shape {vector.shape} and type {vector.dtype}; it must be a vector of "
            "numbers."
        )
    return read_only(vector.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Report(Checked):
    """ω_n,t: what one agent sends to the server (line 10, Algorithm 2). It is private.

    It comes from outside, so its content is for the server to judge: the vector may have any
    length and any values here.

    Attributes:
        round: t, the iteration it belongs to.
        agent: n, from 0.
        vector: a vector of floats, (M,) if it is right; read-only.
    """

    round: Annotated[int, _integer]
    agent: Annotated[int, _integer]
    vector: Annotated[Array, _numbers]

    def to_dict(self) -> dict[str, Any]:
        """As values of a Flower record: integers, and the bytes of the numbers."""
        return {"round": self.round, "agent": self.agent, "vector": _packed(self.vector)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The report that :meth:`to_dict` wrote.

        Raises:
            InputError: if it is none.
        """
        _require_fields(record, "report", {"round", "agent", "vector"})
        return cls(record["round"], record["agent"], _unpacked(vector=record["vector"]))


def _packed(array: Array) -> bytes:
    return array.astype(_WIRE).tobytes()


def _unpacked(**field: Any) -> Array:
    ((name, content),) = field.items()
    if not isinstance(content, bytes) or len(content) % _WIRE.itemsize:
        raise InputError(f"{name} is {content!r:.40}; it must be the bytes of float64 numbers.")
    return np.frombuffer(content, dtype=_WIRE).astype(np.float64)


def _require_fields(record: object, what: str, wanted: set[str]) -> None:
    if not isinstance(record, Mapping) or set(record) != wanted:
        shown = sorted(map(str, record)) if isinstance(record, Mapping) else repr(record)[:60]
        raise InputError(f"{what} has the fields {shown}; it must have {sorted(wanted)}.")
