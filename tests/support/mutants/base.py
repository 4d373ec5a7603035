"""What the mutants share: short declarations, and small synthetic data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dpaudit import AddRemove, Invocation, Plan, PrivacyUnit, RunResult, Subject, TrustModel

__all__ = ["CITIES", "Base", "RunResult", "central", "dataclass", "local", "number", "replace"]

CITIES = ("athens", "berlin", "cairo", "dublin")


def central(mechanism, sensitivity, *, unit="row", relation=None, **facts):
    """A release by a trusted server; add-remove where no relation is given."""
    relation = AddRemove() if relation is None else relation
    trust = TrustModel.CENTRAL
    return Invocation(mechanism, sensitivity, PrivacyUnit(unit), relation, trust, **facts)


def local(mechanism, sensitivity, relation, *, unit="user", **facts):
    """A release by the device of a user."""
    return Invocation(
        mechanism, sensitivity, PrivacyUnit(unit), relation, TrustModel.LOCAL, **facts
    )


def number(value: Any, otherwise: float = 0.0) -> float:
    """A finite number, whatever arrives."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return found if math.isfinite(found) else otherwise


@dataclass(frozen=True)
class Base(Subject):
    """A subject with one list of invocations."""

    def declared(self):
        """The invocations."""
        raise NotImplementedError

    def plan(self) -> Plan:
        """All of them."""
        return Plan.of(*self.declared())
