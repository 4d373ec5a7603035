"""Figures 2 and 3 of Dai, Low & Jaillet 2021, and what an equal certified ε buys.

``python -m private_bo.federated.experiments.figures figure2`` prints Figure 2 a–d on synthetic
functions; ``figure3`` the privacy and utility of Figure 3 a on landmine fields (``DPAUDIT_DATA``)
or, with ``--task digits``, on digits; ``equal`` compares the paper's noise with the least noise
whose certified ε is the loss that the paper publishes; ``--task rugged`` has functions that 40
rounds do not exhaust. ``-o DIR`` also writes Markdown and JSON.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TypeAlias, TypeVar

import numpy as np

from dpaudit import Ledger
from dpaudit.accounting import compose
from dpaudit.base import validate
from private_bo.experiments import (
    command,
    in_parallel,
    mean_and_error,
    options,
    save,
    table,
    trial_numbers,
)
from private_bo.federated import (
    DPFTS,
    DPFTSDE,
    FTS,
    FTSDE,
    FederatedProblem,
    PlainTS,
    Reliance,
    Sensitivity,
    digits,
    landmines,
    synthetic,
)
from private_bo.federated.dp_fts_de import Federation
from private_bo.gp.types import Array

Algorithm: TypeAlias = DPFTSDE | FTSDE
Cells: TypeAlias = dict[str, Algorithm]
"""Algorithms by label."""

_Kind = TypeVar("_Kind", bound=Federation)

PAPER, PLAIN = "DP-FTS-DE at the paper's noise", "TS"
SAME, TRUE = "DP-FTS-DE, least noise for that ε", "DP-FTS-DE, least noise, scaled to the true Δ"
ALL = "the same, and everyone sampled"


class Task(StrEnum):
    """The objectives that are optimised."""

    SYNTHETIC = "synthetic"
    """Random functions of length scale 0.03: 40 rounds suffice to find the maximum."""
    RUGGED = "rugged"
    """Random functions of length scale 0.01: 40 rounds do not."""
    LANDMINES = "landmines"
    DIGITS = "digits"


class Experiment(StrEnum):
    """The figure or table that is made."""

    FIGURE_2 = "figure2"
    FIGURE_3 = "figure3"
    EQUAL = "equal"


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


def panels(experiment: Experiment, task: Task, rounds: int | None = None) -> dict[str, Cells]:
    """The algorithms of an experiment, by panel and label.

    Args:
        experiment: which one.
        task: on what.
        rounds: T; None for the paper's.
    """
    setting = SETTINGS[task]
    private = setting.private
    if rounds is not None:
        private = replace(private, rounds=rounds)
    if experiment is Experiment.EQUAL:
        return {"equal certified ε": _equal(private)}
    rates = {f"q = {q:g}": replace(private, rate=q) for q in setting.rates}
    multipliers = {f"z = {z:g}": replace(private, noise_multiplier=z) for z in setting.multipliers}
    if experiment is Experiment.FIGURE_3:
        return {
            f"(a) z at q = {private.rate:g}": dict(multipliers),
            f"(a) q at z = {private.noise_multiplier:g}": dict(rates),
            "(a) without privacy": _non_private(private, (private.regions,)),
        }
    return {
        "(a) distributed exploration": _non_private(private, (2, 4)),
        "(b) S": {f"S = {s:g}": replace(private, clip=s) for s in setting.clips},
        "(c) q": dict(rates),
        "(d) z": dict(multipliers),
        "Figure 4: P under privacy": {
            "DP-FTS, P = 1": _like(DPFTS, private),
            **{f"DP-FTS-DE, P = {p}": replace(private, regions=p) for p in (2, 4)},
        },
    }


def _non_private(private: DPFTSDE, regions: tuple[int, ...]) -> Cells:
    """The comparators without privacy, otherwise alike."""
    cells: Cells = {PLAIN: _plain(private), "FTS": _like(FTS, private)}
    return cells | {f"FTS-DE, P = {p}": replace(_like(FTSDE, private), regions=p) for p in regions}


def _equal(private: DPFTSDE) -> Cells:
    """The paper's noise, and the noise that costs the paper's ε."""
    scaled = replace(private, noise_scaled_to=Sensitivity.JOINT)
    everyone = replace(scaled, rate=1.0)
    return {
        PLAIN: _plain(private),
        "DP-FTS at the paper's noise": _like(DPFTS, private),
        "DP-FTS, least noise for that ε": _like(DPFTS, private).calibrated(),
        PAPER: private,
        SAME: private.calibrated(),
        TRUE: scaled.calibrated(),
        ALL: everyone.calibrated(private.published_loss),
        "FTS-DE, no privacy": _like(FTSDE, private),
    }


def _plain(private: DPFTSDE) -> PlainTS:
    return replace(_like(PlainTS, private), reliance=Reliance.NEVER)


def _like(kind: type[_Kind], private: DPFTSDE) -> _Kind:
    """An algorithm of that kind with the same fields, where it has them."""
    shared = {field.name: getattr(private, field.name) for field in fields(kind)}
    if issubclass(kind, FTS | DPFTS):
        shared["regions"] = 1
    return kind(**shared)


def comparisons(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """Pairs of labels, of which the first is expected to have the smaller regret."""
    if experiment is Experiment.FIGURE_2:
        return (("FTS", PLAIN), ("FTS-DE, P = 4", "FTS"), ("DP-FTS-DE, P = 2", "DP-FTS, P = 1"))
    if experiment is Experiment.FIGURE_3:
        return (("z = 1", PLAIN), ("FTS-DE, P = 4", "FTS"), ("z = 1", "z = 4"))
    return (
        (SAME, PAPER),
        (TRUE, PAPER),
        (ALL, PAPER),
        (PAPER, PLAIN),
        (SAME, PLAIN),
        (PAPER, "DP-FTS at the paper's noise"),
        (SAME, "DP-FTS, least noise for that ε"),
    )


Regrets: TypeAlias = dict[Algorithm, Array]
"""Simple regret of each trial, mean over the agents, (trials, T + 1)."""

_FUNCTION, _AGENTS, _NOISE = 0, 1, 2


def problem_of(task: Task, agents: int, *, workers: int = 1) -> FederatedProblem | None:
    """The fixed objectives of a task, every value computed; None where each trial has its own."""
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
    """
    validate.integer_at_least(2, trials=trials)
    _, entropy, workers = trial_numbers(trials, seed, workers)
    distinct = list(dict.fromkeys(algorithms))
    jobs = ((distinct, problem, entropy, trial) for trial in range(trials))
    columns = zip(*in_parallel(_trial, jobs, workers), strict=True)
    return {each: np.array(runs) for each, runs in zip(distinct, columns, strict=True)}


def document(
    title: str, shown: Mapping[str, Cells], regrets: Regrets, pairs: Sequence[tuple[str, str]]
) -> str:
    """The tables in Markdown: regret after some rounds, its mean, and paired differences."""
    trials, columns = next(iter(regrets.values())).shape
    T = columns - 1
    marks = sorted({max(1, T // 8), max(1, T // 4), max(1, T // 2), T})
    heads = ["run", "ε by moments", "ε certified", *(f"t = {t}" for t in marks)]
    heads.append(f"mean of t = 1…{T}")
    lines = [f"# {title}", "", f"Simple regret ± standard error of {trials} trials.", ""]
    for panel, cells in shown.items():
        rows = [
            (label, *_stated_and_certified_epsilon(each), *_numbers(regrets[each], marks))
            for label, each in cells.items()
        ]
        lines += [f"## {panel}", "", table(heads, rows), ""]
    # By how much the second has more regret, on the same functions and seeds.
    known = {label: each for panel in shown.values() for label, each in panel.items()}
    rows = [
        (f"{one} against {other}", *_numbers(regrets[known[other]] - regrets[known[one]], [T]))
        for one, other in pairs
        if one in known and other in known
    ]
    heads = ["second less first", f"at t = {T}", f"mean of t = 1…{T}"]
    return "\n".join([*lines, "## Paired differences", "", table(heads, rows), ""])


def _stated_and_certified_epsilon(algorithm: Algorithm) -> tuple[str, str]:
    """ε as papers state it for that z, and as it is certified, both at δ = N^-1.1."""
    if not isinstance(algorithm, DPFTSDE):
        return "–", "–"
    proved = compose(algorithm.plan()).epsilon(algorithm.target_delta).upper
    return f"{algorithm.published_loss:.2f}", f"{proved:.2f}"


def _numbers(values: Array, marks: Sequence[int]) -> list[str]:
    """Means with standard errors after these rounds, and of the mean over all rounds."""
    shown = [values[:, t] for t in marks] + [values[:, 1:].mean(axis=1)]
    return ["{:.4f} ± {:.4f}".format(*mean_and_error(each)) for each in shown]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "Figures 2 and 3 of Dai, Low & Jaillet 2021."
    parser = options("private_bo.federated.experiments.figures", about, trials=20)
    parser.add_argument("experiment", choices=[str(each) for each in Experiment])
    parser.add_argument("--task", choices=[str(each) for each in Task])
    parser.add_argument("--rounds", type=int, help="T; the paper's by default")
    return command(_run, parser.parse_args(arguments))


def _run(given: argparse.Namespace) -> str:
    experiment = Experiment(given.experiment)
    usual = Task.LANDMINES if experiment is Experiment.FIGURE_3 else Task.SYNTHETIC
    task = Task(given.task or usual)
    shown = panels(experiment, task, given.rounds)
    algorithms = [each for cells in shown.values() for each in cells.values()]
    problem = problem_of(task, algorithms[0].agents, workers=given.workers)
    regrets = regrets_of(
        algorithms, problem, trials=given.trials, seed=given.seed, workers=given.workers
    )
    text = document(f"{experiment}, {task}", shown, regrets, comparisons(experiment))
    if given.output is not None:
        record = {
            panel: {label: regrets[each].tolist() for label, each in cells.items()}
            for panel, cells in shown.items()
        }
        save(given.output, f"federated_{experiment}_{task}", text, record)
    return text + "\n"


if __name__ == "__main__":
    sys.exit(main())
