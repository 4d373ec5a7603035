"""The joint algorithm: sensitivities, calibration, the run, and wrong input."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import InputError, Ledger, certify, guarantee
from dpaudit.accounting.closed_forms.gaussian import GaussianComposition
from dpaudit.certificate import SubjectRecord
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import ContinualNoise, Estimate, JointGPUCB, Noise, OutOfRange
from private_bo.joint.experiments.costs import lemma_2_cost, lemma_5_cost
from private_bo.joint.experiments.trials import curves_of, nonprivate_regret
from private_bo.joint.noise import lemma_2_sigma, lemma_3_shift, noise_norm
from private_bo.joint.parties import RewardGate
from private_bo.joint.problems import BENCHMARKS, TabledProblem, benchmark, bump
from private_bo.joint.statistics import FREE_WEIGHT, CentredStatistics, PaperStatistics, Sums

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)


def unit(rng: np.random.Generator, size: int) -> np.ndarray:
    phi = rng.normal(size=size)
    return phi / np.linalg.norm(phi)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    weight=st.floats(0.0, 2.0),
    centred=st.booleans(),
    angle=st.floats(0, math.pi),
    lengths=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    rewards=st.tuples(st.floats(-1, 3), st.floats(-1, 3)),
)
def test_no_replacement_moves_the_statistics_farther(weight, centred, angle, lengths, rewards):
    statistics = CentredStatistics(2, (-1.0, 3.0), matrix_weight=weight, centred=centred)
    x = lengths[0] * np.array([1.0, 0.0])
    y = lengths[1] * np.array([math.cos(angle), math.sin(angle)])
    moved = statistics.encode(x, rewards[0]) - statistics.encode(y, rewards[1])
    assert np.linalg.norm(moved) <= statistics.sensitivity + 1e-12


@pytest.mark.parametrize("weight", [0.0, 0.2, FREE_WEIGHT, 0.6, 1.0])
@pytest.mark.parametrize("centred", [True, False])
def test_sensitivities_are_reached(weight: float, centred: bool) -> None:
    statistics = CentredStatistics(2, matrix_weight=weight, centred=centred)
    widest = 0.0
    for angle in np.linspace(0, math.pi, 2001):
        y = np.array([math.cos(angle), math.sin(angle)])
        for reward in (0.0, 1.0):
            moved = statistics.encode(np.array([1.0, 0.0]), 1.0) - statistics.encode(y, reward)
            widest = max(widest, float(np.linalg.norm(moved)))
    assert widest == pytest.approx(statistics.sensitivity, rel=1e-5)


def test_the_matrix_is_free_up_to_its_weight() -> None:
    assert CentredStatistics(3, matrix_weight=0.0).sensitivity == pytest.approx(1.0, rel=1e-14)
    assert CentredStatistics(3).sensitivity == pytest.approx(1.0, rel=1e-14)
    assert CentredStatistics(3, matrix_weight=1.02 * FREE_WEIGHT).sensitivity > 1 + 1e-5


def test_a_nonnegative_kernel_saves_a_quarter_without_centring() -> None:
    def squared(floor: float) -> float:
        plain = CentredStatistics(3, matrix_weight=2**-0.5, centred=False, least_product=floor)
        return plain.sensitivity**2

    assert squared(0.0) == pytest.approx(3.0)
    assert squared(-1.0) == pytest.approx(4.0)


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_encoded_statistics_are_read_back(weight: float) -> None:
    rng = np.random.default_rng(0)
    statistics = CentredStatistics(4, matrix_weight=weight)
    phi = unit(rng, 4)
    sums = statistics.decode(statistics.encode(phi, 1.0), 1, 2.0)
    np.testing.assert_allclose(sums.vector, 0.5 * phi)
    assert sums.vector_noise == 2.0
    if weight:
        np.testing.assert_allclose(sums.matrix, np.outer(phi, phi))
        assert sums.matrix_noise == pytest.approx(2.0 / weight / math.sqrt(2))


def test_the_declared_noise_of_the_sums_is_their_noise() -> None:
    algorithm = JointGPUCB(steps=6, feature_map=SMALL)
    sums = []
    for seed in range(400):
        with Ledger(algorithm.plan(), rng=np.random.default_rng(seed)) as ledger:
            _, privatiser = algorithm.parties(ledger)
            for _ in range(6):
                privatiser.update(np.zeros(6), 0.5)
        sums.append(privatiser.sums())
    off = np.array([s.matrix[np.triu_indices(6, 1)] for s in sums]) / sums[0].matrix_noise
    diagonal = np.array([np.diag(s.matrix) for s in sums]) / sums[0].matrix_noise / math.sqrt(2)
    vector = np.array([s.vector for s in sums]) / sums[0].vector_noise
    for sample in (off, diagonal, vector):
        # Mean square of n normals: deviation √(2/n); false alarm 1e-8 at 5.7 deviations.
        assert abs(np.square(sample).mean() - 1) < 5.7 * math.sqrt(2 / sample.size)


# -- the claim -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(ContinualNoise))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.1), (10.0, 0.1), (1.0, 1e-5)])
def test_tight_noise_is_certified_and_not_wasteful(kind, epsilon, delta) -> None:
    algorithm = JointGPUCB(epsilon, delta, steps=100, feature_map=SMALL, continual_noise=kind)
    certificate = certify(algorithm.plan(), subject=SubjectRecord("joint"), claim=algorithm.claim())
    assert certificate.verdict == "certified"
    assert certificate.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)


def test_doubling_costs_no_more() -> None:
    algorithm = JointGPUCB(steps=100, feature_map=SMALL, doubling=True)
    assert [period.steps for period in algorithm.periods] == [1, 1, 2, 4, 8, 16, 32, 36]
    assert guarantee(algorithm.plan(), 0.1).epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("alpha", "bound", "printed"), [(1.0, 10.0, 0.44), (1.0, 100.0, 20.8), (10.0, 10.0, 25.1)]
)
def test_cost_of_lemma_2(alpha: float, bound: float, printed: float) -> None:
    cost = lemma_2_cost(alpha, 0.1, bound)
    assert cost.epsilon == pytest.approx(printed, abs=0.06)
    square = 1 + bound**2 + 2 * math.log(8 * 1024 / 0.1)
    sigma = lemma_2_sigma(alpha, 0.1, steps=1024, bound=bound, variance=1.0)
    mu = math.sqrt(11) * square / sigma  # n ‖D‖²/2σ² with ‖D‖² = 2 L⁴
    assert cost.epsilon == pytest.approx(GaussianComposition(mu).epsilon(0.1).upper, rel=1e-6)
    assert (cost.verdict == "holds") == (cost.epsilon <= alpha)


@pytest.mark.parametrize(("beta", "printed"), [(0.1, 11.05), (1e-3, 10.07)])
def test_cost_of_lemma_5(beta: float, printed: float) -> None:
    cost = lemma_5_cost(10.0, beta, 1.0)
    assert cost.orthogonal == pytest.approx(printed, abs=0.005)
    assert cost.epsilon > cost.orthogonal
    assert cost.verdict == "false"


def test_paper_noise_declares_the_lemma_and_is_reported() -> None:
    algorithm = JointGPUCB(epsilon=10.0, steps=64, feature_map=SMALL, noise="paper")
    (invocation,) = algorithm.plan().invocations
    assert invocation.mechanism.sigma == lemma_2_sigma(
        10.0, 0.1, steps=64, bound=1.0, variance=0.25
    )
    assert invocation.sensitivity == pytest.approx(math.sqrt(2) * 2)
    assert any(finding.rule == "noise-not-calibrated" for finding in algorithm.findings())


def test_paper_statistics_move_no_farther_than_declared() -> None:
    rng, statistics = np.random.default_rng(0), PaperStatistics(3, (-2.0, 2.0))
    for _ in range(200):
        one = statistics.encode(unit(rng, 3), rng.uniform(-2, 2))
        two = statistics.encode(unit(rng, 3), rng.uniform(-2, 2))
        assert np.linalg.norm(one - two) <= statistics.sensitivity


def test_shift_bounds_hold_for_the_noise() -> None:
    rng, m = np.random.default_rng(0), 20
    norms = []
    for _ in range(200):
        V = rng.normal(size=(m, m))
        norms.append(np.linalg.norm((V + V.T) / math.sqrt(2), 2))
    bound = noise_norm(1.0, steps=1024, size=m, confidence=0.1)
    assert max(norms) < bound < lemma_3_shift(1.0, steps=1, size=m, confidence=0.1 / 1024)


# -- learning ------------------------------------------------------------------------------------


def test_without_noise_the_shrunk_estimate_is_the_posterior() -> None:
    rng = np.random.default_rng(0)
    learner = JointGPUCB(feature_map=SMALL, estimate="shrunk").learner()
    Phi = np.array([unit(rng, 6) for _ in range(50)])
    v = rng.uniform(-0.5, 0.5, size=50)
    belief = learner.belief(Sums(50, Phi.T @ v, Phi.T @ Phi, 0.0, 0.0))
    V = Phi.T @ Phi + learner.reward_variance / learner.prior_variance * np.eye(6)
    np.testing.assert_allclose(belief.theta, np.linalg.solve(V, Phi.T @ v), rtol=1e-6)
    width = belief.root @ belief.root.T / learner.width_multiplier**2
    np.testing.assert_allclose(width, learner.reward_variance * np.linalg.inv(V), rtol=1e-6)


def test_a_drowned_matrix_counts_for_nothing() -> None:
    rng = np.random.default_rng(0)
    learner = JointGPUCB(feature_map=SMALL, estimate="shrunk").learner()
    noise = rng.normal(size=(6, 6))
    vector = rng.normal(size=6)
    belief = learner.belief(Sums(50, vector, noise + noise.T, 1.0, 100.0))
    assert abs(belief.theta @ vector) == pytest.approx(
        np.linalg.norm(belief.theta) * np.linalg.norm(vector)
    )


@pytest.mark.parametrize("estimate", [Estimate.PROJECTED, Estimate.SHIFTED])
def test_ridge_estimates_are_algorithm_1_without_noise(estimate: Estimate) -> None:
    rng = np.random.default_rng(0)
    learner = JointGPUCB(feature_map=SMALL, estimate=estimate, width="theorem").learner()
    Phi = np.array([unit(rng, 6) for _ in range(50)])
    belief = learner.belief(Sums(50, Phi.T @ np.ones(50), Phi.T @ Phi, 0.0, 0.0))
    V = Phi.T @ Phi + np.eye(6)
    np.testing.assert_allclose(belief.theta, np.linalg.solve(V, Phi.T @ np.ones(50)), rtol=1e-9)


def test_it_learns_with_little_noise_and_beats_uniform_play() -> None:
    problem = bump(np.random.default_rng(1), 300)
    algorithm = JointGPUCB(epsilon=10.0, steps=300)
    with Ledger(algorithm.plan(), rng=np.random.default_rng(0)) as ledger:
        result = algorithm.run(problem, ledger, np.random.default_rng(0))
    assert result.summary["final regret"] < 0.4 * problem.uniform_regret()
    assert nonprivate_regret(algorithm, problem)[-1] < 0.2 * problem.uniform_regret()


def test_results_do_not_depend_on_the_workers() -> None:
    configs = {"a": (JointGPUCB(steps=20, feature_map=SMALL), True)}
    one, two = (curves_of(configs, steps=20, trials=2, workers=n)["a"] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_benchmarks_fill_their_scale(name: str) -> None:
    function = BENCHMARKS[name]
    values = function(function.domain.sample(20_000, np.random.default_rng(0)))
    assert values.min() >= -1e-4
    assert values.max() <= 1 + 1e-4
    assert benchmark(name, np.random.default_rng(0), 3, 4).table.shape == (3, 4)
    if name == "camelback":
        best = np.array([[0.0898 / 4, -0.7126 / 2]])
        assert function.raw(best)[0] == pytest.approx(1.0316 / 5, abs=1e-4)


def test_bump_keeps_its_gap() -> None:
    table = bump(np.random.default_rng(3), 50).table
    assert (np.sort(table, axis=1)[:, -2] <= 0.6).all()
    assert (table.max(axis=1) >= 0.8).all()


# -- parties and wrong input ---------------------------------------------------------------------


def parties(**fields):
    algorithm = JointGPUCB(**({"steps": 3, "feature_map": SMALL} | fields))
    return algorithm.parties(Ledger(algorithm.plan(), rng=np.random.default_rng(0)))


@pytest.mark.parametrize("doubling", [False, True])
def test_no_noise_is_drawn_after_the_last_round(doubling: bool) -> None:
    _, privatiser = parties(doubling=doubling)
    for _ in range(3):
        privatiser.update(np.zeros(6), 0.0)
    before = privatiser.sums()
    with pytest.raises(InputError, match="steps is 3"):
        privatiser.update(np.zeros(6), 0.0)
    np.testing.assert_array_equal(before.vector, privatiser.sums().vector)
    assert privatiser.rounds == 3


def test_wrong_features_and_rewards_are_refused_before_noise() -> None:
    _, privatiser = parties()
    with pytest.raises(InputError, match=r"norm 1\.41"):
        privatiser.update(np.array([1.0, 1.0, 0, 0, 0, 0]), 0.0)
    with pytest.raises(InputError, match="shape"):
        privatiser.update(np.zeros(5), 0.0)
    with pytest.raises(InputError, match="reward is nan"):
        privatiser.update(np.zeros(6), math.nan)
    assert privatiser.rounds == 0
    assert privatiser.sums() is None


def test_rewards_outside_are_clipped_and_counted_or_refused() -> None:
    gate = RewardGate((0.0, 1.0), OutOfRange.CLIP)
    assert [gate(y) for y in (-3.0, 0.4, 7.0)] == [0.0, 0.4, 1.0]
    assert gate.clipped == 2
    with pytest.raises(InputError, match="declared range") as error:
        RewardGate((0.0, 1.0), OutOfRange.REFUSE)(7.125)
    assert "7.125" not in str(error.value)  # the reward is private


@pytest.mark.parametrize("arms", [np.empty((0, 2)), np.zeros((3, 4)), np.zeros(2)])
def test_wrong_decision_sets_are_refused(arms: np.ndarray) -> None:
    server, _ = parties()
    with pytest.raises(InputError):
        server.choose(arms)


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"steps": 0},
        {"reward_range": (1.0, 1.0)},
        {"noise": "none"},
        {"continual_noise": "bush"},
        {"matrix_weight": -1.0},
        {"feature_map": "eigen"},
        {"doubling": 1},
    ],
)
def test_wrong_fields_are_refused(fields) -> None:
    with pytest.raises(InputError):
        JointGPUCB(**fields)


def test_a_longer_problem_than_declared_is_refused() -> None:
    algorithm = JointGPUCB(steps=2, feature_map=SMALL)
    with pytest.raises(InputError, match="declare more steps"):
        algorithm.run(
            bump(np.random.default_rng(0), 3), Ledger(algorithm.plan()), np.random.default_rng()
        )


def test_shorter_runs_leave_no_stream_undeclared() -> None:
    algorithm = JointGPUCB(steps=40, feature_map=SMALL, doubling=True)
    problem = bump(np.random.default_rng(0), 5)
    with Ledger(algorithm.plan(), rng=np.random.default_rng(0)) as ledger:
        algorithm.run(problem, ledger, np.random.default_rng(0))
    assert len(ledger) == len(algorithm.periods)


def test_memory_of_the_trees_is_logarithmic() -> None:
    algorithm = JointGPUCB(
        steps=1000, feature_map=SMALL, continual_noise="binary-tree", noise=Noise.TIGHT
    )
    with Ledger(algorithm.plan(), rng=np.random.default_rng(0)) as ledger:
        _, privatiser = algorithm.parties(ledger)
        most = 0
        for _ in range(1000):
            privatiser.update(np.zeros(6), 0.0)
            most = max(most, privatiser.state_arrays)
    assert most <= 10


def test_regret_is_that_of_the_table() -> None:
    table = np.array([[0.1, 0.5], [0.9, 0.2]])
    problem = TabledProblem("t", np.zeros((2, 2, 1)), table, np.zeros(2))
    np.testing.assert_allclose(problem.regret([0, 1]), [0.4, 1.1])
    assert replace(problem, bernoulli=False).reward(0, 1) == 0.5
