"""Regret on the panels of Figure 2 of Zhou & Tan 2021: by trust model, and of learners.

Run ``python -m tests.benchmarks.panels`` (with ``DPAUDIT_DATA``; otherwise panels a, d and g only):
the problems of panels a to f, and house prices (g), which no setting was chosen on, with 1000 users
at the ε of the panel, or at 1 where the paper has no privacy: f is then c. The studies of all trust
models have the prior of the lookahead, and in each trial the same problem; δ is 1e-5 for shuffle
and joint, and 0 otherwise. The floor is the joint study with noise that hides nothing, one user to
a question. ``--epsilon`` takes another ε for all panels. A user who is asked twice answers afresh.
``--learners`` puts the paper's algorithms beside the lookahead instead: at the documented scales of
the paper's panels, and without privacy where the paper has none.

Regret is that of all users, in per cent of that of uniform play, with its standard error.
``--record FILE.json`` keeps every trial.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.paper_rows.trials.local import (
    PANELS,
    Algorithm,
    Panel,
    missing_data,
    run_trial,
    seed_of,
    seeds,
    trial_of,
    tuned,
)
from dpaudit import Ledger
from private_bo import study
from private_bo.experiments import in_parallel, mean_and_error, row
from private_bo.gp import Kernel
from private_bo.local import LDPOneBitGP, LookaheadGP
from private_bo.own import PointSpace
from private_bo.problems import BanditProblem

Array = NDArray[np.float64]
UNSEEN = Panel("g", "taipei", 1.0, "house prices")
FLOOR = "no privacy"
TRUSTS = ("local", "shuffle", "joint", "local-joint")
STUDIES = (FLOOR, *TRUSTS)
LOOKAHEAD = "lookahead"
LEARNERS = (LOOKAHEAD, *(each.value for each in Algorithm))
_STUDENT = 4.0
"""Public bound of a reward with Student's noise, which has none: what is beyond is clipped."""


@dataclass(frozen=True, eq=False)
class TableOfPoints(Kernel):
    """A covariance of n numbered points, which a space scales to [0, 1]."""

    table: Array = field(repr=False)

    def __call__(self, X: Array, Y: Array) -> Array:
        left, right = (np.rint(Z[:, 0] * (len(self.table) - 1)).astype(np.intp) for Z in (X, Y))
        return np.asarray(self.table[np.ix_(left, right)])

    def diagonal(self, X: Array) -> Array:
        return np.asarray(self(X, X).diagonal())


def answers_of(panel: Panel, problem: BanditProblem) -> tuple[float, float]:
    """The public range of a reward; readings and prices are never negative."""
    bound = problem.B + problem.R if np.isfinite(problem.R) else _STUDENT
    return (0.0 if panel.source in ("sensors", "stocks") else -bound), bound


def by_learner(panel: Panel, learner: str, users: int, seed: np.random.SeedSequence) -> float:
    """Regret of one trial, as a share of that of uniform play."""
    if learner != LOOKAHEAD:
        algorithm = Algorithm(learner)
        return run_trial(panel, algorithm, tuned(algorithm, panel), users, seed).relative
    of_problem, rng, noise = seeds(seed)
    problem = panel.problem(of_problem)
    if panel.epsilon is None:
        return trial_of(problem, LookaheadGP(steps=users).run(problem, rng)).relative
    low, high = answers_of(panel, problem)
    subject = LDPOneBitGP(epsilon=panel.epsilon, lower=low, upper=high, steps=users)
    with Ledger(subject.plan(), rng=noise) as ledger:
        return trial_of(problem, subject.run(problem, ledger, rng)).relative


def by_trust(
    panel: Panel,
    trust: str,
    users: int,
    seed: np.random.SeedSequence,
    epsilon: float | None = None,
) -> float:
    """Regret of one trial, as a share of that of uniform play; the problem is that of the panel."""
    of_problem, rng, noise = seeds(seed)
    problem = panel.problem(of_problem)
    asked: list[int] = []
    crowd = rng.spawn(1)[0]

    def reward(point: Array, user: int) -> float:
        asked.append(int(point[0]))
        return float(problem.respond(asked[-1], crowd).value)

    size = problem.domain.size
    covariance = problem.domain.kernel_matrix(problem.kernel)
    shape = covariance / covariance.diagonal().max()
    model: dict[str, Any] = {"trust": trust, "epsilon": epsilon or panel.epsilon or 1.0}
    if trust == FLOOR:
        model = {"trust": "joint", "epsilon": 1e4, "group": 1}
    searched = study(
        reward,
        PointSpace(np.arange(size, dtype=np.float64)[:, None]),
        users=users,
        answers=answers_of(panel, problem),
        kernels=(TableOfPoints((shape + np.eye(size)) / 2),),
        features=size + 1,
        constant=1 / 3,
        **model,
    )
    with Ledger(searched.plan(), rng=noise) as ledger:
        searched.run(list(range(users)), ledger, rng)
    uniform = users * float(problem.f.max() - problem.f.mean())
    return float(problem.regret(asked)[-1]) / uniform


def shown(regrets: Array) -> str:
    """Mean and standard error, in per cent."""
    return "{:.0f} ± {:.0f}".format(*mean_and_error(100 * regrets))


def ratio(regrets: Array, to: Array) -> str:
    """Of the means, with its standard error, paired by trial (delta method)."""
    found = regrets.mean() / to.mean()
    _, error = mean_and_error(regrets - found * to)
    return f"{found:.2f} ± {error / to.mean():.2f}"


def line(panel: Panel, found: Mapping[str, Array], *, trusts: bool) -> str:
    """A row of the table; by trust model with the ratios to local trust."""
    epsilon = panel.epsilon or (1.0 if trusts else None)
    about = f"{panel.letter}, {panel.title}", "–" if epsilon is None else f"{epsilon:g}"
    cells = [*about, *map(shown, found.values())]
    if trusts:
        cells += [ratio(found[trust], found["local"]) for trust in TRUSTS[1:]]
    return row(*cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", action="store_true", help="not trust models, but learners")
    parser.add_argument("--panels", help="letters; by trust model without f, which is c at ε = 1")
    parser.add_argument("--epsilon", type=float, help="by trust model, in place of the panel's")
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--record", type=Path, help="JSON file of all shares")
    given = parser.parse_args()
    run: Callable[..., float] = (
        by_learner if given.learners else partial(by_trust, epsilon=given.epsilon)
    )
    methods = LEARNERS if given.learners else STUDIES
    letters = given.panels or ("abcdefg" if given.learners else "abcdeg")
    ratios = () if given.learners else [f"{trust} / local" for trust in TRUSTS[1:]]
    record = {}
    print(row("panel", "ε", *methods, *ratios))
    print("|---" * (2 + len(methods) + len(ratios)) + "|")
    for panel in (*PANELS, UNSEEN):
        if panel.letter not in letters or missing_data(panel) is not None:
            continue
        each = [seed_of(panel, trial, given.seed) for trial in range(given.trials)]
        found = {
            method: np.array(
                in_parallel(run, ((panel, method, given.users, s) for s in each), given.workers)
            )
            for method in methods
        }
        record[panel.letter] = {name: shares.round(4).tolist() for name, shares in found.items()}
        shown_as = (
            panel if given.learners else replace(panel, epsilon=given.epsilon or panel.epsilon)
        )
        print(line(shown_as, found, trusts=not given.learners), flush=True)
        if given.record:
            given.record.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
