"""Features of landmarks against their kernel, and beliefs against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpaudit.base.errors import InputError, UnsupportedError
from private_bo.gp import ARD, Matern, SquaredExponential
from private_bo.own import BoxSpace, LandmarkFeatures, LocalStudy, PointSpace, ReleasedAnswer
from private_bo.own.server import Belief

BOX = BoxSpace((0.0, 10.0), (1.0, 30.0))
RNG = np.random.default_rng(0)
X = np.array(BOX.lower) + RNG.random((60, 2)) * [1.0, 20.0]


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential(0.3),
        ARD(SquaredExponential(1.0), (0.3, 0.9)),
        ARD(Matern(1.0, 2.5), (2, 3)),
    ],
)
def test_products_are_the_kernel_in_units_of_the_box(kernel):
    features = LandmarkFeatures(BOX, kernel, features=120, constant=0.25)
    exact = 0.25 + 0.75 * kernel(BOX.unit(X), BOX.unit(X))
    assert features(X) @ features(X).T == pytest.approx(exact, abs=2e-4)


@pytest.mark.parametrize("space", [BOX, PointSpace(X), PointSpace(X[:1])])
def test_norms_are_at_most_one_whatever_the_features(space):
    for count in (1, 2, 40):
        features = LandmarkFeatures(space, SquaredExponential(0.1), features=count)
        assert features.size <= count
        assert features(X).shape == (60, features.size)
        assert np.linalg.norm(features(X), axis=1).max() <= 1 + 1e-12


def test_the_features_know_no_error_and_say_so():
    with pytest.raises(UnsupportedError, match="no proven error"):
        _ = LandmarkFeatures(BOX).uniform_error


def test_a_belief_is_the_dense_posterior_in_any_order():
    phi, values = RNG.normal(size=(9, 4)), RNG.normal(size=9)
    noise = RNG.uniform(0.1, 2.0, 9)
    covariance = 0.7**2 * phi @ phi.T + np.diag(noise)
    mean = 0.7**2 * phi.T @ np.linalg.solve(covariance, values)
    evidence = multivariate_normal(cov=covariance).logpdf(values)
    spread = 0.7**2 * np.eye(4) - 0.7**4 * phi.T @ np.linalg.solve(covariance, phi)
    for order in (range(9), reversed(range(9))):
        belief = Belief(4, 0.7)
        for i in order:
            belief.observe(phi[i], values[i], noise[i])
        assert belief.mean == pytest.approx(mean, abs=1e-10)
        assert belief.evidence == pytest.approx(evidence, abs=1e-9)
    assert belief.draw(RNG, 0.0) == pytest.approx(mean)
    drawn = np.array([belief.draw(RNG, 2.0) for _ in range(4000)])
    # A fourth moment of 3: entries of the sample covariance are off by 0.1 in 1e-9 of the cases.
    assert np.cov(drawn.T) / 4 == pytest.approx(spread, abs=0.1)


def server(users=40, seed=0, **fields):
    study = LocalStudy(users=users, **({"space": BoxSpace()} | fields))
    return study.server(np.random.default_rng(seed))


def wave(x):
    return 0.5 + 0.4 * np.sin(6 * x[0])


def test_answers_in_any_order_lead_to_the_same_belief():
    one, other = server(), server()
    questions = [one.ask() for _ in range(12)], [other.ask() for _ in range(12)]
    told = [
        ReleasedAnswer(n, float(wave(q.point)), 0.01) for n, q in enumerate(questions[0]) if n != 5
    ]
    for each in told:
        one.tell(each)
    for each in reversed(told):
        other.tell(each)
    at = np.random.default_rng(1).random((50, 2))
    assert one.mean(at) == pytest.approx(other.mean(at), abs=1e-9)
    assert len(one.trace) == 11


def test_the_mean_is_in_units_of_the_answers_and_the_best_is_where_it_is_largest():
    asked = server(answers=(-10.0, 30.0), users=60)
    for _ in range(60):
        question = asked.ask()
        asked.tell(ReleasedAnswer(question.group, 40 * wave(question.point) - 10, 1e-4))
    at = np.random.default_rng(1).random((200, 2))
    best = asked.best()
    assert asked.mean(best[None])[0] >= asked.mean(at).max() - 1e-6
    assert wave(best) == pytest.approx(0.9, abs=0.01)
    assert asked.mean(best[None])[0] == pytest.approx(26, abs=1)


def test_the_units_of_answers_change_nothing():
    at, beliefs = np.random.default_rng(1).random((20, 2)), []
    for low, high in ((0.0, 1.0), (-10.0, 30.0)):
        asked = server(answers=(low, high))
        for number in range(8):
            value = low + (high - low) * float(wave(asked.ask().point))
            asked.tell(ReleasedAnswer(number, value, 0.3 * (high - low) ** 2))
        beliefs.append((asked.mean(at) - low) / (high - low))
    assert beliefs[0] == pytest.approx(beliefs[1], abs=1e-5)


def test_releases_choose_among_kernels_and_public_data_are_heard():
    kernels = (SquaredExponential(5.0), SquaredExponential(0.15))
    asked = server(kernels=kernels, space=BoxSpace((0.0,), (1.0,)))
    points = np.linspace(0, 1, 40)[:, None]
    values = 0.5 + 0.4 * np.sin(14 * points[:, 0])
    asked.inform(points, values, 0.02)
    assert asked.mean(points) == pytest.approx(values, abs=0.05)
    flat = server(kernels=kernels[:1], space=BoxSpace((0.0,), (1.0,)))
    flat.inform(points, values, 0.02)
    assert np.abs(flat.mean(points) - values).max() > 0.2
    with pytest.raises(InputError, match="values has 1 entries; it must have 40"):
        asked.inform(points, np.zeros(1), 0.02)


def test_what_is_not_allowed_is_never_asked():
    points = np.random.default_rng(0).random((30, 2))
    asked = server(space=PointSpace(points, allowed=lambda x: x[0] < 0.5), users=20)
    assert max(asked.ask().point[0] for _ in range(20)) < 0.5


def test_wrong_use_is_one_sentence():
    asked = server(users=2)
    for wrong, words in (
        (ReleasedAnswer(0, 0.5, 1.0), "group is 0, which was not asked"),
        (0.5, "released is a float; it must be a Released"),
    ):
        with pytest.raises(InputError, match=words):
            asked.tell(wrong)
    asked.ask(), asked.ask()
    with pytest.raises(InputError, match="users is 2, and all have been asked"):
        asked.ask()
    asked.tell(ReleasedAnswer(1, 0.5, 1.0))
    with pytest.raises(InputError, match="group is 1, whose result was given already"):
        asked.tell(ReleasedAnswer(1, 0.5, 1.0))
    with pytest.raises(InputError, match="value is nan"):
        ReleasedAnswer(0, float("nan"), 1.0)
