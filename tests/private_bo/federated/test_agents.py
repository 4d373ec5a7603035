"""What an agent computes, against the closed forms of the paper."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpaudit.errors import InputError
from private_bo.federated import AgentModel, Agents, Broadcast, Reliance, Streams, synthetic
from private_bo.federated.agents import OwnProcess, kernel_root, posterior_draws
from private_bo.federated.dp_fts_de import Federation
from private_bo.federated.problems import unit_grid
from private_bo.gp import SquaredExponential


@pytest.mark.parametrize(("dimension", "scale"), [(1, 0.03), (2, 0.2), (3, 0.5)])
def test_the_root_reproduces_the_kernel_on_the_grid(dimension: int, scale: float) -> None:
    grid = unit_grid({1: 200, 2: 15, 3: 6}[dimension], dimension)
    root = kernel_root(SquaredExponential(scale), grid)
    assert root.shape[1] < len(grid)
    assert np.abs(root @ root.T - SquaredExponential(scale)(grid, grid)).max() <= 1e-6


def test_the_root_of_a_kernel_without_structure_is_whole() -> None:
    grid = unit_grid(20)
    root = kernel_root(SquaredExponential(1e-4), grid)
    assert root.shape == (20, 20)
    assert np.allclose(root @ root.T, np.eye(20))


@pytest.mark.parametrize("dimension", [1, 2])
def test_likelihoods_are_those_of_the_normal_law(dimension: int) -> None:
    rng = np.random.default_rng(1)
    points, y = rng.random((12, dimension)), rng.normal(size=12)
    process = OwnProcess.around(np.zeros((1, dimension)), 0.2, 0.05, refit_every=5)
    found = process.log_likelihoods(points, y) - 6 * np.log(2 * np.pi)
    assert found.shape == (5, 3)
    for (i, j), value in np.ndenumerate(found):
        gram = SquaredExponential(process.scales[i])(points, points)
        law = multivariate_normal(cov=gram + process.variances[j] * np.eye(12))
        assert value == pytest.approx(law.logpdf(y), rel=1e-9)
    best = np.unravel_index(found.argmax(), found.shape)
    assert process.likeliest(points, y) == best


@pytest.mark.parametrize(("scale", "variance"), [(0.05, 0.005), (0.1, 0.05), (0.4, 0.0005)])
def test_the_likeliest_is_what_the_data_come_from(scale: float, variance: float) -> None:
    """150 values of a candidate's own law, stated as 0.2 and 0.05."""
    rng = np.random.default_rng(2)
    points = rng.random((150, 2))
    gram = SquaredExponential(scale)(points, points) + variance * np.eye(150)
    y = np.linalg.cholesky(gram) @ rng.normal(size=150)
    process = OwnProcess.around(points, 0.2, 0.05, refit_every=5)
    i, j = process.likeliest(points, y)
    assert (process.scales[i], process.variances[j]) == (
        pytest.approx(scale), pytest.approx(variance),
    )  # fmt: skip


def test_repeated_points_and_constant_values_have_a_likelihood() -> None:
    process = OwnProcess.around(np.zeros((1, 1)), 0.2, 1e-6, refit_every=1)
    for y in (np.zeros(70), np.full(70, 1e6)):
        assert np.isfinite(process.log_likelihoods(np.zeros((70, 1)), y)).all()


def test_without_refits_there_is_one_candidate() -> None:
    process = OwnProcess.around(unit_grid(4), 0.2, 0.05, refit_every=None)
    assert (process.scales, process.variances) == ((0.2,), (0.05,))
    assert [process.fitted_on(seen, 4) for seen in (4, 9, 30)] == [0, 0, 0]
    root = process.root(0)
    assert root is process.root(0)
    assert np.allclose(root @ root.T, SquaredExponential(0.2)(unit_grid(4), unit_grid(4)))


SETUP = Federation(agents=9, regions=2, features=20, rounds=5, initial=4)
PROBLEM = synthetic(9, seed=3, points=120)


def acted(federation: Federation, rounds: int, numbers: list[int] | None = None) -> Agents:
    """Agents after the same random broadcasts, with all reports drawn on the way."""
    agents = federation.team(PROBLEM, Streams((11,)), numbers)
    rng = np.random.default_rng(5)
    agents.act(Broadcast.none_yet(federation.regions, federation.features))
    agents.reports(0)
    for turn in range(rounds):
        agents.act(Broadcast(turn, rng.normal(size=(federation.regions, federation.features))))
        agents.reports(turn + 1)
    return agents


def test_draws_have_the_law_of_equation_2() -> None:
    """The draw is affine in w and e: its offset is ν, and its linear part squares to λ Σ⁻¹."""
    rng = np.random.default_rng(0)
    Phi, y, lam = rng.normal(size=(7, 5)), rng.normal(size=7), 0.3
    Sigma = Phi.T @ Phi + lam * np.eye(5)

    def draw(w: np.ndarray, e: np.ndarray) -> np.ndarray:
        return posterior_draws(Phi[None], y[None], np.array([lam]), w[None], e[None])[0]

    nu = draw(np.zeros(5), np.zeros(7))
    assert np.allclose(nu, np.linalg.solve(Sigma, Phi.T @ y))
    linear = [draw(w, np.zeros(7)) - nu for w in np.eye(5)]
    linear += [draw(np.zeros(5), e) - nu for e in np.eye(7)]
    assert np.allclose(np.array(linear).T @ np.array(linear), lam * np.linalg.inv(Sigma))


def test_standardised_agents_do_not_see_units() -> None:
    """An objective in other units leads to the same queries; in fixed units it does not."""
    same, other = [], []
    for setup, found in ((replace(SETUP, standardise=True), same), (SETUP, other)):
        for unit in (1.0, 1024.0):  # a power of two: no rounding
            agents = Agents(
                AgentModel(setup, PROBLEM.domain),
                lambda n, x, rng, unit=unit: unit * PROBLEM.value(n, x),  # type: ignore[misc]
                range(9),
                [Streams((2,)).agent(n) for n in range(9)],
            )
            for turn in range(-1, 4):
                agents.act(Broadcast(turn, np.ones((2, 20))))
            found.append(agents.choices.tolist())
    assert same[0] == same[1]
    assert other[0] != other[1]


@pytest.mark.parametrize("beta", [1e-6, 1.0])
@pytest.mark.parametrize("refit_every", [None, 1])
def test_beta_multiplies_the_deviation_of_own_draws(beta: float, refit_every: int | None) -> None:
    """Without deviation an agent queries the argmax of its posterior mean; otherwise others do."""
    setup = replace(
        SETUP, reliance=Reliance.NEVER, refit_every=refit_every, beta=beta, own_scale=0.06,
        noise_variance=0.3,
    )  # fmt: skip
    agents, own = acted(setup, 3), AgentModel(setup, PROBLEM.domain).own
    means = []
    for n, (scale, variance) in enumerate(agents.fitted):
        kernel, points = SquaredExponential(own.scales[scale]), PROBLEM.domain[agents.choices[n]]
        gram = kernel(points, points) + own.variances[variance] * np.eye(len(points))
        weights = np.linalg.solve(gram, (agents.seen[n] - setup.offset) / setup.scale)
        means.append(int((kernel(PROBLEM.domain, points) @ weights).argmax()))
    candidates = len(np.unique(agents.fitted, axis=0))
    assert candidates == 1 if refit_every is None else candidates > 2
    agents.act(Broadcast(3, np.zeros((2, 20))))
    assert (agents.choices[:, -1].tolist() == means) == (beta < 1)


def test_refits_happen_at_their_time_on_own_data_and_survive_a_restart() -> None:
    setup = replace(SETUP, reliance=Reliance.NEVER, refit_every=2, rounds=20, own_scale=0.06)
    model = AgentModel(setup, PROBLEM.domain)
    agents = Agents(model, PROBLEM.observe, [3], [Streams((11,)).agent(3)])
    choices = []
    for turn in range(-1, 12):
        agents.act(Broadcast(turn, np.zeros((2, 20))))
        count = 4 + 2 * ((turn + 1) // 2)
        points = PROBLEM.domain[agents.choices[0, :count]]
        targets = (agents.seen[0, :count] - setup.offset) / setup.scale
        expected = model.own.likeliest(points, targets)
        assert tuple(agents.fitted[0]) == expected
        again = Agents(model, PROBLEM.observe, [3], [Streams((0,)).agent(3)])
        again.resume(agents.choices, agents.seen)
        assert again.fitted.tolist() == agents.fitted.tolist()
        choices.append(expected)
    assert len(set(choices)) > 1
    fixed = acted(replace(setup, refit_every=None), 12, [3])
    assert fixed.choices[0, :4].tolist() == agents.choices[0, :4].tolist()
    assert fixed.choices.tolist() != agents.choices.tolist()
    assert fixed.fitted.tolist() == [[0, 0]]


def test_a_sub_region_without_points_is_refused() -> None:
    many = Federation(agents=200, regions=50, features=2, rounds=1, initial=1)
    with pytest.raises(InputError, match="regions is 50, of which 30 hold none of the 20 points"):
        AgentModel(many, unit_grid(20))


def test_own_draws_find_the_maximum_of_a_known_function() -> None:
    """With every point observed without much noise, Thompson sampling plays the best."""
    federation = Federation(
        agents=9, regions=1, features=20, rounds=1, initial=120, reliance=Reliance.NEVER,
        noise_variance=1e-6,
    )  # fmt: skip
    agents = acted(federation, 1)
    for number, row in enumerate(agents.choices):
        gap = PROBLEM.optimum[number] - PROBLEM.value(number, int(row[-1]))
        assert gap < 0.02
