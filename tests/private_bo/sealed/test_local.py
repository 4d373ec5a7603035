"""Local trust, sealed: the same plan, the same releases, and refusals in one sentence."""

from __future__ import annotations

from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sealed_studies import (
    BANDITS,
    bandit,
    liking_of,
    made_rewards,
    plain,
    problem,
    released,
    released_on_handles,
    study,
    write_rewards,
    write_users,
)

from dpaudit import guarantee
from dpaudit.base.errors import InputError
from dpaudit.certificate import Premise, Standing
from dpaudit.sealed.sandbox import lacking
from dpaudit.workflow.running import RunOptions, open_target, run_subject, run_target
from private_bo import sealed

pytest.importorskip("duckdb")


def twin(subject):
    """The study without a seal, whose plan and claim are the same."""
    other = plain(subject)
    assert (subject.plan(), subject.claim()) == (other.plan(), other.claim())
    assert guarantee(subject.plan(), 0.0).epsilon <= subject.claim().epsilon * (1 + 1e-12)
    return other


def facts(steps):
    return [(each.unit, each.value.tolist(), each.released) for each in steps]


@pytest.mark.parametrize("kind", BANDITS)
@pytest.mark.parametrize("answers", [1, 2])
def test_rewards_on_the_grid_are_released_as_without_a_seal(kind, answers, tmp_path):
    subject = bandit(kind, answers_per_user=answers)
    rewards = made_rewards(subject)
    write_rewards(tmp_path / "rewards.csv", rewards)
    result, steps = released_on_handles(subject, tmp_path)
    other, unsealed = released(twin(subject), problem(subject, rewards))
    assert facts(steps) == facts(unsealed)
    assert len(steps) == subject.responses
    told = ("recommended", "estimated mean of the recommended", "responses")
    assert [result.summary[each] for each in told] == [other.summary[each] for each in told]
    assert result.owner is None


@pytest.mark.parametrize("kind", BANDITS)
def test_rewards_between_steps_are_rounded_and_no_more(kind, tmp_path):
    """The one difference: what the device holds is the nearest multiple of ``step``."""
    subject = bandit(kind, step=0.01)
    rewards = made_rewards(subject, places=15)
    write_rewards(tmp_path / "rewards.csv", rewards)
    _, steps = released_on_handles(subject, tmp_path)
    nearest = {key: round(100 * reward) / 100 for key, reward in rewards.items()}
    _, rounded = released(plain(subject), problem(subject, nearest))
    assert facts(steps) == facts(rounded)
    _, exact = released(plain(subject), problem(subject, rewards))
    if kind is not sealed.LDPOneBitGP:
        apart = abs(float(steps[0].value) - float(exact[0].value))
        assert 0 < apart <= 0.005 + 1e-12


@pytest.mark.parametrize("kind", [sealed.LDPTGPUCB, sealed.LDPOneBitGP])
def test_who_has_no_reward_answers_the_middle(kind, tmp_path):
    subject = bandit(kind, steps=400)
    write_rewards(tmp_path / "rewards.csv", {("somebody else", 0): 1.0})
    _, steps = released_on_handles(subject, tmp_path)
    values = np.array([float(each.value) for each in steps])
    if kind is sealed.LDPOneBitGP:
        # a fair coin: 400 of them are 6 standard deviations, 60, from their mean once in 1e8
        assert abs(values.sum() - 200) < 60
    else:
        assert (values == 0).all()


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("answers", [(0.0, 1.0), (-3.0, 2.0), (0.0, 3.0)])
def test_answers_are_released_as_without_a_seal_but_for_their_step(epsilon, answers, tmp_path):
    subject = study(epsilon=epsilon, answers=answers)
    records = write_users(tmp_path / "users.csv", subject.names)
    result, steps = released_on_handles(subject, tmp_path)
    other, unsealed = released(replace(twin(subject), objective=liking_of), records)
    assert (subject.levels.count == 2) is (epsilon == 1.0)
    for one, two in zip(steps, unsealed, strict=True):
        assert (one.unit, one.value, one.released) == (two.unit, two.value, two.released)
    np.testing.assert_allclose(
        result.summary["recommended"], other.summary["recommended"], atol=1e-3
    )


def failing(records, rng, point):
    raise ValueError(records)


@pytest.mark.parametrize(
    ("objective", "words"), [(failing, "failing fails on"), (None, "objective is None")]
)
def test_without_answers_nothing_is_released(objective, words, tmp_path):
    subject = study(objective=objective)
    write_users(tmp_path / "users.csv", subject.names)
    with pytest.raises(InputError, match=words):
        released_on_handles(subject, tmp_path)


def once(records, rng, point, kept=[]):  # noqa: B006  # the mistake
    kept.append(1)
    return float(len(kept))


def test_whatever_its_objective_answers_is_within_the_range(tmp_path):
    subject = study(objective=once, epsilon=8.0)
    write_users(tmp_path / "users.csv", subject.names)
    _, steps = released_on_handles(subject, tmp_path)
    assert {int(each.value) for each in steps} == {subject.levels.count - 1}


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: bandit(sealed.LDPTGPUCB, roster=("ann", "bob")), "roster is .* 2 names"),
        (lambda: bandit(sealed.LDPTGPUCB, step=0.0), "step is 0"),
        (lambda: study(users=3, roster=("ann",)), "roster is"),
    ],
)
def test_wrong_fields_are_one_sentence(made, sentence):
    with pytest.raises(InputError, match=sentence) as error:
        made()
    assert "\n" not in str(error.value)


def test_names_of_a_roster_are_asked_in_its_order(tmp_path):
    names = tuple(f"p{n}" for n in range(30, 0, -1))
    subject = bandit(sealed.LDPTGPUCB, roster=names)
    write_rewards(tmp_path / "rewards.csv", made_rewards(subject))
    _, steps = released_on_handles(subject, tmp_path)
    assert [each.unit for each in steps] == list(names[:24])


OWN = """
from private_bo import BoxSpace
from private_bo.gp import FiniteDomain, Matern
from private_bo.sealed import JointStudy, LDPMoMAGPUCB
from taste import liking

DOMAIN = FiniteDomain.grid(6)
SHORT = {"steps": 12, "plays_per_epoch": 3, "domain": DOMAIN, "kernel": Matern(0.3, nu=2.5)}
BANDIT = LDPMoMAGPUCB(epsilon=20.0, width_multiplier=0.1, **SHORT)
COLUMNS = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
SPACE = BoxSpace((0,), (1,))
GROUPS = JointStudy(space=SPACE, objective=liking, users=6, group=2, columns=COLUMNS)
"""
TASTE = """
def liking(records, rng, point):
    return 1.2 - 2 * (point[0] - records["best"][0]) ** 2
"""


def alike(one, other):
    """Tell whether two results are equal but for the rounding of what was searched for."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == (pytest.approx(other, rel=1e-6) if isinstance(other, float) else other)


@pytest.mark.skipif(bool(lacking()), reason="nothing is sealed here")
@pytest.mark.parametrize("name", ["BANDIT", "GROUPS"])
def test_a_sealed_run_publishes_what_the_unsealed_one_does(name, tmp_path):
    subject = bandit(sealed.LDPMoMAGPUCB, steps=12)
    write_rewards(tmp_path / "rewards.csv", made_rewards(subject))
    write_users(tmp_path / "users.csv", study(users=6).names)
    (tmp_path / "own.py").write_text(OWN, "utf-8")
    (tmp_path / "taste.py").write_text(TASTE, "utf-8")
    with chdir(tmp_path):
        made, _ = run_subject(f"own.py:{name}", (), None, 1, Path("out"), sealed=True)
        target = open_target(f"own.py:{name}", {}, "to compare")
        other, _ = run_target(target, "own.py", Path("other"), RunOptions(seed=1))
    for part in ("summary", "series"):  # two processes may differ in the last bits of floats
        assert alike(made.run[part], other.run[part])
    known = {each.premise: each.standing for each in made.assumptions}
    assert known[Premise.SENSITIVITY] is known[Premise.OWN_VALUES] is Standing.ENFORCED


@pytest.mark.skipif(bool(lacking()), reason="nothing is sealed here")
def test_a_subject_of_the_package_is_found_by_its_name(tmp_path):
    with chdir(tmp_path):
        name, settings = "private_bo.sealed:LDPTGPUCB", ("steps=5", "default_data=mine.csv")
        Path("mine.csv").write_text("user,point,reward\nuser 1,3,0.5\n", "utf-8")
        made, _ = run_subject(name, settings, None, 1, Path("out"), sealed=True)
    assert made.run["summary"]["data"] == "mine.csv"
    assert made.run["summary"]["responses"] == 5


def test_a_certificate_leaves_open_what_a_seal_does_not_close():
    (regret,) = (each for each in plain(bandit(sealed.LDPTGPUCB)).not_covered() if "regret" in each)
    assert regret not in bandit(sealed.LDPTGPUCB).not_covered()
    assert any("objective depends" in each for each in plain(study()).not_covered())
    said = study().not_covered()
    assert not any("objective depends" in each for each in said)
    assert said[-1] == "How long an objective takes."
