"""DP-Auditorium: the testers by histogram and by hockey-stick divergence; no dataset generators."""

# ruff: noqa: E402  (what the tool imports must be prepared before)
from __future__ import annotations

from typing import Any

from worker import stand_in

stand_in("vizier.service.clients", "vizier.service.pyvizier", "pipeline_dp")

from dp_auditorium.configs import privacy_property, property_tester_config

BINS, LOW, HIGH = 100, -10.0, 10.0


def audit(task: dict[str, Any]) -> tuple[None, bool]:
    """No bound on ε but one on δ at the claimed ε; whether that refutes the claim."""
    claim = privacy_property.ApproximateDp(task["epsilon"], task["delta"])
    scores = task["setting"] == "histogram"
    tester = _histogram(claim) if scores else _hockey_stick(claim, task["seed"])
    sides = [task[name] for name in (("score_x", "score_x_prime") if scores else ("x", "x_prime"))]
    bound = tester.estimate_lower_bound(*sides, 1 - task["confidence"])
    return None, tester.reject_property(bound)


def _histogram(claim: Any) -> Any:
    from dp_auditorium.testers.histogram_tester import HistogramTester

    config = property_tester_config.HistogramPropertyTesterConfig
    return HistogramTester(config(False, BINS, LOW, HIGH, claim))


def _hockey_stick(claim: Any, seed: int) -> Any:
    import tensorflow as tf
    from dp_auditorium.testers import hockey_stick_tester as tester

    tf.keras.utils.set_random_seed(seed)
    config = property_tester_config.HockeyStickPropertyTesterConfig
    training, model = tester.make_default_hs_training_config(), tester.make_default_hs_base_model()
    return tester.HockeyStickPropertyTester(config(training, claim), model)
