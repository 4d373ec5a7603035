"""Membership inference on federated Thompson sampling: scores, bounds, and wrong servers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from federated_game import ALPHA, WRONG, outputs
from scipy.stats import binom, ks_2samp, multivariate_normal
from split_bounds import split_lower_bound

from audits.catalogue.entry import gaussian_epsilon
from audits.catalogue.papers import FEDERATED
from audits.federated.__main__ import main
from audits.federated.game import (
    CanaryLikelihoodRatio,
    audit,
    canary_pair,
    certified_claim,
    landmines,
    proved_curve,
    proved_epsilon,
    white_box,
)
from audits.federated.servers import (
    ClippedToWhole,
    EndToEnd,
    EveryoneSampled,
    ForgottenLargestWeight,
    Others,
    Served,
    SilentWhenEmpty,
    entries,
    small,
)
from dpaudit import Ledger, guarantee
from dpaudit.base.errors import InputError, PlanMismatchError
from private_bo.federated import DPFTSDE

# -- membership inference on DP-FTS-DE: exact scores and valid bounds ------------------------------


@pytest.mark.parametrize("rate", [0.35, 1.0])
def test_is_the_ratio_of_the_mixture_densities(rate):
    """Against scipy's normal density of each round's joint vector."""
    algorithm = landmines(rate, rounds=6, sharp_rounds=2, fading_rounds=3)
    agent = canary_pair(algorithm).x["agent"]
    weights = algorithm.public_weights.values[:, :, agent]
    transcripts, _ = outputs(algorithm, 20)
    found = CanaryLikelihoodRatio.of(algorithm)(transcripts)
    for transcript, score in zip(transcripts, found, strict=True):
        expected = 0.0
        for t, broadcast in enumerate(transcript):
            sigma = algorithm.noise_multiplier * weights_max(algorithm, t) * 22 / rate
            law = multivariate_normal(cov=sigma**2 * np.eye(4))
            without = law.pdf(broadcast)
            shift = weights[t] * 22 / 2 / rate
            with_canary = rate * law.pdf(broadcast - shift) + (1 - rate) * without
            expected += math.log(with_canary / without)
        assert score == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_further_entries_are_noise():
    subject = Served(agents=8, regions=2, rate=0.5, rounds=5, features=6)
    with_canary, _ = outputs(subject, 3)
    score = CanaryLikelihoodRatio.of(subject)
    assert with_canary.shape == (3, 5, 2, 6)
    assert np.array_equal(score(with_canary), score(with_canary[..., 0]))


def test_needs_independent_sampling():
    fixed = DPFTSDE(agents=8, rate=0.5, sampling="fixed-size", rounds=3)
    with pytest.raises(InputError, match="poisson"):
        CanaryLikelihoodRatio.of(fixed)


def weights_max(algorithm, t):
    return algorithm.public_weights.values[t].max()


def test_its_loss_is_what_is_certified():
    """E[(1 − e^(ε−L))₊] against the PLD in either direction; five standard errors."""
    algorithm = landmines()
    score, size = CanaryLikelihoodRatio.of(algorithm), 50_000
    with_canary, without = (score(side) for side in outputs(algorithm, size))
    for epsilon in (0.5, 1.5, 2.5):
        gains = [np.maximum(0, -np.expm1(epsilon - losses)) for losses in (with_canary, -without)]
        worst = max(gains, key=np.mean)
        proved = float(proved_curve(algorithm)(np.array([epsilon]))[0])
        assert worst.mean() == pytest.approx(proved, abs=5 * worst.std() / size**0.5 + 1e-4)


def test_mean_likelihood_ratio_is_one():
    algorithm = landmines(0.1, 2.0, rounds=20)
    _, without = outputs(algorithm, 50_000)
    ratios = np.exp(CanaryLikelihoodRatio.of(algorithm)(without))
    assert ratios.mean() == pytest.approx(1, abs=5 * ratios.std() / 50_000**0.5)


def test_most_of_the_certified_epsilon_is_real():
    algorithm = landmines()
    bounds = white_box(algorithm)
    claim = certified_claim(algorithm)
    assert claim.delta == pytest.approx(29**-1.1)
    assert 0.75 * claim.epsilon <= bounds.epsilon <= claim.epsilon
    assert 0.7 * claim.epsilon <= bounds.add <= bounds.remove
    first, again = (white_box(algorithm, runs=2_000, seed=1) for _ in range(2))
    assert first == again


def test_they_hold_where_the_truth_is_known():
    """Everyone sampled: a Gaussian of μ = √T; errors at most 5 %, tested at 1e-6."""
    algorithm = DPFTSDE(agents=4, regions=1, rate=1.0, rounds=4, delta=1e-2)
    truth = gaussian_epsilon(2.0, 1e-2)
    found = [white_box(algorithm, runs=200, seed=seed) for seed in range(12)]
    errors = sum(bounds.epsilon > truth for bounds in found)
    assert binom.sf(errors - 1, len(found), 0.05) > ALPHA
    assert np.median([bounds.epsilon for bounds in found]) > 0.35 * truth


@pytest.mark.parametrize("runs", [0, 1, 1.5])
def test_too_few_runs(runs):
    with pytest.raises(InputError, match="runs"):
        white_box(landmines(), runs=runs)


def test_the_small_model_of_the_catalogue_has_the_same_loss():
    game = DPFTSDE(agents=20, regions=1, rate=0.25, rounds=5, delta=1e-5)
    assert certified_claim(game).epsilon == pytest.approx(
        guarantee(FEDERATED, 1e-5).epsilon, rel=1e-9
    )


# -- running servers, right and with a mistake, under attack ---------------------------------------


SEEDS = 4  # the command python -m audits.federated runs 30


@pytest.mark.parametrize("others", Others)
def test_the_running_server_plays_it(others):
    """Scores of server and simulation, by a two-sample test at 1e-7."""
    subject = Served(agents=7, regions=2, rate=0.4, rounds=6, clip=3.0, others=others)
    simulated = DPFTSDE(agents=7, regions=2, rate=0.4, rounds=6, clip=3.0, features=2)
    assert certified_claim(subject) == certified_claim(simulated)
    score = CanaryLikelihoodRatio.of(subject)
    for real, fast in zip(outputs(subject, 400), outputs(simulated, 20_000), strict=True):
        assert ks_2samp(score(real), score(fast)).pvalue > 1e-7


def test_silent_agents_and_zeros_give_the_same_broadcasts():
    zeros, silence = (outputs(small(others=others), 20) for others in Others)
    assert np.array_equal(zeros, silence)


def test_right_ones_are_not_refuted():
    """False alarms over all seeds below 1e-6."""
    served = Served(agents=29, rate=0.35, rounds=4, others=Others.SILENCE)
    for seed in range(SEEDS):
        record = audit(served, runs=80, confidence=1 - ALPHA / SEEDS, seed=seed)
        assert not record.refuted


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_ones_are(kind):
    record = audit(small(kind, Others.SILENCE), runs=2_000, confidence=1 - ALPHA, stop_early=True)
    assert record.refuted
    assert record.runs < 2_000


@pytest.mark.parametrize("kind", WRONG)
def test_mistakes_are_in_the_server_and_not_in_the_claim(kind):
    wrong, right = small(kind), small()
    assert wrong.plan() == right.plan()
    assert certified_claim(wrong) == certified_claim(right)
    plan = wrong.true_plan()
    if plan is not None:
        assert proved_epsilon(plan, 29**-1.1) > 2 * certified_claim(right).epsilon


@pytest.mark.parametrize("kind", [EveryoneSampled, ForgottenLargestWeight, ClippedToWhole])
def test_what_wrong_ones_really_lose(kind):
    """The bound is above the claim, and below the loss of what really runs (both at 1e-6)."""
    subject = small(kind, Others.SILENCE)
    score = CanaryLikelihoodRatio.of(subject)
    bound = split_lower_bound(
        *(score(side) for side in outputs(subject, 500)), subject.target_delta, 1 - ALPHA
    )
    truth = proved_epsilon(subject.true_plan(), subject.target_delta)
    assert certified_claim(subject).epsilon < bound < truth


def test_a_ledger_finds_the_missing_noise_by_itself():
    subject = small(SilentWhenEmpty)
    rng = np.random.default_rng(0)
    with pytest.raises(PlanMismatchError, match="declare what runs"):  # noqa: PT012, SIM117
        with Ledger(subject.running_plan(), rng=rng) as ledger:
            server = subject.server(ledger)
            for turn in range(subject.rounds):
                assert not server.round(turn, []).vectors.any()


def test_a_right_server_never_broadcasts_zeros():
    subject = Served(agents=29, rate=0.05, rounds=10, others=Others.SILENCE)
    for side in outputs(subject, 50):
        assert side.all()


def test_wrong_noise_is_refused_by_a_ledger_of_the_plan():
    subject = small(ForgottenLargestWeight)
    rng = np.random.default_rng(0)
    server = subject.server(Ledger(subject.plan(), rng=rng))
    with pytest.raises(PlanMismatchError):
        server.round(0, [])


# -- the servers in the form of the catalogue ------------------------------------------------------


def test_the_catalogue_knows_right_from_wrong():
    found = entries()
    assert [entry.right for entry in found] == [False] * 4 + [True] * 4
    for entry in found[:4]:
        assert entry.true_epsilon > entry.claim.epsilon


# -- the whole federated algorithm under attack ----------------------------------------------------


def test_the_canary_moves_the_first_broadcast_alone():
    """Present and absent with the same generators: same noise, same other agents."""
    subject = EndToEnd()
    pair = canary_pair(subject)
    shift = CanaryLikelihoodRatio.of(subject).shifts[0]
    moved = 0
    for seed in range(20):
        with_canary, without = (
            subject.audit_release(data, 1, np.random.default_rng(seed))[0]
            for data in (pair.x, pair.x_prime)
        )
        assert with_canary.shape == (10, 2, 4)
        difference = with_canary[0] - without[0]
        assert difference[:, 1:] == pytest.approx(0, abs=1e-9)
        if np.abs(difference).max() > 1e-9:
            assert difference[:, 0] == pytest.approx(shift, rel=1e-9)
            moved += 1
    assert 0 < moved < 20


def test_not_refuted_and_not_blind():
    """False alarm of both parts below 1e-6: the verdict's rate, and five standard errors."""
    subject = EndToEnd(rate=1.0, regions=1, rounds=3)
    assert not audit(subject, runs=160, confidence=1 - ALPHA).refuted
    score = CanaryLikelihoodRatio.of(subject)
    seen, unseen = (score(side) for side in outputs(subject, 60))
    error = np.hypot(seen.std(), unseen.std()) / 60**0.5
    assert seen.mean() - unseen.mean() > 5 * error


def test_nonsense():
    with pytest.raises(InputError, match="present"):
        EndToEnd().audit_release({"agent": 0}, 1, np.random.default_rng(0))


# -- the command of the federated attack -----------------------------------------------------------


def test_table(capsys):
    assert main(["--quick", "--runs", "3000", "--rounds", "6"]) == 0
    out = capsys.readouterr().out
    assert "δ = N^-1.1 = 0.02462" in out
    assert out.splitlines()[-1].split()[:2] == ["0.35", "1.0"]


@pytest.mark.parametrize("option", ["--runs", "--rounds"])
def test_wrong_input(option, capsys):
    assert main(["--quick", "--rounds", "4", option, "0"]) == 3
    error = capsys.readouterr().err
    assert option[2:] in error
    assert error.count("\n") == 1
