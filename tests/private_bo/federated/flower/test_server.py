"""The server's side over messages alone: the run of one process, whoever fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flower_grid import (
    ALGORITHM,
    SEED,
    MemoryGrid,
    client,
    failing,
    identify,
    parties,
    played,
    problem,
    sends,
    silent,
)

from dpaudit.certificate import load_certificate
from dpaudit.errors import InputError
from dpaudit.ledger import read_journal
from private_bo.federated.flower.app import CERTIFICATE, CHOICES, ERROR, JOURNAL, RESULT
from private_bo.federated.flower.run import Trajectory, in_process

# Flower's own imports warn; nothing of it is called in this process but its message types.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    identify(monkeypatch)


def test_messages_alone_give_the_trajectory_of_one_process(tmp_path: Path) -> None:
    server, agents = parties(tmp_path)
    grid = MemoryGrid({100 - n: client(own) for n, own in enumerate(agents)})
    result = played(server, grid)
    found = Trajectory(
        result["broadcasts"],
        tuple(tuple(json.loads((own / CHOICES).read_text())) for own in agents),
    )
    expected = in_process(ALGORITHM, problem(), SEED)
    assert found.digest == expected.digest
    assert np.array_equal(found.broadcasts, expected.broadcasts)
    assert [len(row) for row in found.choices] == [3 + 4] * 3
    assert (result["missing"], result["refused"]) == ([0] * 4, {})
    assert grid.kinds == ["query"] * 12 + ["query.finish"] * 3


def test_the_server_keeps_ledger_and_certificate_and_no_objective(tmp_path: Path) -> None:
    server, agents = parties(tmp_path)
    played(server, MemoryGrid({n: client(own) for n, own in enumerate(agents)}))
    journal = read_journal(server / JOURNAL)
    assert (len(journal.entries), journal.closed) == (4, True)
    certificate = load_certificate(server / CERTIFICATE)
    assert certificate.verdict == "certified"
    assert certificate.plan == journal.plan == ALGORITHM.plan()
    assert certificate.subject.configuration["rate"] == 0.5
    assert "seeded-noise" in {finding.rule for finding in certificate.findings}
    names = {path.name for path in server.iterdir()}
    assert names == {"setup.pickle", JOURNAL, CERTIFICATE, RESULT}


@pytest.mark.parametrize("broken", [failing, silent, sends(lambda m: {"round": 0})])
def test_a_node_without_a_report_is_a_missing_agent(
    tmp_path: Path, broken: Callable[[Any], Any]
) -> None:
    server, agents = parties(tmp_path)
    nodes = {n: client(own) for n, own in enumerate(agents)}
    result = played(server, MemoryGrid(nodes | {1: broken}))
    # Malformed answers are refused by the server; errors and silence are nothing at all.
    refused = {} if broken in (failing, silent) else {"malformed": 4}
    assert (result["missing"], result["refused"]) == ([1] * 4, refused)
    expected = in_process(ALGORITHM, problem(), SEED, stops={1: 0})
    assert np.array_equal(result["broadcasts"], expected.broadcasts)
    assert len(read_journal(server / JOURNAL).entries) == 4


def test_a_server_that_fails_says_why(tmp_path: Path) -> None:
    server, _ = parties(tmp_path)
    (server / JOURNAL).write_text("an earlier run")
    with pytest.raises(InputError, match="exists already"):
        played(server, MemoryGrid(dict.fromkeys(range(3), silent)))
    assert (server / ERROR).read_text().startswith("InputError: journal")
    assert not (server / RESULT).exists()
