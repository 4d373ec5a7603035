"""What agents may do wrong, and that the accounting stays what was declared in every case."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import Ledger
from dpaudit.auditing.replaying.recording import RecordingNoise
from dpaudit.errors import InputError
from dpaudit.plan import FixedSizeSampling, PoissonSampling
from private_bo.federated import DPFTSDE, Broadcast, Refusal, Report, SamplingScheme, Server
from private_bo.federated.server import clipped, drawn

SUBJECT = DPFTSDE(agents=6, regions=2, rate=0.5, features=4, rounds=5, clip=3.0, delta=0.01)
ROUNDS = range(5)

Sent = Callable[[int], list[object]]


def proper(turn: int, agents: object = range(6)) -> list[object]:
    rng = np.random.default_rng((9, turn))
    vectors = rng.normal(size=(6, 4))
    return [Report(turn, n, vectors[n]) for n in agents]  # type: ignore[attr-defined]


def played(sent: Sent, subject: DPFTSDE = SUBJECT) -> tuple[Server, Ledger, list[np.ndarray]]:
    """A whole run of the server, with the same samples and noise for whatever is sent."""
    ledger = Ledger(subject.plan(), rng=np.random.default_rng(7))
    with ledger:
        server = subject.server(ledger, np.random.default_rng(8))
        shown = [server.round(turn, sent(turn)).vectors for turn in ROUNDS]
    ledger.check()  # what ran is what was declared
    return server, ledger, shown


def without(agent: int) -> Sent:
    return lambda turn: proper(turn, [n for n in range(6) if n != agent])


BAD: dict[str, tuple[Refusal, Callable[[int], object]]] = {
    "short": (Refusal.WRONG_DIMENSION, lambda t: Report(t, 0, np.ones(3))),
    "empty": (Refusal.WRONG_DIMENSION, lambda t: Report(t, 0, np.ones(0))),
    "long": (Refusal.WRONG_DIMENSION, lambda t: Report(t, 0, np.ones(400))),
    "nan": (Refusal.NOT_FINITE, lambda t: Report(t, 0, np.array([1, np.nan, 0, 0]))),
    "infinite": (Refusal.NOT_FINITE, lambda t: Report(t, 0, np.array([1, -np.inf, 0, 0]))),
    "unknown": (Refusal.UNKNOWN_AGENT, lambda t: Report(t, 6, np.ones(4))),
    "negative": (Refusal.UNKNOWN_AGENT, lambda t: Report(t, -1, np.ones(4))),
    "late": (Refusal.WRONG_ROUND, lambda t: Report(t - 1, 0, np.ones(4))),
    "early": (Refusal.WRONG_ROUND, lambda t: Report(t + 1, 0, np.ones(4))),
    "nothing": (Refusal.MALFORMED, lambda t: None),
    "text": (Refusal.MALFORMED, lambda t: "report"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_report_is_counted_and_is_as_if_nothing_was_sent(name: str) -> None:
    reason, bad = BAD[name]
    server, ledger, shown = played(lambda turn: [bad(turn), *without(0)(turn)])
    _, _, silent = played(without(0))
    assert server.refused == {reason: 5}
    assert server.missing == [1] * 5
    assert len(ledger) == 5
    assert ledger.spent().hash == SUBJECT.plan().hash
    for one, other in zip(shown, silent, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_second_report_of_an_agent_is_refused() -> None:
    server, _, shown = played(lambda t: [*proper(t), Report(t, 2, np.full(4, 100.0))])
    clean = played(proper)[2]
    assert server.refused == {Refusal.DUPLICATE: 5}
    assert server.missing == [0] * 5
    assert [a.tobytes() for a in shown] == [b.tobytes() for b in clean]


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
    noise = np.random.default_rng(7).normal(size=(5, 2, 4)) * SUBJECT.sigmas[:, None, None]
    assert np.allclose(np.array(nobody), noise)


def test_an_empty_sample_still_releases_noise() -> None:
    """At q N = 1 with everybody reporting, more than a third of the samples are empty."""
    subject = replace(SUBJECT, rate=1 / 6)
    noise = RecordingNoise(np.random.default_rng(7))
    ledger = Ledger(subject.plan(), noise=noise)
    with ledger:
        server = subject.server(ledger, np.random.default_rng(0))
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
    server = subject.server(ledger, np.random.default_rng(8))
    shown = server.round(0, proper(0)).vectors
    sample = np.flatnonzero(np.random.default_rng(8).random(6) < 0.5)
    phi = subject.public_weights.values[0]
    noise = np.random.default_rng(7).normal(size=(2, 4))
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
    server = SUBJECT.server(ledger, np.random.default_rng(0))
    with pytest.raises(InputError, match="next one is 0"):
        server.round(1, [])
    for turn in ROUNDS:
        server.round(turn, [])
    for turn in (4, 5):
        with pytest.raises(InputError, match="5 rounds are declared"):
            server.round(turn, [])
    assert len(ledger) == 5


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e6, 1e300, 1.7e308])
def test_clipping_keeps_direction_and_bounds_the_norm(scale: float) -> None:
    vector = np.array([0.6, -0.8, 0.0]) * scale
    found = clipped(vector, 2.0)
    assert np.linalg.norm(found) <= 2.0 * (1 + 1e-15)
    assert np.allclose(found, vector if scale <= 1 else [1.2, -1.6, 0.0])
    assert clipped(np.zeros(3), 2.0).tolist() == [0.0, 0.0, 0.0]


def test_poisson_samples_have_the_declared_rate_and_sizes() -> None:
    """10^5 coins at 1/4, within 5.1 standard deviations (false alarm below 1e-6), fixed seed."""
    rng = np.random.default_rng(3)
    samples = [drawn(PoissonSampling(0.25), 100, rng) for _ in range(1000)]
    total = sum(map(len, samples))
    assert abs(total - 25_000) < 5.1 * np.sqrt(100_000 * 0.25 * 0.75)
    sizes = np.array([len(sample) for sample in samples])
    assert 0.8 < sizes.var() / (100 * 0.25 * 0.75) < 1.25  # 5.6 standard deviations of 0.045
    per_agent = np.bincount(np.concatenate(samples), minlength=100)
    assert abs(per_agent - 250).max() < 6.5 * np.sqrt(1000 * 0.25 * 0.75)


def test_fixed_size_samples_have_their_size() -> None:
    rng = np.random.default_rng(3)
    samples = [drawn(FixedSizeSampling(3, 12), 12, rng) for _ in range(400)]
    assert {len(set(sample.tolist())) for sample in samples} == {3}
    assert abs(np.bincount(np.concatenate(samples), minlength=12) - 100).max() < 6 * np.sqrt(75)


def test_fixed_size_sampling_runs_on_the_server() -> None:
    subject = replace(SUBJECT, sampling=SamplingScheme.FIXED_SIZE, noise_multiplier=2.0)
    noise = RecordingNoise(np.random.default_rng(7))
    ledger = Ledger(subject.plan(), noise=noise)
    with ledger:
        server = subject.server(ledger, np.random.default_rng(0))
        for turn in ROUNDS:
            server.round(turn, [Report(turn, n, np.eye(6, 4)[n % 4]) for n in range(6)])
    assert server.rate == 0.5
    assert all(np.any(step.value) for step in noise.steps)


# -- messages ------------------------------------------------------------------------------------


def test_messages_survive_the_wire_exactly() -> None:
    numbers = np.array([0.1, -0.0, 5e-324, 1.7976931348623157e308, np.pi, np.nan, np.inf])
    report = Report.from_dict(Report(3, 4, numbers).to_dict())
    assert (report.round, report.agent) == (3, 4)
    assert report.vector.tobytes() == numbers.tobytes()
    broadcast = Broadcast(2, np.random.default_rng(0).normal(size=(3, 5)))
    again = Broadcast.from_dict(broadcast.to_dict())
    assert again.round == 2
    assert again.vectors.tobytes() == broadcast.vectors.tobytes()
    assert Broadcast.none_yet(2, 3).vectors.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Broadcast(-2, np.ones((1, 1))), "round is -2"),
        (lambda: Broadcast(0, np.ones(3)), "must be \\(P, M\\)"),
        (lambda: Broadcast(0, np.full((1, 1), np.nan)), "NaN"),
        (lambda: Report(0.5, 0, np.ones(2)), "round is 0.5"),  # type: ignore[arg-type]
        (lambda: Report(0, True, np.ones(2)), "agent is True"),
        (lambda: Report(0, 0, np.ones((2, 2))), "must be a vector"),
        (lambda: Report(0, 0, np.array(["a"])), "must be a vector"),
        (lambda: Report(0, 0, [[1.0], [1.0, 2.0]]), "ragged"),  # type: ignore[arg-type]
        (lambda: Report.from_dict({"round": 0}), "report has the fields"),
        (lambda: Report.from_dict([]), "report has the fields"),  # type: ignore[arg-type]
        (lambda: Report.from_dict({"round": 0, "agent": 0, "vector": b"123"}), "bytes"),
        (lambda: Report.from_dict({"round": 0, "agent": 0, "vector": "x"}), "bytes"),
        (lambda: Broadcast.from_dict({"round": 0, "shape": [1], "vectors": b""}), "pair"),
        (lambda: Broadcast.from_dict({"round": 0, "shape": [1, 2], "vectors": b"\0" * 8}), "asks"),
    ],
)
def test_wrong_messages_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("turn", [1.0, True, "1", None, np.float64(1), -1, 10**30])
def test_a_turn_that_is_no_integer_is_refused_before_anything_happens(turn: object) -> None:
    ledger = Ledger(SUBJECT.plan(), rng=np.random.default_rng(0))
    server = SUBJECT.server(ledger, np.random.default_rng(0))
    server.round(0, proper(0))
    with pytest.raises(InputError, match="turn is") as refused:
        server.round(turn, proper(1))  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)
    assert (len(ledger), server.missing) == (1, [0])
    server.round(np.int64(1), proper(1))
    assert len(ledger) == 2
