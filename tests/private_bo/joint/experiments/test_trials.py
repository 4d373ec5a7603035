"""Trials of the joint algorithms."""

from __future__ import annotations

import numpy as np

from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import JointGPUCB
from private_bo.joint.experiments.figures import curves_of

SMALL = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 6)


def test_results_do_not_depend_on_the_workers() -> None:
    configs = {"a": (JointGPUCB(steps=20, feature_map=SMALL), True)}
    one, two = (curves_of(configs, steps=20, trials=2, workers=n)["a"] for n in (1, 2))
    np.testing.assert_array_equal(one, two)
