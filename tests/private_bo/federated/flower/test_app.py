"""Each party's folder holds what is its own, and nothing of the others."""

from __future__ import annotations

import json
import pickle
import tomllib
from collections.abc import Callable
from importlib import import_module
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

from dpaudit.base.errors import InputError
from dpaudit.certificate import load_certificate
from dpaudit.ledger import read_journal
from private_bo.federated import Broadcast, Streams
from private_bo.federated.flower import app
from private_bo.federated.flower.app import (
    CERTIFICATE,
    CHOICES,
    ERROR,
    JOURNAL,
    RESULT,
    AgentSetup,
    ServerSetup,
    generators,
    setup_in,
)
from private_bo.federated.flower.run import Trajectory, in_process


def state(generator: np.random.Generator) -> int:
    return int(generator.bit_generator.state["state"]["state"])


def test_an_agent_holds_its_own_objective_and_generator_alone(tmp_path: Path) -> None:
    server, agents = parties(tmp_path)
    streams = Streams.of(generators(SEED)[1])
    others = [streams.agent(n) for n in (0, 2)] + [generators(SEED)[2]]
    content = (agents[1] / "setup.pickle").read_bytes()
    secrets = [*map(state, others), *streams.entropy]
    for secret in secrets:
        assert secret.to_bytes((secret.bit_length() + 7) // 8, "little") not in content
        assert str(secret).encode() not in content
    for n in (0, 2):
        assert problem().values(n).tobytes() not in content
    setup: AgentSetup = setup_in(agents[1])
    rng = np.random.default_rng(0)
    expected = [problem().values(1)[x] for x in range(5)]
    noisy = [setup.agent.observe(1, x, rng) for x in range(5)]
    assert noisy == pytest.approx(expected, abs=0.1)
    assert state(setup.agent.generators[0]) == state(streams.agent(1))
    for folder in (server, *agents):
        assert folder.stat().st_mode & 0o077 == 0


def test_the_server_holds_its_generator_and_no_objective(tmp_path: Path) -> None:
    server, _ = parties(tmp_path)
    setup: ServerSetup = setup_in(server)
    assert setup.algorithm == ALGORITHM
    assert state(setup.noise) == state(generators(SEED)[2])
    content = (server / "setup.pickle").read_bytes()
    assert not any(problem().values(n).tobytes() in content for n in range(3))


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_seeds_are_integers_of_at_least_0(seed: object) -> None:
    with pytest.raises(InputError, match="seed is"):
        generators(seed)  # type: ignore[arg-type]


# Flower's own imports warn; nothing of it is called in this process but its message types.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    identify(monkeypatch)


def test_memory_is_all_that_an_agent_is(tmp_path: Path) -> None:
    _, agents = parties(tmp_path)
    rng = np.random.default_rng(0)
    shown = [Broadcast.none_yet(2, 50), *(Broadcast(t, rng.normal(size=(2, 50))) for t in (0, 1))]
    lasting, renewed = setup_in(agents[1]).agent, setup_in(agents[1]).agent
    for broadcast in shown:
        memory = pickle.dumps(renewed.state)
        renewed = setup_in(agents[1]).agent
        renewed.resume(pickle.loads(memory))
        for agent in (lasting, renewed):
            agent.act(broadcast)
        (one,), (other,) = (agent.reports(broadcast.round + 1) for agent in (lasting, renewed))
        assert one.to_dict() == other.to_dict()
        assert lasting.choices.tolist() == renewed.choices.tolist()
        assert lasting.seen.tolist() == renewed.seen.tolist()


# Flower's own imports warn; nothing of it is called in this process but its message types.


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
    with pytest.raises(InputError, match="already exists"):
        played(server, MemoryGrid(dict.fromkeys(range(3), silent)))
    assert (server / ERROR).read_text().startswith("InputError: journal")
    assert not (server / RESULT).exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_project_file_names_components_that_exist(tmp_path: Path) -> None:
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp

    folder = app.write_app(tmp_path / "app")
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    components = project["tool"]["flwr"]["app"]["components"]
    for name, kind in (("serverapp", ServerApp), ("clientapp", ClientApp)):
        module, _, attribute = components[name].partition(":")
        assert isinstance(getattr(import_module(module), attribute), kind)
    with pytest.raises(AttributeError, match="no attribute 'other_app'"):
        _ = app.other_app
