"""Trials of the federated algorithms: the same functions, seeds and noise for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from dpaudit import Ledger
from dpaudit.base import validate
from private_bo.experiments import in_parallel, trial_numbers
from private_bo.federated import DPFTSDE, FederatedProblem, digits, landmines, synthetic
from private_bo.federated.experiments.cells import Algorithm, Task
from private_bo.gp.types import Array

Regrets: TypeAlias = dict[Algorithm, Array]
"""Simple regret of each trial, mean over the agents, (trials, T + 1)."""

_FUNCTION, _AGENTS, _NOISE = 0, 1, 2


def problem_of(task: Task, agents: int, *, workers: int = 1) -> FederatedProblem | None:
    """The fixed objectives of a task, every value computed; None where each trial has its own.

    Raises:
        InputError: if the data are missing.
    """
    if task in (Task.SYNTHETIC, Task.RUGGED):
        return None
    problem = landmines() if task is Task.LANDMINES else digits(agents)
    return problem.evaluated(workers)


def one_run(
    algorithm: Algorithm, problem: FederatedProblem, agents: object, noise: object
) -> Array:
    """Simple regret after each round, mean over the agents, (T + 1,).

    Args:
        algorithm: what runs.
        problem: on what.
        agents: seed of the agents and samples.
        noise: seed of the ledger.
    """
    rng = np.random.default_rng(agents)  # type: ignore[arg-type]
    if isinstance(algorithm, DPFTSDE):
        with Ledger(algorithm.plan(), rng=np.random.default_rng(noise)) as ledger:  # type: ignore[arg-type]
            result = algorithm.run(problem, ledger, rng)
    else:
        result = algorithm.run(problem, rng)
    return np.array(result.for_owner.series["simple regret"])


def _trial(
    algorithms: list[Algorithm], problem: FederatedProblem | None, entropy: int, trial: int
) -> list[Array]:
    """All algorithms with the same seeds, so that differences are paired."""

    def seed(part: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(entropy, spawn_key=(part, trial))

    if problem is None:
        function = np.random.default_rng(seed(_FUNCTION))
        first = algorithms[0]
        problem = synthetic(first.agents, seed=function, length_scale=first.own_scale)
    return [one_run(each, problem, seed(_AGENTS), seed(_NOISE)) for each in algorithms]


def regrets_of(
    algorithms: Iterable[Algorithm],
    problem: FederatedProblem | None,
    *,
    trials: int = 20,
    seed: int = 0,
    workers: int = 1,
) -> Regrets:
    """Run each of the algorithms once a trial; the result does not depend on the workers.

    Args:
        algorithms: equal ones are run once.
        problem: the objectives; None for a new synthetic function in each trial.
        trials: at least 2, for standard errors.
        seed: of everything.
        workers: processes.

    Raises:
        InputError: if a number is out of its range.
    """
    validate.integer_at_least(2, trials=trials)
    _, entropy, workers = trial_numbers(trials, seed, workers)
    distinct = list(dict.fromkeys(algorithms))
    jobs = ((distinct, problem, entropy, trial) for trial in range(trials))
    columns = zip(*in_parallel(_trial, jobs, workers), strict=True)
    return {each: np.array(runs) for each, runs in zip(distinct, columns, strict=True)}
