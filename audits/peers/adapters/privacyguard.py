"""PrivacyGuard's empirical ε by Clopper-Pearson, ``eps_cp`` of its ``AnalysisNode``."""

from __future__ import annotations

from typing import Any

import torch
from privacy_guard.analysis.mia.mia_results import MIAResults


def audit(task: dict[str, Any]) -> tuple[float, bool]:
    """The better of both orders of the scores: members are to have the larger ones."""
    sides = [torch.from_numpy(task[name].copy()) for name in ("score_x", "score_x_prime")]
    _, _, bound = MIAResults(*sides).compute_acc_auc_ci_epsilon(task["delta"])
    return max(0.0, float(bound)), bound > task["epsilon"]
