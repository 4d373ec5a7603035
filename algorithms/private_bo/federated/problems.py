"""Federated problems: one objective for every agent, over one public grid.

Random functions and landmine fields are those of Dai, Low & Jaillet 2021 (Section 5); writers of
digits stand in for their classification tasks and need no download.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Natural, NonNegative
from private_bo.experiments import in_parallel
from private_bo.gp import SquaredExponential
from private_bo.gp.types import Array, Indices, array_of, read_only, single_threaded
from private_bo.problems.sources import data_file


def unit_grid(per_axis: int, dimensions: int = 1) -> Array:
    """The grid {0, 1/(m-1), ..., 1}^d, shape (m^d, d), last coordinate fastest.

    It has both ends of every axis, and for even m no point in the middle, so that halves of the
    unit cube hold equally many points.

    Args:
        per_axis: m >= 2, the number of values of each coordinate.
        dimensions: d >= 1.

    >>> unit_grid(2, dimensions=2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    axis = np.linspace(0.0, 1.0, validate.integer_at_least(2, per_axis=per_axis))
    depth = validate.integer_at_least(1, dimensions=dimensions)
    mesh = np.meshgrid(*[axis] * depth, indexing="ij")
    return np.stack([coordinate.ravel() for coordinate in mesh], axis=1)


class Objective(ABC):
    """One agent's objective over the grid; nobody else holds it. The same value at every call."""

    @property
    @abstractmethod
    def size(self) -> int:
        """G, the number of points."""

    @abstractmethod
    def value(self, index: int) -> float:
        """The objective at a point, 0 <= index < G, without noise."""

    def values(self) -> Array:
        """The objective at all points, (G,), read-only."""
        with single_threaded():
            return read_only(np.array([self.value(index) for index in range(self.size)]))


@dataclass(frozen=True, eq=False)
class TabledObjective(Checked, Objective):
    """An objective written out in full.

    Attributes:
        table: its values, (G,); a read-only copy is kept.
    """

    table: Annotated[Array, array_of("G")] = field(repr=False)

    @property
    def size(self) -> int:
        """G, the number of points."""
        return int(self.table.size)

    def value(self, index: int) -> float:
        """The entry of the table."""
        return float(self.table[index])

    def values(self) -> Array:
        """The table, (G,), read-only."""
        return self.table


@dataclass(frozen=True, eq=False)
class Split:
    """An agent's private data, in two parts.

    Attributes:
        inputs: to learn from, (n, features).
        labels: of them, (n,).
        held_inputs: to be judged by, (m, features).
        held_labels: of them, (m,).
    """

    inputs: Array = field(repr=False)
    labels: Indices = field(repr=False)
    held_inputs: Array = field(repr=False)
    held_labels: Indices = field(repr=False)


@dataclass(frozen=True, eq=False)
class TunedObjective(Objective):
    """A score of a model by its hyperparameters: a point is scored when first asked for, and kept.

    A score depends on the point alone, so values do not depend on the order of questions.

    Attributes:
        domain: the points, (G, d).
        split: the agent's data.
        score: of the data and a point; deterministic.
    """

    domain: Array = field(repr=False)
    split: Split
    score: Callable[[Split, Array], float]
    _known: dict[int, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def size(self) -> int:
        """G, the number of points."""
        return len(self.domain)

    def value(self, index: int) -> float:
        """The score, computed when first asked for."""
        if index not in self._known:
            self._known[index] = self.score(self.split, self.domain[index])
        return self._known[index]


@dataclass(frozen=True, eq=False)
class FederatedProblem(Checked):
    """Agents that each maximise an objective of their own over one public grid.

    Attributes:
        name: what the problem is called in reports.
        domain: the public grid, (G, d), within the unit cube; a read-only copy is kept.
        objectives: one for each agent, each private to it.
        noise: standard deviation of an observation's normal noise, at least 0.

    Raises:
        InputError: if the grid is empty or leaves the unit cube, there is no agent, an objective
            has another number of points, or ``noise`` is negative.

    >>> problem = FederatedProblem.tabled("two agents", unit_grid(3), [[0, 1, 0], [0, 0, 2]])
    >>> problem.agents, problem.size, problem.optimum.tolist()
    (2, 3, [1.0, 2.0])
    >>> problem.observe(1, 2, np.random.default_rng(0))
    2.0
    """

    name: str
    domain: Annotated[Array, array_of("G", "d")] = field(repr=False)
    objectives: tuple[Objective, ...] = field(repr=False)
    noise: NonNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        domain = self.domain
        if domain.min() < 0 or domain.max() > 1:
            raise InputError(
                f"domain goes from {domain.min():g} to {domain.max():g}; all points must be within "
                "[0, 1]^d."
            )
        if not self.objectives:
            raise InputError("objectives is empty; it must hold one for each agent.")
        for agent, objective in enumerate(self.objectives):
            if objective.size != len(domain):
                raise InputError(
                    f"objectives has {objective.size} values for agent {agent}; it must have one "
                    f"for each of {len(domain)} points."
                )

    @classmethod
    def tabled(
        cls, name: str, domain: Array, table: Iterable[Iterable[float]], noise: float = 0.0
    ) -> FederatedProblem:
        """A problem whose objectives are the rows of a table (N, G)."""
        rows = tuple(TabledObjective(np.asarray(row)) for row in table)
        return cls(name, domain, rows, noise)

    def with_agent(self, agent: int, objective: Objective) -> FederatedProblem:
        """The same problem with another objective of one agent."""
        others = [*self.objectives]
        others[agent] = objective
        return replace(self, objectives=tuple(others))

    @property
    def agents(self) -> int:
        """N, the number of agents."""
        return len(self.objectives)

    @property
    def size(self) -> int:
        """G, the number of points."""
        return int(self.domain.shape[0])

    def value(self, agent: int, index: int) -> float:
        """An agent's objective at a point, without noise."""
        objective = self._objective(agent)
        return objective.value(validate.integer_at_least(0, self.size - 1, index=index))

    def observe(self, agent: int, index: int, rng: np.random.Generator) -> float:
        """What an agent observes at a point: its objective and, if there is any, noise.

        Args:
            agent: 0 <= agent < N.
            index: row number of the point, 0 <= index < G.
            rng: the agent's own source of noise; untouched where ``noise`` is 0.
        """
        value = self.value(agent, index)
        return value + self.noise * float(rng.standard_normal()) if self.noise else value

    def values(self, agent: int) -> Array:
        """An agent's objective at all points, (G,), for evaluation only."""
        return self._objective(agent).values()

    @cached_property
    def table(self) -> Array:
        """All objectives, (N, G), read-only: for evaluation only; no party of the protocol has it.

        The first use evaluates every point of every agent, in as many processes as there are
        processors where that is costly.
        """
        costly = any(isinstance(each, TunedObjective) for each in self.objectives)
        workers = (os.cpu_count() or 1) if costly else 1
        asked = ((each,) for each in self.objectives)
        return read_only(np.stack(in_parallel(_values_of, asked, workers)))

    @cached_property
    def optimum(self) -> Array:
        """The largest value of each agent's objective on the grid, (N,)."""
        return read_only(self.table.max(axis=1))

    def _objective(self, agent: int) -> Objective:
        return self.objectives[validate.integer_at_least(0, self.agents - 1, agent=agent)]


@dataclass(frozen=True)
class ZeroedAgent(Checked):
    """The neighbour of a problem: one agent's contributions are zero; N and weights stay.

    Attributes:
        problem: with the agent.
        agent: whose vectors are taken for zero in every round.
    """

    problem: FederatedProblem
    agent: Natural

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer_at_least(0, self.problem.agents - 1, agent=self.agent)


@dataclass(frozen=True, eq=False)
class ScaledObjective(Objective):
    """An objective times a factor, such as one far beyond what others have.

    Attributes:
        objective: the original.
        factor: of its values.
    """

    objective: Objective
    factor: float

    @property
    def size(self) -> int:
        """G, the number of points."""
        return self.objective.size

    def value(self, index: int) -> float:
        """That of the original, times the factor."""
        return self.factor * self.objective.value(index)


def _values_of(objective: Objective) -> Array:
    """The values of an objective, in a worker process."""
    return objective.values()


_JITTER = 1e-9  # relative to the variance 1; far below the noise of any observation
_MOST_POINTS = 4096


def synthetic(
    agents: int = 200,
    *,
    seed: int | np.random.Generator = 0,
    points: int = 1000,
    length_scale: float = 0.03,
    perturbation: float = 0.05,
    noise: float = 0.01,
) -> FederatedProblem:
    """A function drawn from a Gaussian process, and for every agent a perturbed copy of it.

    f is drawn with the squared-exponential kernel on a public grid of [0, 1] and scaled to [0, 1].
    Agent n has f + g_n, where g_n is an independent draw with the same kernel, scaled to
    max |g_n| = ``perturbation``: so the paper's distance d_n to f is known, and every objective is
    as smooth as f. The main text of the paper leaves grid, length scale and sizes open; those
    here are this library's choice.

    Args:
        agents: N.
        seed: of the functions, or a generator to draw them from.
        points: G >= 2, at most 4096.
        length_scale: of the kernel.
        perturbation: max |g_n|; 0 gives all agents the same function.
        noise: standard deviation of an observation.

    >>> problem = synthetic(agents=3, points=100)
    >>> problem.agents, problem.domain.shape
    (3, (100, 1))
    """
    count = validate.integer_at_least(1, agents=agents)
    if validate.integer_at_least(2, points=points) > _MOST_POINTS:
        raise InputError(f"points is {points}; it must be at most {_MOST_POINTS}.")
    size = validate.non_negative(perturbation=perturbation)
    if not isinstance(seed, np.random.Generator):
        seed = np.random.default_rng(validate.integer_at_least(0, seed=seed))
    domain = unit_grid(points)
    draws = _draws(domain, length_scale, count + 1, seed)
    shared = draws[0] - draws[0].min()
    shared /= shared.max()
    own = draws[1:] * (size / np.abs(draws[1:]).max(axis=1, keepdims=True))
    return FederatedProblem.tabled("synthetic", domain, shared + own, noise)


def _draws(domain: Array, length_scale: float, count: int, rng: np.random.Generator) -> Array:
    """Independent draws of a Gaussian process on the grid, (count, G)."""
    covariance = SquaredExponential(length_scale)(domain, domain)
    covariance[np.diag_indices_from(covariance)] += _JITTER
    with single_threaded():
        root = np.linalg.cholesky(covariance)
        return np.asarray(rng.standard_normal((count, len(domain))) @ root.T)


_FEWEST = 6  # images of a writer: at least three to learn from and three to be judged by
# Public ranges: C and γ of the support vector machine, as in the paper's experiment.
_C, _GAMMA = (1e-4, 10.0), (0.01, 10.0)
# Public ranges of the digits, all on logarithmic scales.
_PENALTY, _STEP, _EPOCHS = (1e-6, 1.0), (1e-3, 1.0), (1, 32)


def area_of_machine(split: Split, place: Array) -> float:
    """Area under the ROC curve on the held half, of a support vector machine with C and γ."""
    from sklearn import config_context
    from sklearn.svm import SVC

    penalty, gamma = place
    machine = SVC(C=_between(*_C, penalty), gamma=_between(*_GAMMA, gamma))
    # Checks of data that were checked when they were read take as long as a fit.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        machine.fit(split.inputs, split.labels)
        # The order of the decision function is all that the area depends on.
        score = machine.decision_function(split.held_inputs)
    return area_under_roc(score, split.held_labels)


def area_under_roc(scores: Array, positive: Indices) -> float:
    """Probability that a positive has a larger score than a negative, equal scores counting half.

    >>> area_under_roc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
    0.875
    """
    from scipy.stats import rankdata

    chosen = positive == 1
    hits, others = int(chosen.sum()), int((~chosen).sum())
    above = float(rankdata(scores)[chosen].sum()) - hits * (hits + 1) / 2
    return above / (hits * others)


def accuracy_of_classifier(split: Split, place: Array) -> float:
    """Accuracy of a logistic regression on the held half; L2 penalty, step size and epochs."""
    from sklearn.linear_model import SGDClassifier

    penalty, step, epochs = place
    model = SGDClassifier(
        loss="log_loss",
        alpha=_between_logs(*_PENALTY, penalty),
        learning_rate="constant",
        eta0=_between_logs(*_STEP, step),
        max_iter=round(_between_logs(*_EPOCHS, epochs)),
        tol=None,
        random_state=0,
    )
    model.fit(split.inputs, split.labels)
    return float(np.mean(model.predict(split.held_inputs) == split.held_labels))


def _between(low: float, high: float, share: float) -> float:
    return low + float(share) * (high - low)


def _between_logs(low: float, high: float, share: float) -> float:
    return math.exp(_between(math.log(low), math.log(high), share))


def landmines(
    path: str | Path | None = None, *, per_axis: int = 20, seed: int = 0
) -> FederatedProblem:
    """Tune a support vector machine on each of 29 landmine fields (Xue et al. 2007).

    The objective is the area under the ROC curve on the held-out half of a field, as a function of
    C = 10⁻⁴ + u₁ (10 - 10⁻⁴) and γ = 0.01 + u₂ (10 - 0.01). Halves are stratified by label. A
    value takes a few milliseconds, and is computed when first asked for.

    Args:
        path: ``LandmineData.mat``; by default ``landmine/LandmineData.mat`` in the directory named
            by the environment variable ``DPAUDIT_DATA``.
        per_axis: the grid has per_axis² points.
        seed: of the halves.

    Raises:
        InputError: if the file is missing or is not that data set, or an argument is out of range.
    """
    from sklearn.model_selection import train_test_split

    domain = unit_grid(per_axis, dimensions=2)
    seed = validate.integer_at_least(0, seed=seed)
    file = data_file(path, "landmine/LandmineData.mat")
    fields = []
    for inputs, labels in _landmine_fields(file):
        halves = train_test_split(inputs, labels, test_size=0.5, stratify=labels, random_state=seed)
        inputs, held_inputs, labels, held_labels = halves
        split = Split(inputs, labels, held_inputs, held_labels)
        fields.append(TunedObjective(domain, split, area_of_machine))
    return FederatedProblem("landmines", domain, tuple(fields))


def _landmine_fields(file: Path) -> list[tuple[Array, Indices]]:
    """Inputs (n, 9) and labels 0 or 1 (n,) of every field."""
    from scipy.io import loadmat

    wrong = InputError(
        f"path is {str(file)!r}, which has no cells 'feature' and 'label' of equal lengths with "
        "labels 0 and 1; it must be the landmine file LandmineData.mat."
    )
    try:
        data = loadmat(file)
        cells = zip(np.ravel(data["feature"]), np.ravel(data["label"]), strict=True)
        fields = [
            (np.asarray(inputs, dtype=np.float64), np.ravel(labels).astype(np.intp))
            for inputs, labels in cells
        ]
    except Exception as cause:
        raise wrong from cause
    if not fields or not all(_is_field(inputs, labels) for inputs, labels in fields):
        raise wrong
    return fields


def _is_field(inputs: Array, labels: Indices) -> bool:
    """Whether there are two examples of either label, so that halves can have one of each."""
    if inputs.ndim != 2 or inputs.shape[1] == 0 or inputs.shape[0] != labels.size:
        return False
    known = np.isin(labels, (0, 1)).all() and np.isfinite(inputs).all()
    return bool(known and np.bincount(labels, minlength=2).min() >= 2)


def digits(
    agents: int = 30, *, concentration: float = 1.0, per_axis: int = 8, seed: int = 0
) -> FederatedProblem:
    """Tune a classifier of handwritten digits for agents that write different digits.

    The 1797 images that ship with scikit-learn are dealt out: agent n has a mix of the ten digits
    drawn from a Dirichlet distribution, and gets of each digit a share in proportion. The objective
    is the accuracy of a logistic regression, learned by stochastic gradients on one half of the
    agent's images, on the other half. It is a function of the L2 penalty (10⁻⁶ to 1), the step
    size (10⁻³ to 1) and the number of epochs (1 to 32), all on logarithmic scales.

    Args:
        agents: N >= 2.
        concentration: of the Dirichlet distribution; the smaller, the more the agents differ.
        per_axis: the grid has per_axis³ points.
        seed: of mixes, images and halves.

    Raises:
        InputError: if an argument is out of range, or leaves an agent fewer than 6 images or only
            one digit to learn from.

    >>> digits(agents=5).domain.shape
    (512, 3)
    """
    from sklearn.datasets import load_digits

    count = validate.integer_at_least(2, agents=agents)
    spread = validate.positive(concentration=concentration)
    domain = unit_grid(per_axis, dimensions=3)
    rng = np.random.default_rng(validate.integer_at_least(0, seed=seed))
    images, labels = load_digits(return_X_y=True)
    images = read_only(images / 16.0)  # grey levels 0 to 16
    mixes = rng.dirichlet(np.full(10, spread), size=count)
    writers = []
    for agent, own in enumerate(_rows_by_agent(labels, mixes, rng)):
        own = rng.permutation(own)
        learn, held = own[: len(own) // 2], own[len(own) // 2 :]
        if len(own) < _FEWEST or len(np.unique(labels[learn])) < 2:
            raise InputError(
                f"agents is {agents} and concentration {concentration}, which leave agent {agent} "
                f"{len(own)} images; every agent needs {_FEWEST}, of at least two digits, so "
                "give fewer agents or a larger concentration."
            )
        split = Split(images[learn], labels[learn], images[held], labels[held])
        writers.append(TunedObjective(domain, split, accuracy_of_classifier))
    return FederatedProblem("digits", domain, tuple(writers))


def _rows_by_agent(labels: Indices, mixes: Array, rng: np.random.Generator) -> list[Indices]:
    """Rows of each agent: of every digit a share in proportion to its weight in the mixes."""
    dealt: list[list[Indices]] = [[] for _ in mixes]
    for digit, weights in enumerate(mixes.T):
        rows = rng.permutation(np.flatnonzero(labels == digit))
        total = weights.sum()
        shares = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(rows)).astype(np.intp)
        for own, part in zip(dealt, np.split(rows, cuts), strict=True):
            own.append(part)
    return [np.concatenate(own) for own in dealt]
