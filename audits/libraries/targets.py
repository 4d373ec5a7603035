"""Calibrators of others: the noise that they answer for a target, and what it really costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from audits.libraries.accountants import PREFIX, Setting, truth
from audits.libraries.environments import python
from audits.libraries.measuring import Found, answer
from dpaudit.base.errors import InputError


@dataclass(frozen=True)
class Target:
    """What a calibrator is asked for.

    Attributes:
        name: whose calibrator, and which.
        call: its function in ``accountant_worker``.
        epsilon: of the target.
        delta: of the target.
        rate: of sampling.
        steps: of the training.
    """

    name: str
    call: str
    epsilon: float
    delta: float = 1e-5
    rate: float = 1.0
    steps: int = 1

    @property
    def key(self) -> str:
        """Its name in the results."""
        return f"{PREFIX}{self.name}, ε = {self.epsilon:g}"

    def shown(self, table: dict[str, Any]) -> dict[str, str]:
        """A line of the page."""
        found = table[self.key]
        asked = f"ε = {self.epsilon:g}, δ = {self.delta:g}; q = {self.rate:.4g}, {self.steps} steps"
        if "error" in found:
            return {"name": self.name, "asked": asked, "sigma": "–", "costs": found["error"]}
        low, high = found["truth"]
        over = low > self.epsilon
        costs = f"{low:.4g} – {high:.4g}{', **more than asked**' if over else ''}"
        return {"name": self.name, "asked": asked, "sigma": f"{found['sigma']:.5g}", "costs": costs}


_TRAINING = {"rate": 0.01, "steps": 1_000}
_LONGER = {"rate": 0.05, "steps": 2_000}
TARGETS = (
    Target("opacus, GDP", "opacus_gdp", 8.0, **_LONGER),
    Target("opacus, GDP", "opacus_gdp", 2.0, **_TRAINING),
    Target("opacus, RDP", "opacus_rdp", 8.0, **_TRAINING),
    Target("opacus, PRV", "opacus_prv", 8.0, **_TRAINING),
    Target("Flower, LocalDpMod", "flower", 1.0),
    Target("Flower, LocalDpMod", "flower", 8.0),
    Target("Flower, LocalDpMod", "flower", 10.0),
    Target("Flower, LocalDpMod", "flower", 20.0),
)


def answered(target: Target, told: Callable[[str], Any]) -> Found:
    """The noise, and the interval of what it costs; what stopped it under ``error``."""
    try:
        task = json.dumps(asdict(target))
        found = answer([str(python("")), "-m", "audits.libraries.target_worker"], task)
        noise = Setting("", target.rate, found["sigma"], target.steps, target.delta)
        found = found | {"truth": list(truth(noise))}
    except InputError as error:
        found = {"error": str(error)}
    told(f"{target.key}: {found.get('error', 'done')}")
    return found
