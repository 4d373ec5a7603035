"""Regret of private searches by trust model and ε, beside published algorithms and no privacy.

Run ``python -m tests.benchmarks.trust_models``: functions of two variables as in
:mod:`tests.benchmarks.own_problems`, of seeds from 2000, which nothing was chosen on; 500 users,
whose answers have a normal error of 0.1. Regret is that of all users together, in per cent of that
of uniform random play, with its standard error over functions. ``--figure FILE.svg`` draws what
``--record FILE.json`` keeps.

The published algorithms ask about 441 points of a grid and know a kernel and the bounds of the
answers; the widths of the local ones are those that the panels of Figure 2 were tuned to, as those
of their theorems learn nothing in so few rounds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

from audits.paper_rows.trials.local import TUNED, Algorithm
from dpaudit import Ledger
from private_bo.gp import ARD, Box, EigenFeatures, FiniteDomain, SquaredExponential
from private_bo.joint import JointGPUCB
from private_bo.joint.subject import DecisionProblem
from private_bo.local import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB
from private_bo.problems.bandit import BanditProblem, Response, RewardSource, fresh_user

from .own_problems import ERROR, Function, outsourced, played

Array = NDArray[np.float64]
FIRST, USERS = 2000, 500
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
SIDE = 21
ANSWERS = 3 * ERROR
"""The error is clipped there, as the published algorithms need a bound of it."""


@dataclass(frozen=True)
class _Users(RewardSource):
    means: Array
    errors: Array
    turns: list[int]

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        error = float(self.errors[len(self.turns) % self.errors.size])
        self.turns.append(index)
        return Response(fresh_user(rng), float(self.means[index]) + error)

    def reset(self) -> None:
        self.turns.clear()


def problem(seed: int) -> BanditProblem:
    """The function on a grid, with the answers of the same users as in the other searches."""
    line = np.linspace(0, 1, SIDE)
    points = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)
    means = Function((seed,), bumps=seed % 2 == 1)(points)
    drawn = np.random.default_rng([1, seed]).normal(scale=ERROR, size=USERS)
    return BanditProblem(
        name="own",
        domain=FiniteDomain(points),
        kernel=ARD(SquaredExponential(1.0), (0.25, 0.25)),
        f=means,
        B=1.0,
        R=ANSWERS,
        v=1.0 + ERROR**2,
        c=ERROR**2,
        bounds_are_public=True,
        rewards=_Users(means, np.clip(drawn, -ANSWERS, ANSWERS), []),
    )


def regret(of: BanditProblem, values: Mapping[str, object]) -> float:
    """Of a run on the grid, as a share of that of uniform play."""
    total = float(np.asarray(values["cumulative regret"])[-1])
    return total / USERS / float(of.f.max() - of.f.mean())


def without_privacy(seed: int, epsilon: float) -> float:
    """The floor: the joint search, one user for each question, with noise that hides nothing."""
    return played(seed, USERS, trust="joint", epsilon=1e4, group=1)


def joint_published(seed: int, epsilon: float) -> float:
    """Algorithm 1 of Dubey (2021), with the least noise that its claim needs; δ = 1e-5."""
    line = np.linspace(-0.5, 0.5, SIDE)
    arms = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)
    means = Function((seed,), bumps=seed % 2 == 1)(arms + 0.5)
    errors = np.random.default_rng([1, seed]).normal(scale=ERROR, size=USERS)
    users = DecisionProblem(
        name="own",
        arms=np.broadcast_to(arms, (USERS, *arms.shape)),
        table=np.broadcast_to(means, (USERS, means.size)),
        noise=np.clip(errors, -ANSWERS, ANSWERS),
        bernoulli=False,
    )
    subject = JointGPUCB(
        epsilon=epsilon,
        delta=1e-5,
        steps=USERS,
        reward_range=(-ANSWERS, 1.0 + ANSWERS),
        feature_map=EigenFeatures(SquaredExponential(0.25), Box((-0.5, 0.5), 2), 40),
        noise_variance=ERROR**2,
        prior_variance=0.05,
    )
    with Ledger(subject.plan(), rng=np.random.default_rng([2, seed])) as ledger:
        result = subject.run(users, ledger, np.random.default_rng([3, seed]))
    total = float(np.asarray(result.for_owner.series["cumulative regret"])[-1])
    return total / users.uniform_regret()


def published(algorithm: Algorithm, seed: int, epsilon: float) -> float:
    """A local algorithm of Zhou and Tan (2021)."""
    kinds = {
        Algorithm.ATA: LDPATAGPUCB,
        Algorithm.TGP: LDPTGPUCB,
        Algorithm.MOMA: LDPMoMAGPUCB,
    }
    of, setting = problem(seed), TUNED[algorithm, True]
    fields: dict[str, object] = {"width_multiplier": setting.width_multiplier}
    if algorithm is Algorithm.MOMA:
        fields["plays_per_epoch"] = setting.plays_per_epoch
    subject = kinds[algorithm](
        epsilon=epsilon, steps=USERS, reward_bound=of.B, noise_bound=of.R, **fields
    )
    with Ledger(subject.plan(), rng=np.random.default_rng([2, seed])) as ledger:
        result = subject.run(of, ledger, np.random.default_rng([3, seed]))
    return regret(of, result.for_owner.series)


def own(trust: str) -> Callable[[int, float], float]:
    """A search of this package under that trust model."""
    return lambda seed, epsilon: played(seed, USERS, trust=trust, epsilon=epsilon)


METHODS: dict[str, Callable[[int, float], float]] = {
    "no privacy": without_privacy,
    "joint (a trusted server)": own("joint"),
    "shuffle (a shuffler, who hides who answers)": own("shuffle"),
    "local (nobody)": own("local"),
    "local-joint (nobody; options stay private)": own("local-joint"),
    "outsourced (a curator, who hides the rows)": lambda seed, epsilon: outsourced(
        seed, USERS, epsilon
    ),
    "joint, JointGPUCB (published)": joint_published,
    "local, LDP-ATA-GP-UCB (published)": lambda seed, e: published(Algorithm.ATA, seed, e),
    "local, LDP-TGP-UCB (published)": lambda seed, e: published(Algorithm.TGP, seed, e),
    "local, LDP-MoMA-GP-UCB (published)": lambda seed, e: published(Algorithm.MOMA, seed, e),
}


_LOOKS = {
    "no privacy": ("0.3", ":", ""),
    "joint (a trusted server)": ("tab:blue", "-", "o"),
    "shuffle (a shuffler, who hides who answers)": ("tab:orange", "-", "o"),
    "local (nobody)": ("tab:green", "-", "o"),
    "local-joint (nobody; options stay private)": ("tab:red", "-", "o"),
    "outsourced (a curator, who hides the rows)": ("tab:purple", "-", "o"),
    "joint, JointGPUCB (published)": ("tab:blue", "--", "s"),
    "local, LDP-ATA-GP-UCB (published)": ("tab:green", "--", "s"),
    "local, LDP-TGP-UCB (published)": ("tab:green", "--", "^"),
    "local, LDP-MoMA-GP-UCB (published)": ("tab:green", "--", "v"),
}
"""A colour for each trust model; published algorithms are dashed."""


def measure(functions: int) -> dict[str, dict[str, list[float]]]:
    """Every method at every ε; the rows are printed as they are known."""
    found: dict[str, dict[str, list[float]]] = {}
    print(f"| who is trusted | {' | '.join(f'ε = {e:g}' for e in EPSILONS)} |")
    print("|---|" + "---|" * len(EPSILONS))
    for name, method in METHODS.items():
        cells = found[name] = {}
        for epsilon in EPSILONS:
            if method is without_privacy and cells:
                cells[f"{epsilon:g}"] = next(iter(cells.values()))
                continue
            cells[f"{epsilon:g}"] = [method(FIRST + n, epsilon) for n in range(functions)]
        print(f"| {name} | {' | '.join(map(shown, cells.values()))} |", flush=True)
    return found


def shown(shares: list[float]) -> str:
    """Mean and standard error, in per cent."""
    error = np.std(shares, ddof=1) / len(shares) ** 0.5
    return f"{100 * np.mean(shares):.0f} ± {100 * error:.0f}"


def draw(found: Mapping[str, Mapping[str, list[float]]], path: Path) -> None:
    """Regret against ε, a line for each method; published ones are dashed."""
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "regret", "font.size": 10, "svg.fonttype": "path"})
    figure, axes = plt.subplots(figsize=(7.2, 5.2), layout="constrained")
    for name, cells in found.items():
        means = [100 * np.mean(each) for each in cells.values()]
        errors = [100 * np.std(each, ddof=1) / len(each) ** 0.5 for each in cells.values()]
        color, style, marker = _LOOKS[name]
        axes.errorbar(
            [float(e) for e in cells],
            means,
            errors,
            label=name,
            color=color,
            linestyle=style,
            marker=marker,
            markersize=4,
            linewidth=1.2 if style == "--" else 2,
            elinewidth=1,
            capsize=2,
        )
    axes.axhline(100, color="0.6", linewidth=0.8)
    axes.text(10, 101, "uniform random play", color="0.35", fontsize=9, ha="right")
    axes.set(xscale="log", xlabel="ε of one user", ylabel="regret, % of random play", ylim=(0, 115))
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS], minor=False)
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, default=24)
    parser.add_argument("--record", type=Path, help="JSON file of all shares")
    parser.add_argument("--figure", type=Path, help="SVG file of a record")
    given = parser.parse_args()
    if given.figure and given.record and given.record.exists():
        draw(json.loads(given.record.read_text()), given.figure)
        return
    start = time.process_time()
    found = measure(given.functions)
    print(f"{time.process_time() - start:.0f} s of processor time")
    if given.record:
        rounded = {
            name: {e: [round(x, 4) for x in shares] for e, shares in cells.items()}
            for name, cells in found.items()
        }
        given.record.write_text(json.dumps(rounded, ensure_ascii=False, indent=1) + "\n")
    if given.figure:
        draw(found, given.figure)


if __name__ == "__main__":
    main()
