"""Algorithms 1 and 2, and what agents may do wrong without changing the accounting."""

from dataclasses import replace

import numpy as np
import pytest
from federations import PROBLEM, ROUNDS, SETUP, SUBJECT, acted, played, proper, without

from dpaudit import Ledger
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.base.errors import InputError
from private_bo.federated import (
    AgentModel,
    Broadcast,
    Reliance,
    Report,
    SamplingScheme,
    Streams,
    synthetic,
)
from private_bo.federated.dp_fts_de import Federation
from private_bo.federated.settings import region_of_point


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("refit_every", [None, 2])
def test_an_agent_is_the_same_alone_and_among_others_bit_for_bit(
    standardise: bool, refit_every: int | None
) -> None:
    setup = replace(SETUP, standardise=standardise, refit_every=refit_every)
    together = acted(setup, 5)
    last = {report.agent: report.vector for report in together.reports(5)}
    for number in range(SETUP.agents):
        alone = acted(setup, 5, [number])
        assert alone.choices[0].tolist() == together.choices[number].tolist()
        assert alone.reports(5)[0].vector.tobytes() == last[number].tobytes()


def test_initial_points_are_in_the_own_sub_region_without_repetition() -> None:
    agents = acted(SETUP, 0)
    assert agents.choices.shape == (9, 4)
    for number, row in enumerate(agents.choices):
        assert set(region_of_point(PROBLEM.domain[row], 2)) == {number % 2}
        assert len(set(row)) == 4
    many = acted(Federation(agents=9, regions=2, features=20, rounds=1, initial=100), 0)
    assert many.choices.shape == (9, 100)  # more than the 60 points there are


def test_followers_maximise_the_function_of_each_sub_region() -> None:
    """1 − p_1 = 1: after the first broadcast everybody queries argmax φ(x)ᵀω^(i[x])."""
    agents = SETUP.team(PROBLEM, Streams((1,)))
    vectors = np.random.default_rng(2).normal(size=(2, 20))
    agents.act(Broadcast(0, vectors))
    model: AgentModel = AgentModel(SETUP, PROBLEM.domain)
    values = [
        float(model.shared[x] @ vectors[region])
        for x, region in enumerate(region_of_point(PROBLEM.domain, 2))
    ]
    assert set(agents.choices[:, -1]) == {int(np.argmax(values))}
    assert agents.received == [9]


def test_who_relies_on_nobody_ignores_broadcasts() -> None:
    lonely = Federation(agents=9, features=20, rounds=5, initial=4, reliance=Reliance.NEVER)
    agents = acted(lonely, 5)
    assert agents.received == [0] * 5
    others = lonely.team(PROBLEM, Streams((11,)))
    for turn in range(-1, 5):  # other broadcasts, the same points
        others.act(Broadcast(turn, np.full((2, 20), float(turn))))
        others.reports(turn + 1)
    assert others.choices.tolist() == agents.choices.tolist()


def test_followers_are_as_frequent_as_declared() -> None:
    """At 1 − p_4 = 1/2 of 2000 agents about 1000 follow; 5.1 standard deviations, fixed seed."""
    many = Federation(agents=2000, features=2, rounds=4, initial=1)
    problem = synthetic(2000, points=10, length_scale=0.3)
    agents = many.team(problem, Streams((4,)))
    agents.act(Broadcast(3, np.ones((2, 2))))
    assert abs(agents.received[0] - 1000) < 5.1 * np.sqrt(2000 / 4)


def test_an_agent_that_stops_for_ever_changes_neither_plan_nor_noise() -> None:
    """The difference to the full run is what that agent would have contributed, and no more."""
    server, ledger, shown = played(lambda t: proper(t) if t < 2 else without(3)(t))
    full = played(proper)[2]
    assert server.missing == [0, 0, 1, 1, 1]
    assert not server.refused
    assert ledger.spent().hash == SUBJECT.plan().hash
    bounds = SUBJECT.public_weights.true_sensitivity(SUBJECT.clip, SUBJECT.rate)
    moved = [np.linalg.norm(a - b) for a, b in zip(shown, full, strict=True)]
    assert moved[:2] == [0.0, 0.0]
    assert max(moved) > 0
    assert all(distance <= bound for distance, bound in zip(moved, bounds, strict=True))


def test_noise_is_the_same_whoever_reports() -> None:
    """Nobody at all, or everybody with zeros: what is shown is noise of the declared size."""
    _, ledger, nobody = played(lambda t: [])
    zeros = played(lambda t: [Report(t, n, np.zeros(4)) for n in range(6)])[2]
    assert len(ledger) == 5
    assert [a.tobytes() for a in nobody] == [b.tobytes() for b in zeros]
    rng = np.random.default_rng(7)  # six agents are sampled, and eight numbers get noise
    noise = np.array([(rng.random(6), rng.normal(size=(2, 4)))[1] for _ in ROUNDS])
    assert np.allclose(np.array(nobody), noise * SUBJECT.sigmas[:, None, None])


def test_an_empty_sample_still_releases_noise() -> None:
    """At q N = 1 with everybody reporting, more than a third of the samples are empty."""
    subject = replace(SUBJECT, rate=1 / 6)
    noise = RecordingNoise(np.random.default_rng(7))
    ledger = Ledger(subject.plan(), noise=noise)
    with ledger:
        server = subject.server(ledger)
        shown = [server.round(turn, proper(turn)).vectors for turn in ROUNDS]
    empty = [turn for turn, step in enumerate(noise.steps) if not np.any(step.value)]
    assert empty, "the seed must give an empty sample"
    assert len(noise.steps) == 5
    assert all(np.all(shown[turn] != 0) for turn in empty)


def test_the_order_of_arrival_does_not_matter() -> None:
    forwards, backwards = played(proper)[2], played(lambda t: proper(t)[::-1])[2]
    assert [a.tobytes() for a in forwards] == [b.tobytes() for b in backwards]


def test_the_aggregate_is_algorithm_1() -> None:
    """Lines 5 to 11 written out, on a round with known samples."""
    subject = replace(SUBJECT, clip=1.5)
    ledger = Ledger(subject.plan(), rng=np.random.default_rng(7))
    server = subject.server(ledger)
    shown = server.round(0, proper(0)).vectors
    rng = np.random.default_rng(7)
    sample = np.flatnonzero(rng.random(6) < 0.5)
    phi = subject.public_weights.values[0]
    noise = rng.normal(size=(2, 4))
    assert 0 < len(sample) < 6
    for i in range(2):
        omega = np.zeros(4)
        for n in sample:
            vector = proper(0)[n].vector  # type: ignore[attr-defined]
            hat = vector / max(1.0, np.linalg.norm(vector) / (1.5 / np.sqrt(2)))
            omega += phi[i, n] / 0.5 * hat
        omega += noise[i] * (1.0 * phi.max() * 1.5 / 0.5)
        assert np.allclose(shown[i], omega, rtol=1e-9)


def test_rounds_come_in_order_and_no_more_than_declared() -> None:
    ledger = Ledger(SUBJECT.plan(), rng=np.random.default_rng(0))
    server = SUBJECT.server(ledger)
    with pytest.raises(InputError, match="next one is 0"):
        server.round(1, [])
    for turn in ROUNDS:
        server.round(turn, [])
    for turn in (4, 5):
        with pytest.raises(InputError, match="5 rounds are declared"):
            server.round(turn, [])
    assert len(ledger) == 5


def test_fixed_size_sampling_runs_on_the_server() -> None:
    subject = replace(SUBJECT, sampling=SamplingScheme.FIXED_SIZE, noise_multiplier=2.0)
    noise = RecordingNoise(np.random.default_rng(7))
    ledger = Ledger(subject.plan(), noise=noise)
    with ledger:
        server = subject.server(ledger)
        for turn in ROUNDS:
            server.round(turn, [Report(turn, n, np.eye(6, 4)[n % 4]) for n in range(6)])
    assert server.rate == 0.5
    assert all(np.any(step.value) for step in noise.steps)


@pytest.mark.parametrize("turn", [1.0, True, "1", None, np.float64(1), -1, 10**30])
def test_a_turn_that_is_no_integer_is_refused_before_anything_happens(turn: object) -> None:
    ledger = Ledger(SUBJECT.plan(), rng=np.random.default_rng(0))
    server = SUBJECT.server(ledger)
    server.round(0, proper(0))
    with pytest.raises(InputError, match="turn is") as refused:
        server.round(turn, proper(1))  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)
    assert (len(ledger), server.missing) == (1, [0])
    server.round(np.int64(1), proper(1))
    assert len(ledger) == 2
