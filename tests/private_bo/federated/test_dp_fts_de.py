"""DP-FTS-DE and DP-FTS: runs, replay and canaries."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from rehearsals import Gossip, rules

from dpaudit import Ledger
from dpaudit.auditing.replaying.replay import replay
from dpaudit.base.errors import InputError
from dpaudit.project import RunResult
from dpaudit.project.targets import configuration
from private_bo.federated import (
    DPFTS,
    DPFTSDE,
    Sensitivity,
    WithoutAgent,
    synthetic,
)
from private_bo.federated.algorithms import Server

SMALL = DPFTSDE(agents=8, regions=2, rate=0.5, features=10, rounds=6, initial=3, clip=4.0)
PROBLEM = synthetic(8, seed=1, points=60)


def run(subject: DPFTSDE, data: object = PROBLEM, seed: int = 0) -> tuple[RunResult, Ledger]:
    ledger = Ledger(subject.plan(), rng=np.random.default_rng(seed))
    with ledger:
        result = subject.run(data, ledger, np.random.default_rng(seed + 1))
    return result, ledger


def test_algorithm_1_as_printed_releases_once_more() -> None:
    printed = replace(SMALL, last_broadcast=True)
    assert printed.claim() == SMALL.claim()
    assert printed.certified(Sensitivity.JOINT) > SMALL.certified(Sensitivity.JOINT)
    same, more = run(SMALL), run(printed)
    assert (len(same[1]), len(more[1])) == (6, 7)
    assert more[0].owner == same[0].owner  # nobody acts on it


@pytest.mark.parametrize("agent", [0, 3])
def test_replay_finds_no_more_than_declared(agent: int) -> None:
    """Both neighbours with the same noise: an agent's vectors, or zero in every round."""
    report = replay(replace(SMALL, clip=1.0), PROBLEM, WithoutAgent(PROBLEM, agent), seed=2)
    assert report.clean
    assert len(report.comparisons) == 6
    moved = [each.observed / each.declared for each in report.comparisons]
    # Clipped at 1, every vector is at the clip norm: who is sampled moves all that is declared.
    assert max(moved) == pytest.approx(1.0, rel=1e-6)
    assert min(moved) == 0.0


def test_replay_sees_the_wrong_clip() -> None:
    """S in place of S/√P moves the release by √P times what is declared."""

    class Wrong(DPFTSDE):
        def server(self, ledger):  # type: ignore[no-untyped-def]
            server = super().server(ledger)
            server.clip *= math.sqrt(self.regions)
            return server

    wrong = Wrong(**{**configuration(SMALL), "clip": 1.0})
    report = replay(wrong, PROBLEM, WithoutAgent(PROBLEM, 0), seed=2)
    assert report.findings[0].rule == "sensitivity-understated"


def test_canary_transcripts_have_the_declared_shift_and_noise() -> None:
    """Means and deviations over 4000 transcripts, within 6 standard errors, fixed seed."""
    subject = replace(SMALL, noise_multiplier=0.7)
    (pair,) = subject.audit_pairs()
    agent = pair.x["agent"]
    with_it = subject.audit_release(pair.x, 4000, np.random.default_rng(0))
    without = subject.audit_release(pair.x_prime, 4000, np.random.default_rng(1))
    assert with_it.shape == without.shape == (4000, 6, 2)
    shift = subject.public_weights.values[:, :, agent] * 4.0 / (0.5 * np.sqrt(2))
    spread = np.sqrt(subject.sigmas[:, None] ** 2 + 0.25 * shift**2)
    assert (abs(with_it.mean(axis=0) - 0.5 * shift) < 6 * spread / np.sqrt(4000)).all()
    ratio = without.std(axis=0) / subject.sigmas[:, None]
    assert (abs(ratio - 1) < 6 / np.sqrt(2 * 4000)).all()
    with pytest.raises(InputError, match="fields"):
        subject.audit_release({"agent": 0}, 1, np.random.default_rng(0))
    with pytest.raises(InputError, match="there are 8"):
        subject.audit_release({"agent": 8, "present": True}, 1, np.random.default_rng(0))


def test_a_run_is_its_plan_and_repeats() -> None:
    (one, ledger), (two, _) = run(SMALL), run(SMALL)
    assert one == two
    assert ledger.spent().hash == SMALL.plan().hash
    regret = one.for_owner.series["simple regret"]
    assert len(regret) == 7
    assert all(later <= earlier for earlier, later in itertools.pairwise(regret))
    assert regret[-1] >= 0
    assert one.for_owner.summary["final simple regret"] == regret[-1]
    assert run(SMALL, seed=5)[0].owner != one.owner


def test_one_region_is_dp_fts() -> None:
    whole = replace(SMALL, regions=1)
    fields = configuration(whole)
    single = DPFTS(**fields)
    assert single.plan().hash == whole.plan().hash
    assert run(single)[0].owner == run(whole)[0].owner
    assert single.claim() == whole.claim()
    # One region has the paper's sensitivity: there is nothing to gain.
    assert single.certified(Sensitivity.JOINT) == pytest.approx(single.certified(Sensitivity.PAPER))
    assert "noise-above-sensitivity" not in [finding.rule for finding in single.findings()]


def test_a_silent_agent_changes_no_other_agents_first_points() -> None:
    with_it, without = run(SMALL)[0], run(SMALL, WithoutAgent(PROBLEM, 2))[0]
    with_it, without = with_it.for_owner, without.for_owner
    assert with_it.series["simple regret"][0] == without.series["simple regret"][0]


TINY = {"agents": 6, "rate": 0.5, "features": 10, "rounds": 4, "initial": 3, "clip": 2.0}
KINDS = (DPFTS, DPFTSDE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", ["poisson", "fixed-size"])
def test_a_rehearsal_finds_nothing(kind: type, sampling: str) -> None:
    assert rules(kind(**TINY, sampling=sampling, noise_multiplier=5.0)) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_rehearsal_finds_vectors_that_are_not_clipped(kind: type) -> None:
    class Unlimited(Server):
        @property
        def limit(self) -> float:
            return math.inf

    mistaken = type("Mistaken", (kind,), {"server_class": Unlimited})
    assert rules(mistaken(**TINY)) == {"sensitivity-understated"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rehearsal_finds_a_regret_that_is_published(kind: type) -> None:
    mistaken = type("Mistaken", (Gossip, kind), {})
    assert rules(mistaken(**TINY)) == {"result-not-from-releases"}
