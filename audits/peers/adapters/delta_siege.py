"""Delta-Siege: a classifier, a threshold, a choice of direction and a bound, on a quarter each.

Its package imports every library whose mechanisms it has audited; no audit here calls these.
"""

# ruff: noqa: E402  (what the tool imports must be prepared before)
from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr
from worker import stand_in

stand_in(
    "aim", "cdp2adp", "diffprivlib.mechanisms", "dpopt.optimizer.optimizer_generator",
    "dpopt.optimizer.optimizers", "dpopt.probability.estimators", "mbi", "mst",
    "opendp.combinators", "opendp.measurements", "opendp.mod", "opacus",
    "pydp.algorithms.numerical_mechanisms",
)  # fmt: skip

from deltasiege import DeltaSiege
from deltasiege.attack import LinesearchEstimator, WitnessOptimization
from deltasiege.classifiers import SklearnClassifier
from deltasiege.logging import Logger
from deltasiege.mechanism import Mechanism
from deltasiege.utils import Config
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


class _Taped(Mechanism):
    tape: Any = None

    def __call__(self, side: int, size: int) -> Any:
        return self.tape.draw(int(side), size)

    # ρ, its measure of privacy: 1/ε at the one δ of the claim, as of its own Laplace mechanism.
    def guarantee_(self, epsilon: float, _delta: float) -> float:
        return 1 / epsilon if epsilon > 0 else float("inf")

    def perturb_delta(self, delta: float) -> float | None:
        return self.epsilon if delta == self.delta else None


class _TapedGaussian(_Taped):
    # ρ is σ, of sensitivity 1 (Balle & Wang 2018, Theorem 8).
    def guarantee_(self, epsilon: float, delta: float) -> float:
        if epsilon <= 0 or delta <= 0:
            return float("inf")
        if not np.isfinite(epsilon):
            return 0.0
        return float(brentq(lambda sigma: _excess(epsilon, delta, sigma), 1e-3, 1e6, rtol=1e-6))

    def perturb_delta(self, delta: float) -> float | None:
        if not 0 < delta < 1 or _excess(0.0, delta, self.g0) < 0:
            return None
        return float(brentq(lambda epsilon: _excess(epsilon, delta, self.g0), 0, 60, rtol=1e-6))


def _excess(epsilon: float, delta: float, sigma: float) -> float:
    half, shift = 0.5 / sigma, epsilon * sigma
    return float(np.exp(log_ndtr(half - shift)) - np.exp(epsilon + log_ndtr(-half - shift)) - delta)


def _space(kind: type[_Taped], epsilon: float, delta: float, _trial: Any, **where: Any) -> Any:
    return (0, 1), kind(epsilon=epsilon, delta=delta, **where)


def audit(task: dict[str, Any]) -> tuple[float, bool]:
    """The bound on ε that its ρ implies at δ, and whether it found a violation."""
    epsilon, delta, quarter = task["epsilon"], task["delta"], len(task["x"]) // 4
    kind, steps = (_TapedGaussian, None) if task["gaussian"] else (_Taped, np.array([delta]))
    _Taped.tape = task["tape"]
    config = Config(
        n_train=quarter, n_init=quarter, n_check=quarter, n_final=quarter, batch_size=quarter,
        n_jobs=1, n_experiments=1, confidence=task["confidence"], seed=task["seed"],
    )  # fmt: skip
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    estimator = LinesearchEstimator(delta_steps=steps)
    with tempfile.TemporaryDirectory() as folder:
        tool = DeltaSiege(
            config=config,
            search_space=partial(_space, kind, epsilon, delta),
            classifier_factories=SklearnClassifier.get_factory(classifier=classifier),
            witnesses_factories=WitnessOptimization.get_factory(estimator=estimator),
            logger=Logger(Logger.State.DOWN),
            base_folder=Path(folder),
        )
        trial = tool.run().experiments[0].trials[0]
        ratio = float(trial.witnesses[trial.best_witness_idx].estimate_c)
    return _stated(kind(epsilon=epsilon, delta=delta), ratio), ratio < 1


def _stated(mechanism: _Taped, ratio: float) -> float:
    if not np.isfinite(ratio):
        return 0.0
    if isinstance(mechanism, _TapedGaussian):
        mechanism.g0 *= ratio
        return mechanism.perturb_delta(mechanism.delta) or 0.0
    return float(mechanism.epsilon / ratio)
