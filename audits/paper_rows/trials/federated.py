"""Figures 2 and 3 of Dai, Low & Jaillet 2021: their algorithms, and one run of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dpaudit import Ledger
from private_bo.federated import DPFTS, DPFTSDE, FTS, FTSDE, FederatedProblem, PlainTS, Reliance
from private_bo.federated.dp_fts_de import Federation
from private_bo.gp.types import Array

Algorithm: TypeAlias = DPFTSDE | FTSDE
Cells: TypeAlias = dict[str, Algorithm]
"""Algorithms by label."""

_Kind = TypeVar("_Kind", bound=Federation)


class Task(StrEnum):
    """The objectives that are optimised."""

    SYNTHETIC = "synthetic"
    """Random functions of length scale 0.03: 40 rounds suffice to find the maximum."""
    RUGGED = "rugged"
    """Random functions of length scale 0.01: 40 rounds do not."""
    LANDMINES = "landmines"
    DIGITS = "digits"


@dataclass(frozen=True)
class Setting:
    """An algorithm of privacy with its comparators.

    Attributes:
        private: DP-FTS-DE at the paper's noise.
        rates: q, at its own z.
        multipliers: z, at its own q.
        clips: S.
    """

    private: DPFTSDE
    rates: tuple[float, ...]
    multipliers: tuple[float, ...]
    clips: tuple[float, ...] = ()


# Figure 3 has P = 4, S = 22, M = 100 and T = 60. Length scales are public constants: objectives
# that vary on a fifth of the range of each (scaled) hyperparameter. Each agent refits those of its
# own process around them, every 5 points.
_TUNING = DPFTSDE(
    agents=29,
    regions=4,
    rate=0.35,
    clip=22.0,
    features=100,
    rounds=60,
    reliance=Reliance.INVERSE,
    shared_scale=0.2,
    own_scale=0.2,
    standardise=True,
    noise_variance=0.05,
)
SETTINGS: Mapping[Task, Setting] = {
    Task.SYNTHETIC: Setting(
        DPFTSDE(), (0.15, 0.25, 0.5), (1.0, 1.2, 1.5), (3.0, 5.5, 11.0, 22.0, 44.0)
    ),
    Task.RUGGED: Setting(
        DPFTSDE(regions=4, features=100, clip=16.0, shared_scale=0.01, own_scale=0.01),
        (0.15, 0.25, 0.5),
        (1.0, 1.2, 1.5),
        (4.0, 8.0, 16.0, 32.0, 64.0),
    ),
    Task.LANDMINES: Setting(
        _TUNING, (0.1, 0.15, 0.2, 0.25, 0.35), (1.0, 1.6, 2.0, 3.0, 4.0)
    ),
    Task.DIGITS: Setting(
        replace(_TUNING, agents=30), (0.1, 0.15, 0.2, 0.25, 0.35), (1.0, 1.6, 2.0, 3.0, 4.0)
    ),
}  # fmt: skip


def figure_2(task: Task) -> Cells:
    """Its algorithms, each under the first of its labels: exploration, S, q, z, P and Figure 4."""
    setting, private = SETTINGS[task], SETTINGS[task].private
    return _distinct(
        *_non_private(private, (2, 4)),
        *((f"S = {s:g}", replace(private, clip=s)) for s in setting.clips),
        *_rates(setting),
        *_multipliers(setting),
        ("DP-FTS, P = 1", _like(DPFTS, private)),
        *((f"DP-FTS-DE, P = {p}", replace(private, regions=p)) for p in (2, 4)),
    )


def figure_3(task: Task) -> Cells:
    """Its algorithms, likewise: z, q, and those without privacy."""
    setting, private = SETTINGS[task], SETTINGS[task].private
    return _distinct(
        *_multipliers(setting), *_rates(setting), *_non_private(private, (private.regions,))
    )


def _distinct(*labelled: tuple[str, Algorithm]) -> Cells:
    by_algorithm: dict[Algorithm, str] = {}
    for label, algorithm in labelled:
        by_algorithm.setdefault(algorithm, label)
    return {label: algorithm for algorithm, label in by_algorithm.items()}


def _rates(setting: Setting) -> list[tuple[str, Algorithm]]:
    return [(f"q = {q:g}", replace(setting.private, rate=q)) for q in setting.rates]


def _multipliers(setting: Setting) -> list[tuple[str, Algorithm]]:
    private = setting.private
    return [(f"z = {z:g}", replace(private, noise_multiplier=z)) for z in setting.multipliers]


def _non_private(private: DPFTSDE, regions: tuple[int, ...]) -> list[tuple[str, Algorithm]]:
    """The comparators without privacy, otherwise alike."""
    alone = replace(_like(PlainTS, private), reliance=Reliance.NEVER)
    explorers = [(f"FTS-DE, P = {p}", replace(_like(FTSDE, private), regions=p)) for p in regions]
    return [("TS", alone), ("FTS", _like(FTS, private)), *explorers]


def _like(kind: type[_Kind], private: DPFTSDE) -> _Kind:
    """An algorithm of that kind with the same fields, where it has them."""
    shared = {field.name: getattr(private, field.name) for field in fields(kind)}
    if issubclass(kind, FTS | DPFTS):
        shared["regions"] = 1
    return kind(**shared)


def one_run(algorithm: Algorithm, problem: FederatedProblem, agents: Any, noise: Any) -> Array:
    """Simple regret after each round, mean over the agents, (T + 1,).

    Args:
        algorithm: what runs.
        problem: on what.
        agents: seed of the agents and samples.
        noise: seed of the ledger.
    """
    rng = np.random.default_rng(agents)
    if isinstance(algorithm, DPFTSDE):
        with Ledger(algorithm.plan(), rng=np.random.default_rng(noise)) as ledger:
            result = algorithm.run(problem, ledger, rng)
    else:
        result = algorithm.run(problem, rng)
    return np.array(result.for_owner.series["simple regret"])
