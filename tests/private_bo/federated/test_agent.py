"""What an agent computes, against the closed forms of the paper."""

from dataclasses import replace

import numpy as np
import pytest
from federations import PROBLEM, SETUP, acted

from dpaudit.base.errors import InputError
from private_bo.federated import AgentModel, Agents, Broadcast, Reliance, Streams
from private_bo.federated.dp_fts_de import Federation
from private_bo.federated.draws import posterior_draws
from private_bo.federated.problems import unit_grid
from private_bo.gp import SquaredExponential


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
    agents, own = acted(setup, 3), AgentModel(setup, PROBLEM.domain)
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
        expected = model.likeliest(points, targets)
        assert tuple(agents.fitted[0]) == expected
        again = Agents(model, PROBLEM.observe, [3], [Streams((0,)).agent(3)])
        again.resume(agents.state)
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
