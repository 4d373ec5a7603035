"""jax-privacy's ``CanaryScoreAuditor``: Clopper-Pearson bounds, and one that supposes GDP."""

from __future__ import annotations

from typing import Any

try:  # the file of a version whose package needs what is not released
    from auditing import Bonferroni, CanaryScoreAuditor, Split
except ModuleNotFoundError:
    from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Split


def audit(task: dict[str, Any]) -> tuple[float, bool]:
    """The bound on ε at δ, and whether it is above the claim."""
    auditor = CanaryScoreAuditor(task["score_x"], task["score_x_prime"])
    error, delta = 1 - task["confidence"], task["delta"]
    if task["setting"] == "gdp":
        bound = auditor.epsilon_from_gdp(error, delta)
    else:
        strategy = Split(seed=task["seed"]) if task["setting"] == "split" else Bonferroni()
        bound = auditor.epsilon_clopper_pearson(
            error, delta, one_sided=False, threshold_strategy=strategy
        )
    return bound, bound > task["epsilon"]
