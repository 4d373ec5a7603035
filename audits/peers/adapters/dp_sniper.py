"""DP-Sniper: a logistic classifier, a threshold and a bound for x over x', each on a third."""

# ruff: noqa: E402  (what the tool imports must be prepared before)
from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import torch

np.bool = np.bool_  # it was written for numpy before 1.24

from dpsniper.attack.dpsniper import DPSniper
from dpsniper.classifiers.classifier_factory import LogisticRegressionFactory
from dpsniper.classifiers.torch_optimizer_factory import SGDOptimizerFactory
from dpsniper.mechanisms.abstract import Mechanism
from dpsniper.probability.estimators import EpsEstimator, PrEstimator
from dpsniper.search.ddconfig import DDConfig
from dpsniper.utils.paths import set_output_directory

BATCHES = 107
"""Of its training by default: 10 700 000 runs, 100 000 at a time."""


class _Taped(Mechanism):
    def __init__(self, tape: Any) -> None:
        self.tape = tape

    def m(self, a: Any, n_samples: int = 1) -> Any:
        return self.tape.draw(int(a), n_samples)


def audit(task: dict[str, Any]) -> tuple[float, bool]:
    """The bound, and whether it is above the claim; with the settings of its own experiments."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(task["seed"])
    third, mechanism = len(task["x"]) // 3, _Taped(task["tape"])
    config = DDConfig(n_train=third, n=third, training_batch_size=max(1, third // BATCHES))
    config.n_processes, config.confidence = 1, task["confidence"]
    with tempfile.TemporaryDirectory() as folder:
        set_output_directory(folder)
        factory = LogisticRegressionFactory(
            in_dimensions=task["x"].shape[1],
            optimizer_factory=SGDOptimizerFactory(0.3, 0.3, 500),
            regularization_weight=0.001,
            epochs=10,
        )
        attack = DPSniper(mechanism, factory, config).best_attack(0, 1)
        estimator = EpsEstimator(PrEstimator(mechanism, third, config))
        _, bound = estimator.compute_eps_estimate(0, 1, attack)
    return max(0.0, float(bound)), bound > task["epsilon"]
