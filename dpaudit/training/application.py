"""What this application offers: attacks on members, by ``dpaudit audit --canaries``."""

from __future__ import annotations

from typing import Any

from dpaudit.base.applications import offer


def audit_training(request: Any) -> Any:
    """As :func:`dpaudit.training.membership.training_audit.audit_training`, imported when used."""
    from dpaudit.training.membership import training_audit

    return training_audit.audit_training(request)


offer("audit", "members", audit_training)
