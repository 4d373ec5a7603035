"""The catalogue: what its entries state, and what is true of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from audits.catalogue import ENTRIES, FLOATS, answers, gaussian, selection
from audits.catalogue.answers import SHOWN, THREE, TWO, drink, histogram, refuses, threshold
from audits.catalogue.entry import Entry, epsilon_of, gaussian_epsilon, true_epsilon
from audits.catalogue.measuring import Summary, audit_entry, run_catalogue, run_floats
from dpaudit import Claim, DiscreteLaplace, InputError, RandomizedResponse
from dpaudit.mechanisms import FinitePair, GaussianPair

# -- entries say what is claimed and what is true --------------------------------------------------


FACTS = {"claim": Claim(1.0), "x": 0.0, "x_prime": 1.0, "true_epsilon": 1.0}


def release(data, size, rng):
    return data + rng.laplace(size=size)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"right": False}, "states 1 where 1 is true; that does not go with right = False"),
        ({"true_epsilon": 2.0}, "states 1 where 2 is true; that does not go with right = True"),
        ({"rho": (1.0, 2.0)}, "states 1 where 2 is true"),
        ({"release": None}, "needs one of a release, an answer and an exact audit"),
        ({"exact": lambda: None}, "needs one of"),
        ({"answer": lambda data, rng: ""}, "needs one of"),
        ({"runs": -1}, "runs is -1"),
        ({"claim": 1.0}, "claim is 1.0; it must be a Claim"),
        ({"rare": 1}, "rare is 1; it must be true or false"),
    ],
)
def test_what_does_not_go_together_is_named(changes, message):
    facts = {"name": "mine", "right": True, **FACTS, "release": release}
    with pytest.raises(InputError, match=message):
        Entry(**(facts | changes))


# -- the catalogue, reduced: every wrong row within its budget, right rows with fewer runs ---------


WRONG = [entry for entry in ENTRIES if not entry.right]
RIGHT = [entry for entry in ENTRIES if entry.right]


def names(entries):
    return [entry.name for entry in entries]


@pytest.mark.parametrize("entry", WRONG, ids=names(WRONG))
def test_wrong_rows_are_refuted_within_their_budget(entry):
    record = audit_entry(entry, seed=11)
    assert record.refuted
    assert record.runs <= entry.runs
    assert (record.confidence is None) == (entry.exact is not None)
    if entry.rho is None:
        assert record.epsilon_lower <= entry.true_epsilon * (1 + 1e-9)


def test_right_rows_are_not_refuted_more_often_than_stated():
    rows = run_catalogue(RIGHT, seed=100, runs=400)
    assert all(row.as_expected for row in rows)
    alarms = Summary.of(rows).false_alarms
    assert alarms.trials >= 50
    # At 5 % each, 15 of 50 and more have a probability below 1e-7.
    assert alarms.hits < 15


def test_true_losses_are_those_of_the_literature():
    true = {entry.name: entry.true_epsilon for entry in ENTRIES}
    expected = {
        "Laplace, half the scale": 2.0,
        "Laplace, 0.9 of the scale": 1.111,
        "histogram, scale ε for 1/ε": 2.0,
        "noisy max that returns the value": 5.0,
        "sparse vector, Lee and Clifton, c = 5": (1 + 6 * 5) / 4,
        "Gaussian, half of σ": 2.155,
        "Gaussian, L∞ sensitivity in 16 dimensions": 4.746,
        "classic Gaussian calibration at ε = 10": 10.39,
        "10 rounds accounted as 1": 3.619,
        "subsampled Gaussian that never samples": 4.377,
        "tree that ignores its levels, Laplace": 4.0,
    }
    for name, value in expected.items():
        assert true[name] == pytest.approx(value, abs=0.006), name
    steep = next(e for e in WRONG if e.name.startswith("exponential"))
    assert audit_entry(steep, 0).epsilon_lower == pytest.approx(steep.true_epsilon)


def test_permute_and_flip_needs_more_than_the_stated_rho():
    entry = next(entry for entry in WRONG if entry.rho is not None)
    record = audit_entry(entry, seed=0)
    assert entry.rho[1] == pytest.approx(0.6885, abs=5e-5)
    assert record.details["rho_lower"] >= entry.rho[1]
    assert record.details["claim_rho"] == 0.5
    assert json.loads(json.dumps(record.to_dict()))["verdict"] == "refuted"
    (row,) = run_catalogue([entry])
    assert json.loads(json.dumps(row.to_dict()))["as_expected"] is True


# -- answers of any kind: what is true of them, by closed forms and enumeration --------------------


RUNS = 20_000
FALSE_ALARM = 5.0
"""Standard deviations: a chance below 1e-6 for each."""


def share(answer, data, holds):
    rng = np.random.default_rng(1)
    return np.mean([holds(answer(data, rng)) for _ in range(RUNS)])


def near(chance):
    return pytest.approx(chance, abs=FALSE_ALARM * math.sqrt(chance * (1 - chance) / RUNS))


def test_every_kind_is_there_right_and_wrong():
    assert len(answers.WRONG) >= 10
    assert len(answers.RIGHT) >= 10
    assert all(each.answer is not None for each in (*answers.WRONG, *answers.RIGHT))


def test_a_name_of_one_record_is_above_the_threshold_with_probability_delta():
    for delta in (0.5, 0.05, 1e-5):
        above = math.exp(1 - threshold(delta)) / 2  # of Lap(1), at 0 or more
        assert above == pytest.approx(delta)
    shown = histogram(threshold(SHOWN))
    assert share(shown, THREE, lambda output: "c" in output) == near(SHOWN)
    assert share(shown, TWO, lambda output: "c" in output) == 0


def test_sentences_have_the_odds_that_are_stated():
    right = drink(math.e)
    true = share(right, "tea", lambda output: "tea" in output)
    false = share(right, "water", lambda output: "tea" in output)
    assert true == near(math.e / (math.e + 3))
    assert false == near(1 / (math.e + 3))


def test_exceptions_have_the_odds_that_are_stated():
    def raises(bit):
        rng, raised = np.random.default_rng(2), 0
        for _ in range(RUNS):
            try:
                refuses(math.e)(bit, rng)
            except ValueError:
                raised += 1
        return raised / RUNS

    assert raises(1) == near(math.e / (1 + math.e))
    assert raises(0) == near(1 / (1 + math.e))


def test_geometric_noise_has_the_law_of_the_discrete_laplace_mechanism():
    rng = np.random.default_rng(3)
    drawn = np.array([answers.geometric(rng, 2.0) for _ in range(RUNS)])
    same = DiscreteLaplace(0.5).release_many(0, RUNS, rng)
    none = math.tanh(1.0)  # P(0) = (1 - a) / (1 + a), a = exp(-2)
    assert np.mean(drawn == 0) == near(none)
    assert np.mean(same == 0) == near(none)
    assert np.mean(drawn == 1) == near(none * math.exp(-2))


# -- losses of selection mechanisms by numerical integration, and the catalogue's own arithme ------


def test_noisy_max_by_numerical_integration():
    """The densities of the maximum of 10 queries at 0 or 1 with Lap(2) reach a ratio of e^5."""
    grid = np.linspace(-60, 60, 40_001)
    law = np.where(grid < 0, np.exp(grid / 2) / 2, 1 - np.exp(-grid / 2) / 2)
    shifted = np.where(grid < 1, np.exp((grid - 1) / 2) / 2, 1 - np.exp(-(grid - 1) / 2) / 2)
    at_0, at_1 = (np.diff(cumulative**10) for cumulative in (law, shifted))
    inside = (at_0 > 1e-280) & (at_1 > 1e-280)
    assert np.abs(np.log(at_0[inside] / at_1[inside])).max() == pytest.approx(5.0, abs=1e-3)


def test_the_least_rho_of_randomised_response_is_that_of_its_pair():
    mechanism = RandomizedResponse(p=0.4, k=2)
    pair = mechanism.pair(1)
    assert isinstance(pair, FinitePair)
    orders = np.array([1.01, *np.linspace(1.05, 4, 60), *np.geomspace(4, 1000, 60)])
    masses = [[float(mass) for mass in mechanism.probabilities(data)] for data in (0, 1)]
    wanted = (pair.renyi(orders) / orders).max()
    assert selection.least_rho(*masses) == pytest.approx(wanted)


def test_a_classic_calibration_at_epsilon_10_is_refuted_by_its_closed_form():
    record = gaussian._classic()
    assert record.refuted
    assert record.epsilon_lower == pytest.approx(10.39, abs=0.005)


def test_true_epsilons():
    sigma = 3.730631634816464  # of ε = 1 at δ = 1e-5 (Balle and Wang 2018)
    assert gaussian_epsilon(1 / sigma) == pytest.approx(1.0, abs=1e-6)
    assert epsilon_of(GaussianPair(1 / sigma)) > gaussian_epsilon(1 / sigma)
    assert true_epsilon(GaussianPair(0.0), 0.0) == 0
    assert true_epsilon(GaussianPair(60.0), 1e-5) == math.inf


# -- samplers whose floats leak --------------------------------------------------------------------


def test_samplers_leak_exactly_where_they_should():
    rows = run_floats(FLOATS, draws=5_000)
    assert all(row.as_expected for row in rows)
    numpy_laplace = rows[0]
    assert numpy_laplace.rules == ("float-lsb",)
    assert numpy_laplace.draws <= 100
