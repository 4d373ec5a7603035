"""What every party of a federation knows beforehand: public configuration, checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, Natural, NonNegative, Record, at_least
from private_bo.federated.weights import Weights, contrasts
from private_bo.gp.types import Array

_MOST_FEATURES = 10_000
_MOST_ROUNDS = 1_000_000
_MOST_NUMBERS = 20_000_000
"""In one array: 160 MB."""


def between(low: float, high: float) -> Any:
    """The check of a number within [low, high], for an annotation.

    >>> between(1e-6, 1e6)(scale=1e7)
    Traceback (most recent call last):
        ...
    dpaudit.base.errors.InputError: scale is 1e7; it must be from 1e-6 to 1e6.
    """

    def check(**field: Any) -> float:
        number = validate.finite(**field)
        if not low <= number <= high:
            (name,) = field
            raise InputError(
                f"{name} is {_short(number)}; it must be from {_short(low)} to {_short(high)}."
            )
        return number

    return check


def _short(number: float) -> str:
    return f"{number:g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


Bounded: TypeAlias = Annotated[float, between(1e-6, 1e6)]
"""None of its squares and quotients leaves the range of floats."""


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

    Raises:
        InputError: if a field is out of its range.
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
