"""What an agent knows, remembers and computes for Algorithm 2, one at a time or many at once.

Length scale and noise variance of an agent's own process are fitted by maximum likelihood to what
the agent itself has seen (Rasmussen & Williams 2006, equation (5.8)). The candidates are public and
the choice stays with the agent: it decides which points the agent queries on its own, and nothing
of it is sent. Every agent draws from a generator of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from dpaudit.base.errors import InputError
from private_bo.federated.draws import (
    kernel_root,
    log_likelihoods,
    posterior_draws,
    standardised,
)
from private_bo.federated.settings import (
    Broadcast,
    Report,
    Settings,
    region_of_agent,
    region_of_point,
)
from private_bo.gp.features import RandomFourierFeatures
from private_bo.gp.prior import Box, SquaredExponential
from private_bo.gp.types import Array, Indices, read_only, single_threaded

_AGENTS, _WORDS = 1, 4


@dataclass(frozen=True)
class Streams:
    """Generators that depend on the seed and on who draws, not on who else runs, or where.

    The ledger's noise and samples come from none of them.

    Attributes:
        entropy: the seed, as words of 32 bits.

    >>> one = Streams((7,)).agent(3).random()
    >>> one == Streams((7,)).agent(3).random(), one == Streams((7,)).agent(4).random()
    (True, False)
    """

    entropy: tuple[int, ...]

    @classmethod
    def of(cls, rng: np.random.Generator) -> Streams:
        """Streams of a seed that the generator draws."""
        words = rng.integers(0, 2**32, size=_WORDS, dtype=np.uint32)
        return cls(tuple(int(word) for word in words))

    def agent(self, agent: int) -> np.random.Generator:
        """Everything that agent n draws."""
        key = (_AGENTS, agent)
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))


SCALE_FACTORS = (1.0, 0.25, 0.5, 2.0, 4.0)
"""Of the length scale; the stated one first, which wins ties and is kept where none is refitted."""
NOISE_FACTORS = (1.0, 0.01, 0.1)
"""Of the noise variance; likewise."""


Observe: TypeAlias = Callable[[int, int, np.random.Generator], float]
"""What agent n observes at point x of the grid: (n, x, generator) to y."""


@dataclass(frozen=True, eq=False)
class AgentModel:
    """What all agents know beforehand: grid, features, and when to trust whom. All public.

    Attributes:
        settings: the public configuration.
        grid: the points, (G, d), within the unit cube.

    Raises:
        InputError: if a sub-region holds no point of the grid.
    """

    settings: Settings
    grid: Array
    _roots: dict[int, Array] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        regions = self.settings.regions
        occupied = np.unique(self.point_regions).size
        if occupied < regions:
            raise InputError(
                f"regions is {regions}, of which {regions - occupied} hold none of the "
                f"{len(self.grid)} points of the grid; it must be so small that each holds one."
            )

    @property
    def features(self) -> RandomFourierFeatures:
        """φ, of the vectors that travel."""
        return RandomFourierFeatures(
            SquaredExponential(self.settings.shared_scale),
            Box((0.0, 1.0), self.grid.shape[1]),
            pairs=self.settings.features // 2,
            seed=self.settings.feature_seed,
        )

    @cached_property
    def shared(self) -> Array:
        """φ(x) of every point, (G, M)."""
        with single_threaded():
            return read_only(self.features(self.grid))

    @property
    def scales(self) -> tuple[float, ...]:
        """Length scales that an agent's own process may have."""
        return self._candidates(self.settings.own_scale, SCALE_FACTORS)

    @property
    def variances(self) -> tuple[float, ...]:
        """Noise variances λ that it may have; every pair is a candidate."""
        return self._candidates(self.settings.noise_variance, NOISE_FACTORS)

    def _candidates(self, stated: float, factors: tuple[float, ...]) -> tuple[float, ...]:
        kept = factors[:1] if self.settings.refit_every is None else factors
        return tuple(stated * each for each in kept)

    def root(self, scale: int) -> Array:
        """Ψ(x) of every point with ΨΨᵀ = K, for the scale of that place, (G, r)."""
        if scale not in self._roots:
            kernel = SquaredExponential(self.scales[scale])
            with single_threaded():
                self._roots[scale] = read_only(kernel_root(kernel, self.grid))
        return self._roots[scale]

    def fitted_on(self, seen: int) -> int:
        """How many observations the choice in force is made on, the first ones; 0 for none."""
        every = self.settings.refit_every
        return 0 if every is None else seen - (seen - self.settings.initial) % every

    def likeliest(self, points: Array, targets: Array) -> tuple[int, int]:
        """Places of the length scale and the noise variance with the largest likelihood."""
        scales, variances = np.array(self.scales), np.array(self.variances)
        values = log_likelihoods(points, targets, scales, variances)
        scale, variance = np.unravel_index(int(values.argmax()), values.shape)
        return int(scale), int(variance)

    @cached_property
    def point_regions(self) -> Indices:
        """i[x] of every point, (G,)."""
        return region_of_point(self.grid, self.settings.regions)

    def best_received(self, broadcast: Broadcast) -> int:
        """Argmax φ(x)ᵀω^(i[x]), the first of equals (line 8)."""
        values = (self.shared @ broadcast.vectors.T)[
            np.arange(len(self.shared)), self.point_regions
        ]
        return int(values.argmax())


class Agents:
    """BO-Agent-A_n for some agents n, which act in step: Algorithm 2.

    Whatever an agent does is the same, bit for bit, whichever others are computed beside it.

    Attributes:
        model: what all know.
        observe: the private objectives of these agents.
        numbers: which agents these are.
        generators: one for each.
        choices: the points queried so far, (n, N_init + t): initial ones first. Private.
        seen: what was observed at these points, (n, N_init + t). Private.
        received: how many of the agents followed the broadcast, round by round.
    """

    def __init__(
        self,
        model: AgentModel,
        observe: Observe,
        numbers: Sequence[int],
        generators: Sequence[np.random.Generator],
    ) -> None:
        self.model = model
        self.observe = observe
        self.numbers = list(numbers)
        self.generators = list(generators)
        self.choices: Indices = np.empty((len(self.numbers), 0), dtype=np.intp)
        self.seen: Array = np.empty((len(self.numbers), 0))
        self.received: list[int] = []
        self._fitted: tuple[int, Indices] = (0, np.zeros((len(self.numbers), 2), dtype=np.intp))

    @property
    def state(self) -> tuple[Any, ...]:
        """What they queried and saw, and where their generators are."""
        return self.choices, self.seen, [each.bit_generator.state for each in self.generators]

    def resume(self, state: tuple[Any, ...]) -> None:
        """Go on from a :attr:`state`."""
        self.choices, self.seen, drawn = state
        for generator, each in zip(self.generators, drawn, strict=True):
            generator.bit_generator.state = each

    def act(self, broadcast: Broadcast) -> None:
        """Lines 1 to 9, for iteration t = round + 1 and ω_{t-1} = broadcast.

        An agent that joins later makes its initial queries first.
        """
        t, settings = broadcast.round + 1, self.model.settings
        if self.choices.shape[1] == 0:  # line 1
            self.query(self.initial_points())  # line 2
        if t == 0:
            return
        r = np.array([generator.random() for generator in self.generators])  # line 4
        own = r <= 1.0 - settings.reliance.shares(settings.rounds)[t]  # line 5
        points = np.full(len(r), self.model.best_received(broadcast))  # lines 7-8
        points[own] = self.own_maxima(np.flatnonzero(own))  # line 6
        self.query(points[:, None])  # line 9
        self.received.append(int((~own).sum()))

    def reports(self, turn: int) -> list[Report]:
        """ω_n,t of each agent, from its posterior (2) given all that it has seen (line 10)."""
        drawn = self.shared_draws()
        return [Report(turn, n, omega) for n, omega in zip(self.numbers, drawn, strict=True)]

    def initial_points(self) -> Indices:
        """N_init points of each agent's own sub-region, without repetition where it has so many."""
        model, settings = self.model, self.model.settings
        regions, rows = region_of_agent(settings.agents, settings.regions), []
        for number, generator in zip(self.numbers, self.generators, strict=True):
            inside = np.flatnonzero(model.point_regions == regions[number])
            repeat = inside.size < settings.initial
            rows.append(generator.choice(inside, size=settings.initial, replace=repeat))
        return np.array(rows, dtype=np.intp)

    def query(self, points: Indices) -> None:
        """Observe points (n, k), one row an agent (lines 2 and 9 of Algorithm 2)."""
        seen = np.array(
            [
                [self.observe(number, int(point), generator) for point in row]
                for number, generator, row in zip(
                    self.numbers, self.generators, points, strict=True
                )
            ]
        )
        self.choices = np.concatenate([self.choices, points], axis=1)
        self.seen = np.concatenate([self.seen, seen.reshape(points.shape)], axis=1)

    def own_maxima(self, places: Indices) -> Indices:
        """Argmax f(x), f drawn from the own process, for the agents at these places (line 6)."""
        model, found = self.model, np.zeros(len(places), dtype=np.intp)
        scales, variances = self.fitted[places].T
        for scale in np.unique(scales).tolist():
            alike, root = np.flatnonzero(scales == scale), model.root(scale)
            noise = np.array(model.variances)[variances[alike]]
            drawn = self._draws(root, places[alike], noise, model.settings.beta)
            found[alike] = np.matmul(root, drawn[:, :, None])[:, :, 0].argmax(axis=1)
        return found

    @property
    def fitted(self) -> Indices:
        """Which length scale and noise variance each agent's own process has, (n, 2). Private.

        It follows from what has been seen, so that an agent that resumes has the same.
        """
        model = self.model
        count = model.fitted_on(self.choices.shape[1])
        if count != self._fitted[0]:
            targets = self._targets(np.arange(len(self.numbers)), count)
            fitted = [
                model.likeliest(model.grid[chosen[:count]], values)
                for chosen, values in zip(self.choices, targets, strict=True)
            ]
            self._fitted = count, np.array(fitted, dtype=np.intp)
        return self._fitted[1]

    def shared_draws(self) -> Array:
        """ω_n of every agent from its posterior (2), (n, M) (line 10)."""
        every = np.arange(len(self.numbers))
        variances = np.full(len(every), self.model.settings.noise_variance)
        return self._draws(self.model.shared, every, variances)

    def _draws(
        self, features: Array, places: Indices, variances: Array, beta: float = 1.0
    ) -> Array:
        """One weight vector from each posterior, (n, m), its deviation multiplied by beta."""
        counts = features.shape[1], self.choices.shape[1]
        normals = [
            [self.generators[place].standard_normal(count) for count in counts]
            for place in places.tolist()
        ]
        prior = beta * np.array([pair[0] for pair in normals]).reshape(-1, counts[0])
        noise = beta * np.array([pair[1] for pair in normals]).reshape(-1, counts[1])
        chosen = self.choices[places]
        return posterior_draws(features[chosen], self._targets(places), variances, prior, noise)

    def _targets(self, places: Indices, first: int | None = None) -> Array:
        """What these agents have seen (the first of it), in units of their processes, (n, t)."""
        seen, public = self.seen[places, :first], self.model.settings
        if not public.standardise:
            return (seen - public.offset) / public.scale
        return standardised(seen)
