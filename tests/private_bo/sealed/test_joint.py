"""Joint and local-joint trust, sealed: the releases of the study, and what lying users move."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from same_releases import require_same, sealed_steps, steps_of, written

from dpaudit import InputError
from private_bo import joint, sealed
from private_bo.joint.subject import TabledProblem

KINDS = [(joint.JointGPUCB, sealed.JointGPUCB), (joint.LocalJointGPUCB, sealed.LocalJointGPUCB)]
STEPS = 40


def problem_and_table(folder: Path, steps: int = STEPS) -> tuple[TabledProblem, str]:
    """Users of the synthetic problem, on six places, and a table of them."""
    made = joint.JointGPUCB(steps=steps).load("bump", np.random.default_rng(3))
    assert isinstance(made, TabledProblem)
    problem = replace(made, arms=np.round(made.arms, 6), name="decisions.csv")
    rows = (
        [f"user {turn + 1}", *(f"{x:.6f}" for x in arm), problem.reward(turn, place)]
        for turn in range(steps)
        for place, arm in enumerate(problem.decision_set(turn))
    )
    return problem, written(folder / "rows.csv", ["user", "x1", "x2", "reward"], rows)


@pytest.mark.parametrize(("study", "sealed_study"), KINDS)
def test_releases_are_those_of_the_study(study, sealed_study, tmp_path):
    problem, path = problem_and_table(tmp_path)
    plain, own = study(steps=STEPS), sealed_study(steps=STEPS)
    assert own.plan() == plain.plan()
    assert own.claim() == plain.claim()
    first, result = steps_of(plain, problem)
    then, found = sealed_steps(own, path)
    require_same(first, then, within=2e-7)  # 29 features are rounded to 1e-9, and shrunk by 1.2e-7
    assert found.to_dict() == result.to_dict()


@pytest.mark.parametrize(("study", "sealed_study"), KINDS)
@pytest.mark.parametrize(
    "change",
    [{"noise": "paper"}, {"matrix_weight": 0.5}, {"centred": False}, {"out_of_range": "refuse"}],
)
def test_what_cannot_be_bounded_is_refused(study, sealed_study, change):
    with pytest.raises(InputError, match="sealed run"):
        sealed_study(**change)
    study(**change)
