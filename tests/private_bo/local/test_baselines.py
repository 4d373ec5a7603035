"""The non-private comparators."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.gp import FiniteDomain, Matern, SquaredExponential
from private_bo.local import ATAGPUCB, GPUCB, TGPUCB, MoMAGPUCB
from private_bo.problems import (
    BanditProblem,
    Response,
    RewardSource,
    StudentNoise,
    UniformNoise,
    synthetic,
)

BASELINES = (GPUCB, TGPUCB, ATAGPUCB, MoMAGPUCB)


def make(kind: type, **settings: object):
    return kind(**({"plays_per_epoch": 3} if kind is MoMAGPUCB else {}), **settings)


def problem(noise, seed: int = 0) -> BanditProblem:
    return synthetic(SquaredExponential(0.2), noise, np.random.default_rng(seed))


def refitted_gp_ucb(data: BanditProblem, steps: int, rng: np.random.Generator) -> list[int]:
    """GP-UCB with the posterior solved afresh in every round."""
    K = data.domain.kernel_matrix(data.kernel)
    history: list[int] = []
    y: list[float] = []
    mean, deviation, gain = np.zeros(len(K)), np.ones(len(K)), 0.0
    for t in range(1, steps + 1):
        beta = data.B + data.R * math.sqrt(2 * (gain + math.log(10)))
        x = int(np.argmax(mean + beta * deviation))
        history.append(x)
        y.append(data.respond(x, rng).value)
        gram = K[np.ix_(history, history)]
        factor = np.linalg.cholesky(gram + np.eye(t))
        half = np.linalg.solve(factor, np.column_stack([K[history], np.array(y)]))
        mean = half[:, :-1].T @ half[:, -1]
        deviation = np.sqrt(np.maximum(1 - np.sum(half[:, :-1] ** 2, axis=0), 0))
        gain = float(np.log(np.diag(factor)).sum())
    return history


def test_gp_ucb_chooses_like_a_cholesky_refit() -> None:
    data = problem(UniformNoise())
    result = GPUCB(steps=300).run(data, np.random.default_rng(5))
    literal = refitted_gp_ucb(data, 300, np.random.default_rng(5))
    assert result.for_owner.series["cumulative regret"] == data.regret(literal).tolist()


@pytest.mark.parametrize("kind", BASELINES)
@pytest.mark.parametrize("noise", [UniformNoise(), StudentNoise(3.0)], ids=["uniform", "t"])
def test_scaled_down_widths_beat_uniform_play(kind: type, noise) -> None:
    relative = []
    for seed in range(5):
        data = problem(noise, seed)
        algorithm = make(kind, steps=600, width_multiplier=0.05)
        regret = algorithm.run(data, np.random.default_rng(seed)).for_owner.summary["final regret"]
        relative.append(regret / (600 * (data.f.max() - data.f.mean())))
    assert np.mean(relative) < 0.6


@pytest.mark.parametrize("kind", BASELINES)
def test_same_seed_same_run_and_units_do_not_matter(kind: type) -> None:
    """A problem in other units, with its bounds, is the same problem."""
    one = problem(UniformNoise())
    factor = 64.0  # a power of two, so that every product is exact

    class Scaled(RewardSource):
        def respond(self, index: int, rng: np.random.Generator) -> Response:
            answer = one.rewards.respond(index, rng)
            return Response(answer.user, factor * answer.value)

    other = BanditProblem(
        "scaled", one.domain, one.kernel, factor * one.f,
        factor * one.B, factor * one.R, factor**2 * one.v, factor**2 * one.c, True,
        rewards=Scaled(),
    )  # fmt: skip
    runs = [
        np.array(make(kind, steps=90).run(data, np.random.default_rng(3)).for_owner.series[name])
        for data in (one, one, other)
        for name in ("cumulative regret",)
    ]
    assert (runs[0] == runs[1]).all()
    assert runs[2] == pytest.approx(factor * runs[0])


@pytest.mark.parametrize("kind", BASELINES)
def test_rewards_must_be_finite_numbers(kind: type) -> None:
    for value in (math.nan, math.inf, np.zeros(2), "one"):

        class Wrong(RewardSource):
            def respond(self, index: int, rng: np.random.Generator, value=value) -> Response:
                return Response("ann", value)

        data = BanditProblem(
            "wrong", FiniteDomain.grid(2), Matern(1.0, 2.5), np.zeros(2), 1, 1, 1, 1, True,
            rewards=Wrong(),
        )  # fmt: skip
        with pytest.raises(InputError, match="reward of 'ann' is"):
            make(kind).run(data, np.random.default_rng(0))


BAD = [
    ("steps", 0),
    ("steps", True),
    ("confidence", 1.0),
    ("regularisation", -1.0),
    ("width_multiplier", math.nan),
]


@pytest.mark.parametrize("kind", BASELINES)
@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_fields_are_one_sentence(kind: type, name: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"^{name} is "):
        make(kind, **{name: value})


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"steps": 200}, "steps"),
        ({"plays_per_epoch": 0}, "plays_per_epoch"),
        ({"moment": 2.0}, "moment"),
        ({"dictionary_accuracy": 0.0}, "dictionary_accuracy"),
    ],
)
def test_bad_epochs_are_one_sentence(settings: dict[str, object], name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name} is "):
        MoMAGPUCB(**settings)


def test_data_must_be_a_problem() -> None:
    with pytest.raises(InputError, match="problem is a dict"):
        GPUCB().run({}, np.random.default_rng(0))  # type: ignore[arg-type]


def test_theorem_plays_leave_three_epochs() -> None:
    result = MoMAGPUCB().run(problem(StudentNoise()), np.random.default_rng(0))
    assert (result.summary["plays per epoch"], result.summary["responses"]) == (279, 837)
