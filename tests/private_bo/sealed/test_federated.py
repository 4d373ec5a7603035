"""DP-FTS-DE, sealed: the releases of the study, agent for agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from same_releases import require_same, sealed_steps, steps_of, written
from sealed_studies import liking, liking_of

from private_bo import BoxSpace, federated, own, sealed
from private_bo.federated.problems import FederatedProblem, synthetic

SMALL: dict[str, Any] = {"agents": 12, "rounds": 4, "rate": 0.5, "initial": 5, "features": 10}


def problem_and_table(folder: Path, points: int = 60, **more: Any) -> tuple[FederatedProblem, str]:
    """Agents of the synthetic problem, on six places, and a table of them."""
    made = synthetic(agents=12, seed=3, points=points, length_scale=0.1)
    table = np.round(made.table, 6)
    problem = FederatedProblem.tabled("agents.csv", made.domain, table, made.noise)
    rows = (
        [f"agent {agent:02}", agent, point, f"{value:.6f}"]
        for agent, values in enumerate(table)
        for point, value in enumerate(values)
    )
    return problem, written(folder / "rows.csv", ["agent", "number", "point", "value"], rows)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("DPFTSDE", {}),
        ("DPFTSDE", {"standardise": True, "last_broadcast": True, "sharp_rounds": 2}),
        ("DPFTSDE", {"sampling": "fixed-size", "refit_every": None}),
        ("DPFTS", {"beta": 0.5}),
    ],
)
def test_releases_are_those_of_the_study(kind: str, change: dict[str, Any], tmp_path: Path) -> None:
    problem, path = problem_and_table(tmp_path)
    plain = getattr(federated, kind)(**SMALL, **change)
    own = getattr(sealed, kind)(**SMALL, **change, per_axis=60)
    assert own.plan() == plain.plan()
    assert own.claim() == plain.claim()
    first, result = steps_of(plain, problem)
    then, found = sealed_steps(own, path)
    assert len(first) == plain.exchanges
    # Each agent's part is rounded to 1e-9, and in the sum to 2^-26 of the sensitivity.
    most = max(each.sensitivity for each in own.plan().invocations)
    require_same(first, then, within=12 * most * 2.0**-26)
    assert found.to_dict() == result.to_dict()


def test_a_study_releases_as_without_a_seal_but_for_rounding(tmp_path: Path) -> None:
    usual: dict[str, Any] = {"space": BoxSpace((0,), (1,)), "users": 8, "evaluations": 2}
    columns = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
    plain = own.FederatedStudy(objective=liking_of, **usual)
    subject = sealed.FederatedStudy(objective=liking, columns=columns, **usual)
    assert subject.plan() == plain.plan()
    assert subject.claim() == plain.claim()
    best = np.random.default_rng(6).random(8).round(2).tolist()
    rows = ([f"agent {place}", place, each] for place, each in enumerate(best))
    path = written(tmp_path / "agents.csv", ["agent", "number", "best"], rows)
    first, result = steps_of(plain, [{"best": each} for each in best])
    then, found = sealed_steps(subject, path)
    require_same(first, then, within=1e-6)  # where an agent asks next follows from what is rounded
    wanted = result.summary["recommended"]
    np.testing.assert_allclose(found.summary["recommended"], wanted, atol=1e-3)
