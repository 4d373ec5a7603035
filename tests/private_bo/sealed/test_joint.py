"""Joint and local-joint trust, sealed: the releases of the study, and what lying users move."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from same_releases import require_same, sealed_steps, steps_of, written
from sealed_studies import liking, liking_of

from dpaudit import InputError
from private_bo import BoxSpace, joint, own, sealed
from private_bo.joint.subject import DecisionProblem

KINDS = [(joint.JointGPUCB, sealed.JointGPUCB), (joint.LocalJointGPUCB, sealed.LocalJointGPUCB)]
STEPS = 40


def problem_and_table(folder: Path, steps: int = STEPS) -> tuple[DecisionProblem, str]:
    """Users of the synthetic problem, on six places, and a table of them."""
    made = joint.JointGPUCB(steps=steps).load("bump", np.random.default_rng(3))
    assert isinstance(made, DecisionProblem)
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


@pytest.mark.parametrize("answers", [(0.0, 1.0), (-3.0, 2.0)])
def test_groups_are_released_as_without_a_seal_but_for_their_step(answers, tmp_path):
    usual = {"space": BoxSpace((0,), (1,)), "users": 23, "group": 5, "answers": answers}
    columns = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
    plain = own.JointStudy(objective=liking_of, **usual)
    subject = sealed.JointStudy(objective=liking, columns=columns, **usual)
    assert subject.plan() == plain.plan()
    assert subject.claim() == plain.claim()
    best = np.random.default_rng(6).random(23).round(2).tolist()
    rows = ([f"user {place + 1}", each] for place, each in enumerate(best))
    path = written(tmp_path / "users.csv", ["user", "best"], rows)
    first, result = steps_of(plain, [{"best": each} for each in best])
    then, found = sealed_steps(subject, path)
    require_same(first, then, within=5 * (1e-6 + 2.0**-27))  # of five answers
    wanted = result.summary["recommended"]
    np.testing.assert_allclose(found.summary["recommended"], wanted, atol=1e-3)


def near(records, rng):
    return [[records["best"][0] - 0.2], [records["best"][0]], [0.5]]


def near_of(user):
    return near({"best": [user["best"]]}, None)


@pytest.mark.parametrize("with_options", [True, False])
def test_devices_choose_and_release_as_without_a_seal_but_for_their_step(with_options, tmp_path):
    usual = {"space": BoxSpace((-1,), (2,)), "users": 15, "epsilon": 8.0}
    columns = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
    options = near_of if with_options else None
    plain = own.LocalJointStudy(objective=liking_of, options=options, **usual)
    options = near if with_options else None
    subject = sealed.LocalJointStudy(objective=liking, options=options, columns=columns, **usual)
    assert subject.plan() == plain.plan()
    assert subject.claim() == plain.claim()
    best = np.random.default_rng(6).random(15).round(2).tolist()
    rows = ([f"user {place + 1}", each] for place, each in enumerate(best))
    path = written(tmp_path / "users.csv", ["user", "best"], rows)
    first, result = steps_of(plain, [{"best": each} for each in best])
    then, found = sealed_steps(subject, path)
    require_same(first, then, within=2e-7)
    wanted = result.summary["recommended"]
    np.testing.assert_allclose(found.summary["recommended"], wanted, atol=1e-3)
