"""An audit of some attack, of which tests say what matters to them."""

from __future__ import annotations

from typing import Any

from dpaudit import AuditRecord


def attack(**facts: Any) -> AuditRecord:
    usual: dict[str, Any] = {
        "refuted": False,
        "method": "threshold",
        "claim_epsilon": 1.0,
        "delta": 0.0,
        "epsilon_lower": 0.5,
        "confidence": 0.99,
        "runs": 100,
        "event": None,
        "seed": 1,
        "pair": [0, 1],
    }
    return AuditRecord(**(usual | facts))
