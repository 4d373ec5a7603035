"""The agents: Algorithm 2 of Dai, Low & Jaillet 2021, one at a time or many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpaudit.errors import InputError
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.own import OwnProcess
from private_bo.federated.weights import region_of_agent, region_of_point
from private_bo.gp import Box, RandomFourierFeatures, SquaredExponential
from private_bo.gp.types import Array, Indices, read_only
from private_bo.threads import single_threaded

__all__ = ["AgentModel", "Agents", "Observe", "posterior_draws"]

Observe: TypeAlias = Callable[[int, int, np.random.Generator], float]
"""What agent n observes at point x of the grid: (n, x, generator) to y."""

_LEAST_SPREAD = 1e-6
"""Of observations: an agent that has seen one value alone is not blown up by rounding."""


@dataclass(frozen=True, eq=False)
class AgentModel:
    """What all agents know beforehand: grid, features, and when to trust whom. All public.

    Attributes:
        shared: φ(x) of every point, (G, M): of the vectors that travel.
        own: candidates for an agent's own process on the grid.
        beta: β, by which deviations of draws from the own process are multiplied.
        point_regions: i[x] of every point, (G,).
        agent_regions: i_n of every agent, (N,).
        initial: N_init.
        own_share: p_t by t, (T + 1,); the first is not used.
        offset: what is taken off observations.
        scale: what observations are then divided by.
        standardise: whether each agent takes its own mean and deviation instead.
        noise_variance: λ of the vectors that travel, in those units.
    """

    shared: Array
    own: OwnProcess
    beta: float
    point_regions: Indices
    agent_regions: Indices
    initial: int
    own_share: Array
    offset: float
    scale: float
    standardise: bool
    noise_variance: float

    @classmethod
    def on(
        cls,
        grid: Array,
        *,
        agents: int,
        regions: int,
        features: int,
        feature_seed: int,
        shared_scale: float,
        own_scale: float,
        refit_every: int | None,
        beta: float,
        initial: int,
        own_share: Array,
        offset: float,
        scale: float,
        standardise: bool,
        noise_variance: float,
    ) -> AgentModel:
        """The model on a grid (G, d) of the unit cube, with random features and a SE kernel.

        Raises:
            InputError: if a sub-region holds no point of the grid.
        """
        dimension = grid.shape[1]
        point_regions = region_of_point(grid, regions)
        occupied = np.unique(point_regions).size
        if occupied < regions:
            raise InputError(
                f"regions is {regions}, of which {regions - occupied} hold none of the "
                f"{len(grid)} points of the grid; it must be so small that each holds one."
            )
        random = RandomFourierFeatures(
            SquaredExponential(shared_scale),
            Box((0.0, 1.0), dimension),
            pairs=features // 2,
            seed=feature_seed,
        )
        with single_threaded():
            return cls(
                shared=read_only(random(grid)),
                own=OwnProcess.around(grid, own_scale, noise_variance, refit_every),
                beta=beta,
                point_regions=point_regions,
                agent_regions=region_of_agent(agents, regions),
                initial=initial,
                own_share=read_only(own_share.copy()),
                offset=offset,
                scale=scale,
                standardise=standardise,
                noise_variance=noise_variance,
            )


class Agents:
    """Some agents of one process, which act in step; each draws from a generator of its own.

    Whatever an agent does is the same, bit for bit, whichever others are computed beside it.

    Args:
        model: what all know.
        observe: the private objectives of these agents.
        numbers: which agents these are.
        generators: one for each.
    """

    def __init__(
        self,
        model: AgentModel,
        observe: Observe,
        numbers: Sequence[int],
        generators: Sequence[np.random.Generator],
    ) -> None:
        self._model = model
        self._observe = observe
        self._numbers = list(numbers)
        self._generators = list(generators)
        self._choices: Indices = np.empty((len(self._numbers), 0), dtype=np.intp)
        self._seen: Array = np.empty((len(self._numbers), 0))
        self._fitted: tuple[int, Indices] = (0, np.zeros((len(self._numbers), 2), dtype=np.intp))
        self.received: list[int] = []
        """How many of the agents followed the broadcast, round by round."""

    @property
    def choices(self) -> Indices:
        """The points queried so far, (n, N_init + t): initial ones first. Private."""
        return self._choices

    @property
    def seen(self) -> Array:
        """What was observed at these points, (n, N_init + t). Private."""
        return self._seen

    def resume(self, choices: Indices, seen: Array) -> None:
        """Go on from earlier queries and what was observed, (n, k) each, as if made by these."""
        self._choices, self._seen = choices.copy(), seen.copy()

    def act(self, broadcast: Broadcast) -> None:
        """Lines 1 to 9 of Algorithm 2, for iteration t = round + 1."""
        if self._choices.shape[1] == 0:  # line 2
            self._query(self._initial_points())
        turn = broadcast.round + 1
        if turn == 0:
            return
        own = np.array([g.random() for g in self._generators]) <= self._model.own_share[turn]
        self.received.append(int((~own).sum()))
        points = np.full(len(own), self._best_received(broadcast))  # line 8
        points[own] = self._own_maxima(np.flatnonzero(own))  # line 6
        self._query(points[:, None])  # line 9

    def reports(self, turn: int) -> list[Report]:
        """ω_n,t of each agent, from its posterior (2) given all it has seen (line 10)."""
        every = np.arange(len(self._numbers))
        variances = np.full(len(every), self._model.noise_variance)
        drawn = self._draws(self._model.shared, every, variances)
        return [Report(turn, n, vector) for n, vector in zip(self._numbers, drawn, strict=True)]

    def _initial_points(self) -> Indices:
        """N_init points of each agent's own sub-region, without repetition where it has so many."""
        model = self._model
        rows = []
        for number, generator in zip(self._numbers, self._generators, strict=True):
            inside = np.flatnonzero(model.point_regions == model.agent_regions[number])
            repeat = inside.size < model.initial
            rows.append(generator.choice(inside, size=model.initial, replace=repeat))
        return np.array(rows, dtype=np.intp)

    def _query(self, points: Indices) -> None:
        """Observe points (n, k), one row an agent."""
        seen = np.array(
            [
                [self._observe(number, int(point), generator) for point in row]
                for number, generator, row in zip(
                    self._numbers, self._generators, points, strict=True
                )
            ]
        )
        self._choices = np.concatenate([self._choices, points], axis=1)
        self._seen = np.concatenate([self._seen, seen.reshape(points.shape)], axis=1)

    def _best_received(self, broadcast: Broadcast) -> int:
        """Argmax φ(x)ᵀω^(i[x]), the first of equals."""
        model = self._model
        values = (model.shared @ broadcast.vectors.T)[
            np.arange(len(model.shared)), model.point_regions
        ]
        return int(values.argmax())

    def _own_maxima(self, places: Indices) -> Indices:
        """Argmax of a draw from the agent's own process, for the agents at these places."""
        own, found = self._model.own, np.zeros(len(places), dtype=np.intp)
        scales, variances = self.fitted[places].T
        for scale in np.unique(scales).tolist():
            alike, root = np.flatnonzero(scales == scale), own.root(scale)
            noise = np.array(own.variances)[variances[alike]]
            drawn = self._draws(root, places[alike], noise, self._model.beta)
            found[alike] = np.matmul(root, drawn[:, :, None])[:, :, 0].argmax(axis=1)
        return found

    @property
    def fitted(self) -> Indices:
        """Which length scale and noise variance each agent's own process has, (n, 2). Private.

        It follows from what has been seen, so that an agent that resumes has the same.
        """
        model = self._model
        count = model.own.fitted_on(self._choices.shape[1], model.initial)
        if count != self._fitted[0]:
            targets = self._targets(np.arange(len(self._numbers)), count)
            fitted = [
                model.own.likeliest(model.own.grid[chosen[:count]], values)
                for chosen, values in zip(self._choices, targets, strict=True)
            ]
            self._fitted = count, np.array(fitted, dtype=np.intp)
        return self._fitted[1]

    def _draws(
        self, features: Array, places: Indices, variances: Array, beta: float = 1.0
    ) -> Array:
        """One weight vector from each posterior, (n, m), its deviation multiplied by beta."""
        counts = features.shape[1], self._choices.shape[1]
        normals = [
            [self._generators[place].standard_normal(count) for count in counts]
            for place in places.tolist()
        ]
        prior = beta * np.array([pair[0] for pair in normals]).reshape(-1, counts[0])
        noise = beta * np.array([pair[1] for pair in normals]).reshape(-1, counts[1])
        chosen = self._choices[places]
        return posterior_draws(features[chosen], self._targets(places), variances, prior, noise)

    def _targets(self, places: Indices, first: int | None = None) -> Array:
        """What these agents have seen (the first of it), in units of their processes, (n, t)."""
        seen, model = self._seen[places, :first], self._model
        if not model.standardise:
            return (seen - model.offset) / model.scale
        centred = seen - seen.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=1, keepdims=True))
        standardised: Array = centred / np.maximum(spread, _LEAST_SPREAD)
        return standardised


def posterior_draws(
    features: Array, targets: Array, noise_variances: Array, prior: Array, noise: Array
) -> Array:
    """Draws of N(ν, λΣ⁻¹) of equation (2), by moving a draw of the prior to the data.

    With w ~ N(0, I) and e ~ N(0, I), the vector w + Φᵀ(ΦΦᵀ + λI)⁻¹(y − Φw − √λ e) has that law, by
    Matheron's rule (Wilson et al. 2020), at the cost of one system of t equations instead of m.

    Args:
        features: Φ of what each agent has seen, (n, t, m).
        targets: y, (n, t).
        noise_variances: λ of each, (n,).
        prior: w, (n, m).
        noise: e, (n, t).

    Returns:
        Shape (n, m). Each row follows from its own inputs alone, bit for bit.
    """
    if len(features) == 0:
        return prior
    across = features.swapaxes(1, 2)
    # One agent at a time within numpy: no product runs over the agents.
    gram = np.matmul(features, across)
    steps = np.arange(gram.shape[1])
    gram[:, steps, steps] += noise_variances[:, None]
    expected = np.matmul(features, prior[:, :, None])
    missing = (targets - np.sqrt(noise_variances)[:, None] * noise)[:, :, None] - expected
    moved: Array = np.matmul(across, np.linalg.solve(gram, missing))[:, :, 0]
    return prior + moved
