"""Each party's folder holds what is its own, and nothing of the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flower_grid import ALGORITHM, SEED, parties, problem

from dpaudit.errors import InputError
from private_bo.federated import Streams
from private_bo.federated.flower.app import AgentSetup, ServerSetup, generators, setup_in


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
