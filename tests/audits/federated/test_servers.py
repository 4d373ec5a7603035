"""Running servers, right and with a mistake, under attack."""

from __future__ import annotations

import numpy as np
import pytest
from federated_game import ALPHA, WRONG, outputs
from scipy.stats import ks_2samp
from split_bounds import split_lower_bound

from audits.federated.game import (
    CanaryLikelihoodRatio,
    audit,
    certified,
    proved_epsilon,
)
from audits.federated.servers import (
    ClippedToWhole,
    EveryoneSampled,
    ForgottenLargestWeight,
    Others,
    Served,
    SilentWhenEmpty,
)
from audits.federated.table import small
from dpaudit import Ledger
from dpaudit.base.errors import PlanMismatchError
from private_bo.federated import DPFTSDE

SEEDS = 4  # the command python -m audits.federated runs 30


@pytest.mark.parametrize("others", Others)
def test_the_running_server_plays_it(others):
    """Scores of server and simulation, by a two-sample test at 1e-7."""
    subject = Served(agents=7, regions=2, rate=0.4, rounds=6, clip=3.0, others=others)
    simulated = DPFTSDE(agents=7, regions=2, rate=0.4, rounds=6, clip=3.0, features=2)
    assert certified(subject) == certified(simulated)
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
    assert certified(wrong) == certified(right)
    plan = wrong.true_plan()
    if plan is not None:
        assert proved_epsilon(plan, 29**-1.1) > 2 * certified(right).epsilon


@pytest.mark.parametrize("kind", [EveryoneSampled, ForgottenLargestWeight, ClippedToWhole])
def test_what_wrong_ones_really_lose(kind):
    """The bound is above the claim, and below the loss of what really runs (both at 1e-6)."""
    subject = small(kind, Others.SILENCE)
    score = CanaryLikelihoodRatio.of(subject)
    bound = split_lower_bound(
        *(score(side) for side in outputs(subject, 500)), subject.target_delta, 1 - ALPHA
    )
    truth = proved_epsilon(subject.true_plan(), subject.target_delta)
    assert certified(subject).epsilon < bound < truth


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
