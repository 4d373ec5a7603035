"""An audit that could not refute a claim says how many runs it would take."""

import math
import re

import numpy as np
import pytest

from dpaudit import AuditPair, Claim, InputError, Laplace
from dpaudit.auditing import BlackBox, LinearScore, audit_release
from dpaudit.auditing.distinguishing.choosing import learn_scores
from dpaudit.auditing.distinguishing.design import HELD_SHARE, Design, require_enough_runs
from dpaudit.auditing.evidence.events import pilot_size
from dpaudit.auditing.evidence.joint import fewest_runs
from dpaudit.mechanisms import LaplacePair


def refusal(design, shape, runs):
    """The least number of runs that a refusal states, or None where there is none."""
    try:
        require_enough_runs(
            design.claim,
            runs,
            lambda runs: runs - design.pilot(shape, runs),
            design.point_error,
            design.curve_null(),
        )
    except InputError as refused:
        return int(re.search(r"at least (\d+) are needed", str(refused))[1])
    return None


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("learner", [learn_scores, None])
@pytest.mark.parametrize("curve", [None, LaplacePair(0.5).delta])
def test_the_least_number_is_one_number(shape, learner, curve):
    scores = () if learner else (LinearScore((1.0,) * math.prod(shape)),)
    design = Design(Claim(0.5), 0.95, curve, scores, learner, stop_early=False)
    stated = [refusal(design, shape, runs) for runs in range(1, 40)]
    (least,) = {each for each in stated if each is not None}
    assert [each is None for each in stated] == [runs >= least for runs in range(1, 40)]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_least_number_leaves_enough_for_the_test(epsilon):
    design = Design(Claim(epsilon), 0.95, None, (), learn_scores, stop_early=False)
    least = refusal(design, (), 1)
    tested = least - pilot_size(least)
    assert tested >= fewest_runs(epsilon, 0.0, (1 - 2 * HELD_SHARE) * 0.05) > tested - 1


def test_the_least_number_suffices():
    identity, settings = BlackBox(lambda data, rng: data), {"epsilon": 2.0, "seed": 0}
    with pytest.raises(InputError) as caught:
        audit_release(identity, AuditPair(0, 1), runs=10, **settings)
    needed = int(str(caught.value).split("at least ")[1].split()[0])
    assert audit_release(identity, AuditPair(0, 1), runs=needed, **settings).refuted


def test_a_refusal_comes_before_the_runs():
    calls = []

    def counted(data, size, rng):
        calls.append(size)
        return Laplace(1.0).release_many(data, size, rng)

    for epsilon, words in ((1.0, "at least 9"), (10.0, "at least 77006"), (100.0, "no number")):
        calls.clear()
        with pytest.raises(InputError, match=f"runs is 5; .* {words}"):
            audit_release(counted, AuditPair(0.0, 1.0), epsilon=epsilon, runs=5)
        assert sum(calls) == 6 * 4
    assert np.isfinite(fewest_runs(10.0, 0.0, 0.05))
