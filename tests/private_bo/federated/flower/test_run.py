"""DP-FTS-DE over Flower's processes: the same run as in one process, and no process left behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flower_grid import ALGORITHM, problem
from flower_processes import alive, needs_proc

from dpaudit.base.errors import InputError
from dpaudit.certificate import load_certificate
from dpaudit.ledger import read_journal
from private_bo.federated import DPFTSDE
from private_bo.federated.flower.app import CERTIFICATE, JOURNAL
from private_bo.federated.flower.run import Trajectory, in_process, over_flower

SMALL = DPFTSDE(agents=2, regions=2, rate=0.5, rounds=2, initial=3, delta=1e-5)


def test_the_digest_is_of_every_bit() -> None:
    once = Trajectory(np.ones((2, 1, 3)), ((0, 1), (2,)))
    moved = once.broadcasts.copy()
    moved[1, 0, 2] = np.nextafter(1.0, 2.0)
    others = [
        Trajectory(moved, once.choices),
        Trajectory(once.broadcasts.reshape(1, 2, 3), once.choices),
        Trajectory(once.broadcasts, ((0,), (1, 2))),
    ]
    assert once.digest == Trajectory(np.ones((2, 1, 3)), once.choices).digest
    assert len({once.digest, *(other.digest for other in others)}) == 4


def test_another_seed_is_another_run() -> None:
    digests = {in_process(ALGORITHM, problem(), seed).digest for seed in (5, 5, 6)}
    assert len(digests) == 2


def test_other_problems_and_unused_broadcasts_are_refused() -> None:
    with pytest.raises(InputError, match="problem has 2 agents; it must have 3"):
        in_process(ALGORITHM, problem(2), 0)
    with pytest.raises(InputError, match="last_broadcast is true"):
        in_process(DPFTSDE(agents=3, last_broadcast=True, rate=0.5), problem(), 0)


@needs_proc
@pytest.mark.slow
def test_processes_give_the_trajectory_of_one_and_a_killed_agent_is_missing(
    tmp_path: Path, started: list[int]
) -> None:
    """Both agents act in iteration 0; one is killed in iteration 1."""
    run = over_flower(SMALL, problem(2), 4, tmp_path, patience=20, stops={1: 1})
    expected = in_process(SMALL, problem(2), 4, stops={1: 1})
    assert run.missing == (0, 1)
    assert dict(run.refused) == {}
    assert run.trajectory.choices == expected.choices
    assert run.trajectory.digest == expected.digest
    journal = read_journal(run.server / JOURNAL)
    assert (len(journal.entries), journal.closed) == (2, True)
    assert load_certificate(run.server / CERTIFICATE).verdict == "certified"
    assert len(started) == 4  # SuperLink, its SuperExec and two SuperNodes
    assert alive(started) == []
