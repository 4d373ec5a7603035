"""Dai, Low & Jaillet 2021: Figures 2 to 7 and 11, and what the appendix says of landmines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial

import numpy as np

from audits.paper_rows.experiments import Experiment
from private_bo.federated import (
    DPFTSDE,
    FTSDE,
    FederatedProblem,
    Reliance,
    SamplingScheme,
    digits,
    landmines,
    synthetic,
)
from private_bo.federated.agents import AgentModel, Streams
from private_bo.federated.algorithms import Agents
from private_bo.federated.experiments.figures import Algorithm, Cells, Task, one_run, panels
from private_bo.federated.experiments.figures import Experiment as Figure
from private_bo.gp.types import Array, Indices

FLAT = "FTS-DE, P = 4, uniform weights"
SCATTERED = "FTS-DE, P = 4, initial points anywhere"


class _ScatteredAgents(Agents):
    """Agents whose initial points are of the whole domain, not of their own sub-region."""

    def initial_points(self) -> Indices:
        count = self.model.settings.initial
        points = len(self.model.grid)
        drawn = [each.choice(points, size=count, replace=False) for each in self.generators]
        return np.array(drawn, dtype=np.intp)


@dataclass(frozen=True)
class _Scattered(FTSDE):
    """FTS-DE with its weights alone: one of the two parts of distributed exploration."""

    def team(
        self, problem: FederatedProblem, streams: Streams, numbers: Iterable[int] | None = None
    ) -> Agents:
        chosen = list(range(self.agents) if numbers is None else numbers)
        generators = [streams.agent(number) for number in chosen]
        model = AgentModel(self, problem.domain)
        return _ScatteredAgents(model, problem.observe, chosen, generators)


def _merged(shown: Mapping[str, Cells]) -> dict[str, Algorithm]:
    """Each algorithm once, under its first label."""
    by_algorithm: dict[Algorithm, str] = {}
    for cells in shown.values():
        for label, algorithm in cells.items():
            by_algorithm.setdefault(algorithm, label)
    return {label: algorithm for algorithm, label in by_algorithm.items()}


def _parts(cells: Mapping[str, Algorithm]) -> dict[str, Algorithm]:
    """FTS-DE with one of its two parts alone (Figure 5), and with eight sub-regions (Figure 6)."""
    whole = cells["FTS-DE, P = 4"]
    assert isinstance(whole, FTSDE)
    shared = {field.name: getattr(whole, field.name) for field in fields(whole)}
    made: dict[str, Algorithm] = {FLAT: replace(whole, contrast=0.0)}
    made[SCATTERED] = _Scattered(**shared)
    made["FTS-DE, P = 8"] = replace(whole, regions=8)
    return made


def _synthetic(task: Task) -> dict[str, Algorithm]:
    found = _merged(panels(Figure.FIGURE_2, task))
    return found | _parts(found)


def _heterogeneous() -> dict[str, Algorithm]:
    cells = _merged(panels(Figure.FIGURE_2, Task.RUGGED))
    whole = cells["FTS-DE, P = 4"]
    kinds = (Reliance.INVERSE_ROOT, Reliance.INVERSE, Reliance.INVERSE_SQUARE)
    made = {f"FTS-DE, 1 − p = {kind}": replace(whole, reliance=kind) for kind in kinds}
    return {"TS": cells["TS"], **made}


def _tuning(task: Task) -> dict[str, Algorithm]:
    """Figure 3, with the sub-regions, weights and sampling of the appendix."""
    found = _merged(panels(Figure.FIGURE_3, task))
    private = found["z = 1"]
    assert isinstance(private, DPFTSDE)
    size = 10 / private.agents  # about q = 0.35, as a whole number of agents
    fixed = replace(private, rate=size, sampling=SamplingScheme.FIXED_SIZE)
    return found | {
        "DP-FTS, P = 1": replace(private, regions=1),
        "DP-FTS-DE, P = 2": replace(private, regions=2),
        "DP-FTS-DE, a = 5": replace(private, contrast=5.0),
        "DP-FTS-DE, a = 30": replace(private, contrast=30.0),
        "fixed-size sampling": fixed,
    }


@lru_cache(maxsize=2)
def _objectives(task: Task, agents: int) -> FederatedProblem:
    return landmines() if task is Task.LANDMINES else digits(agents)


_PERTURBATION = 2.0  # of functions that are else within [0, 1]: agents have little in common


def _problem(name: str, trial: int, first: Algorithm) -> FederatedProblem:
    if name in (Task.LANDMINES, Task.DIGITS):
        return _objectives(Task(name), first.agents)
    seed = np.random.SeedSequence(0, spawn_key=(0, trial))
    rng, scale = np.random.default_rng(seed), first.own_scale
    if name == "heterogeneous":
        return synthetic(first.agents, seed=rng, length_scale=scale, perturbation=_PERTURBATION)
    return synthetic(first.agents, seed=rng, length_scale=scale)


_CELLS: Mapping[str, Callable[[], dict[str, Algorithm]]] = {
    "synthetic": partial(_synthetic, Task.SYNTHETIC),
    "rugged": partial(_synthetic, Task.RUGGED),
    "heterogeneous": _heterogeneous,
    "landmines": partial(_tuning, Task.LANDMINES),
    "digits": partial(_tuning, Task.DIGITS),
}


@lru_cache(maxsize=8)
def _known(name: str) -> dict[str, Algorithm]:
    return _CELLS[name]()


def _run(cells: Sequence[str], trial: int, name: str) -> Mapping[str, Array]:
    known = _known(name)
    agents, noise = (np.random.SeedSequence(0, spawn_key=(part, trial)) for part in (1, 2))
    problem = _problem(name, trial, next(iter(known.values())))
    return {cell: one_run(known[cell], problem, agents, noise) for cell in cells}


_TITLES = {
    "synthetic": ("Dai et al., synthetic functions (length scale 0.03)", 12),
    "rugged": ("Dai et al., rugged synthetic functions (length scale 0.01)", 12),
    "heterogeneous": ("Dai et al., agents that have little in common", 12),
    "landmines": ("Dai et al., landmine detection", 30),
    "digits": ("Dai et al., digits (stand in for human activity and EMNIST)", 15),
}
EXPERIMENTS = tuple(
    Experiment(
        f"federated-{name}", title, tuple(_known(name)), partial(_run, name=name), trials,
        tuple(_known(name))[::3], rounds="round, the start being 1", regret="simple regret",
    )
    for name, (title, trials) in _TITLES.items()
)  # fmt: skip
