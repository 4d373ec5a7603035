"""DP-FTS-DE over Flower: the same run, whoever fails, and no process left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpaudit.certificate import load_certificate
from dpaudit.errors import InputError
from dpaudit.ledger import read_journal
from private_bo.federated import DPFTSDE, Broadcast, FederatedProblem, Report, synthetic
from private_bo.federated.flower import __main__ as command
from private_bo.federated.flower.agent import OneAgent, answer, finish
from private_bo.federated.flower.processes import FederationError, Loopback
from private_bo.federated.flower.run import Trajectory, in_process, over_flower
from private_bo.federated.flower.server import serve
from private_bo.federated.flower.setup import AgentFiles, Seeds, ServerFiles, load_array
from private_bo.federated.flower.transport import FlowerTransport

# Flower's own imports warn; nothing of it is called in this process but its message types.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").is_file(), reason="processes are counted in /proc"
)

ALGORITHM = DPFTSDE(agents=3, regions=2, rate=0.5, rounds=4, initial=3, delta=1e-5)


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Flower tells a process before it calls an app in it."""
    from flwr.supercore.task_identity import TaskIdentity

    for number, name in enumerate(("_task_id", "_run_id", "_node_id"), start=1):
        monkeypatch.setattr(TaskIdentity, name, number)


def problem(agents: int = 3) -> FederatedProblem:
    return synthetic(agents, seed=7, points=200)


class MemoryGrid:
    """Flower's grid without processes: the nodes' functions are called on its own messages."""

    def __init__(self, nodes: dict[int, Callable[[Any], Any]]) -> None:
        self.nodes = nodes
        self.answers: dict[str, Any] = {}
        self.kinds: list[str] = []

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Any]) -> list[str | None]:
        names: list[str | None] = []
        for message in messages:
            name = f"message {len(self.kinds)}"
            self.kinds.append(message.metadata.message_type)
            message.metadata.__dict__["_message_id"] = name
            node = self.nodes[message.metadata.dst_node_id]
            if (reply := node(message)) is not None:
                self.answers[name] = reply
            names.append(name)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> list[Any]:
        return [self.answers.pop(name) for name in set(message_ids) & set(self.answers)]


def client(folder: Path) -> Callable[[Any], Any]:
    """A node with an agent, whose memory is all that is kept between two messages."""
    from flwr.app import Context, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()
    app.query()(answer)
    app.query("finish")(finish)
    context = Context(1, 2, {"folder": str(folder)}, RecordDict(), {})

    def node(message: Any) -> Any:
        return app(message, context)

    return node


def sends(content: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A node that answers with whatever the function makes of the message."""
    from flwr.app import ConfigRecord, Message, RecordDict

    def node(message: Any) -> Any:
        record = RecordDict({"report": ConfigRecord(content(message))})
        return Message(record, reply_to=message)

    return node


def failing(message: Any) -> Any:
    from flwr.app import Error, Message

    return Message(Error(0, "out of order"), reply_to=message)


def silent(message: Any) -> Any:
    return None


def parties(tmp_path: Path, agents: int = 3) -> tuple[ServerFiles, list[AgentFiles]]:
    seeds = Seeds(5)
    server = ServerFiles(tmp_path / "server")
    server.write(ALGORITHM, seeds, patience=0.5)
    files = [AgentFiles(tmp_path / f"agent-{n}") for n in range(agents)]
    for number, each in enumerate(files):
        each.write(ALGORITHM, problem(), number, seeds, None)
    return server, files


def played(server: ServerFiles, grid: MemoryGrid) -> dict[str, Any]:
    serve(grid, SimpleNamespace(run_config={"folder": str(server.folder)}))
    counts: dict[str, Any] = json.loads(server.counts.read_text())
    return counts


def test_messages_alone_give_the_trajectory_of_one_process(tmp_path: Path) -> None:
    server, files = parties(tmp_path)
    grid = MemoryGrid({100 - n: client(each.folder) for n, each in enumerate(files)})
    counts = played(server, grid)
    found = Trajectory(
        load_array(server.broadcasts),
        tuple(tuple(json.loads(each.choices.read_text())) for each in files),
    )
    expected = in_process(ALGORITHM, problem(), 5)
    assert found.digest == expected.digest
    assert np.array_equal(found.broadcasts, expected.broadcasts)
    assert [len(row) for row in found.choices] == [3 + 4] * 3
    assert counts == {"missing": [0] * 4, "refused": {}, "releases": 4}
    assert grid.kinds == ["query"] * 12 + ["query.finish"] * 3
    assert found.digest != in_process(ALGORITHM, problem(), 6).digest


def test_the_server_keeps_ledger_and_certificate_and_no_objective(tmp_path: Path) -> None:
    server, files = parties(tmp_path)
    played(server, MemoryGrid({n: client(each.folder) for n, each in enumerate(files)}))
    journal = read_journal(server.journal)
    assert (len(journal.entries), journal.closed) == (4, True)
    certificate = load_certificate(server.certificate)
    assert certificate.verdict == "certified"
    assert certificate.plan == journal.plan == ALGORITHM.plan()
    assert "seeded-noise" in {finding.rule for finding in certificate.findings}
    assert {path.name for path in server.folder.iterdir()} == {
        *("setup.json", "ledger.jsonl", "certificate.json", "broadcasts.npy", "counts.json")
    }


def test_an_agent_holds_its_own_objective_and_generator_alone(tmp_path: Path) -> None:
    server, files = parties(tmp_path)
    streams = Seeds(5).streams()
    others = {json.dumps(streams.agent(n).bit_generator.state["state"]["state"]) for n in (0, 2)}
    secret = {
        *others,
        *(str(word) for word in streams.entropy),
        json.dumps(streams.server().bit_generator.state["state"]["state"]),
    }
    text = (files[1].folder / "setup.json").read_text()
    assert not [word for word in secret if word in text]
    assert np.array_equal(load_array(files[1].folder / "objective.npy"), problem().values(1))
    for folder in (server.folder, files[1].folder):
        assert folder.stat().st_mode & 0o077 == 0


def test_memory_is_all_that_an_agent_is(tmp_path: Path) -> None:
    _, files = parties(tmp_path)
    rng = np.random.default_rng(0)
    shown = [Broadcast.none_yet(2, 50), *(Broadcast(t, rng.normal(size=(2, 50))) for t in (0, 1))]
    lasting, renewed = OneAgent(files[1].read()), OneAgent(files[1].read())
    for broadcast in shown:
        renewed = OneAgent.with_memory(files[1].read(), json.loads(json.dumps(renewed.memory())))
        for agent in (lasting, renewed):
            agent.act(broadcast)
        (one,), (other,) = (agent.reports(broadcast.round + 1) for agent in (lasting, renewed))
        assert one.to_dict() == other.to_dict()
        assert lasting.memory() == renewed.memory()


@pytest.mark.parametrize("broken", [failing, silent, sends(lambda m: {"round": 0})])
def test_a_node_without_a_report_is_a_missing_agent(
    tmp_path: Path, broken: Callable[[Any], Any]
) -> None:
    server, files = parties(tmp_path)
    nodes = {n: client(each.folder) for n, each in enumerate(files)}
    counts = played(server, MemoryGrid(nodes | {1: broken}))
    # Malformed answers are refused by the server; errors and silence are nothing at all.
    refused = {} if broken in (failing, silent) else {"malformed": 4}
    assert counts == {"missing": [1] * 4, "refused": refused, "releases": 4}
    expected = in_process(ALGORITHM, problem(), 5, stops={1: 0})
    assert np.array_equal(load_array(server.broadcasts), expected.broadcasts)
    assert len(read_journal(server.journal).entries) == 4


def test_a_federation_without_agents_releases_noise_all_the_same(tmp_path: Path) -> None:
    server, _ = parties(tmp_path)
    setup = server.read()
    transport = FlowerTransport(MemoryGrid({}), 0.1)
    assert transport.exchange(Broadcast.none_yet(2, 50)) == []
    stops = dict.fromkeys(range(3), 0)
    shown = in_process(setup.algorithm, problem(), 5, stops=stops).broadcasts
    assert shown.shape == (4, 2, 50)
    assert (shown != 0).all()


def test_a_node_speaks_for_one_agent_and_an_agent_has_one_node() -> None:
    def says(agent: int) -> Callable[[Any], Any]:
        return sends(lambda m: Report(0, agent, np.full(4, float(agent))).to_dict())

    nodes = {1: says(0), 2: says(1), 3: says(1)}
    transport = FlowerTransport(MemoryGrid(nodes), 1.0)
    first = transport.exchange(Broadcast.none_yet(2, 4))
    assert [r.agent if isinstance(r, Report) else None for r in first] == [0, 1, None]
    nodes[1] = says(1)  # now in another's name
    second = transport.exchange(Broadcast.none_yet(2, 4))
    assert [r.agent if isinstance(r, Report) else None for r in second] == [None, 1, None]


def test_nobody_waits_twice_for_a_silent_node_but_it_may_come_back() -> None:
    def says(agent: int) -> Callable[[Any], Any]:
        return sends(lambda m: Report(0, agent, np.ones(4)).to_dict())

    def exchange() -> tuple[int, bool]:
        began = time.monotonic()
        heard = len(transport.exchange(Broadcast.none_yet(2, 4)))
        return heard, time.monotonic() - began > 1.9

    nodes = {1: says(1), 2: silent}
    transport = FlowerTransport(MemoryGrid(nodes), patience=2.0)
    assert [exchange(), exchange()] == [(1, True), (1, False)]
    nodes[2] = says(2)
    assert exchange() == (2, False)
    nodes[2] = silent
    assert exchange() == (1, True)


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


def test_a_server_that_fails_says_why(tmp_path: Path) -> None:
    server, _ = parties(tmp_path)
    server.journal.write_text("an earlier run")
    with pytest.raises(InputError, match="exists already"):
        played(server, MemoryGrid(dict.fromkeys(range(3), silent)))
    assert server.error.read_text().startswith("InputError: journal")
    assert not server.counts.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--stop", "one"], "stop is 'one'; it must be AGENT@ITERATION"),
        (["--stop", "9@1"], "stop is 9@1; it must be an agent below 4"),
        (["--agents", "0"], "agents is 0; it must be"),
        (["--patience", "0"], "patience is 0.0; it must be"),
        (["--rate", "0.1"], "rate is 0.1, which samples 0.4 of 4 agents"),
        (["--folder", "/"], "folder '/' exists already"),
        (["--seed", "-1"], "seed is -1; it must be"),
    ],
)
def test_wrong_input_is_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments) == 3
    error = capsys.readouterr().err
    assert error.startswith(sentence)
    assert error.count("\n") == 1


def test_other_problems_and_unused_broadcasts_are_refused() -> None:
    with pytest.raises(InputError, match="problem has 2 agents; it must have 3"):
        in_process(ALGORITHM, problem(2), 0)
    with pytest.raises(InputError, match="last_broadcast is true"):
        in_process(DPFTSDE(agents=3, last_broadcast=True, rate=0.5), problem(), 0)


# -- real processes ------------------------------------------------------------------------------


def alive(groups: Iterable[int]) -> list[str]:
    """Processes of these groups that have not ended."""
    wanted, found = set(groups), []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, _, group = rest.split()[:3]
        if int(group) in wanted and state != "Z":
            found.append(f"{name}) in group {group}")
    return found


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The process groups of every federation that is started."""
    groups: list[int] = []
    start = Loopback._spawn

    def spawn(self: Loopback, *arguments: str) -> Any:
        process = start(self, *arguments)
        groups.append(process.pid)
        return process

    monkeypatch.setattr(Loopback, "_spawn", spawn)
    yield groups
    for group in groups:
        if alive([group]):
            os.killpg(group, signal.SIGKILL)


SMALL = DPFTSDE(agents=2, regions=2, rate=0.5, rounds=2, initial=3, delta=1e-5)


@needs_proc
@pytest.mark.slow
def test_processes_over_flower_give_the_trajectory_of_one_process(
    tmp_path: Path, started: list[int]
) -> None:
    once = replace(SMALL, rounds=1)
    run = over_flower(once, problem(2), 3, tmp_path, patience=120)
    assert run.trajectory.digest == in_process(once, problem(2), 3).digest
    assert (run.missing, dict(run.refused)) == ((0,), {})
    journal = read_journal(run.server.journal)
    assert (len(journal.entries), journal.closed) == (1, True)
    assert load_certificate(run.server.certificate).verdict == "certified"
    assert len(started) == 5  # SuperLink, its SuperExec, two SuperNodes, and the submission
    assert alive(started) == []


@needs_proc
@pytest.mark.slow
def test_an_agent_that_is_killed_is_missing_from_then_on(
    tmp_path: Path, started: list[int]
) -> None:
    run = over_flower(SMALL, problem(2), 4, tmp_path, patience=40, stops={1: 1})
    expected = in_process(SMALL, problem(2), 4, stops={1: 1})
    assert run.missing == (0, 1)
    assert run.trajectory.choices == expected.choices
    assert run.trajectory.digest == expected.digest
    assert len(read_journal(run.server.journal).entries) == 2
    assert alive(started) == []


STARTER = """
import sys
from pathlib import Path
from private_bo.federated.flower.processes import Loopback

with Loopback(Path(sys.argv[1]), [{"agent": 0}]) as federation:
    print(*federation.process_groups, flush=True)
    sys.stdin.read()
"""


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_its_starter(tmp_path: Path, how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        groups = [int(word) for word in starter.stdout.readline().split()]
        assert len(groups) == 3
        assert len(alive(groups)) >= 3
        starter.send_signal(how)
        starter.wait(timeout=30)
    deadline = time.monotonic() + 20
    while (left := alive(groups)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


@pytest.mark.slow
def test_a_superlink_that_cannot_start_is_told(
    tmp_path: Path, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("private_bo.federated.flower.processes._LOOPBACK", "127.0.0.300")
    monkeypatch.setattr("private_bo.federated.flower.processes._free_ports", lambda count: [1, 2])
    with (
        pytest.raises(FederationError, match="superlink ended: "),
        Loopback(tmp_path, [{"agent": 0}]),
    ):
        pass
    assert alive(started) == []
