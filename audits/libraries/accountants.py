"""Accountants of others as subjects: their ε of DP-SGD beside an interval that holds the true one.

The truth is that of the composition of Poisson-sampled Gaussian mechanisms with add-remove
neighbours: from above what dpaudit proves, from below the same with losses rounded down.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from audits.libraries.environments import python
from audits.libraries.measuring import Found, answer
from dpaudit.accounting import compose
from dpaudit.base.errors import InputError
from dpaudit.plan import Plan

PREFIX = "accountant: "
CLOSE = 1e-3
"""By how much, relatively, a number may be beside the interval and count as inside."""


@dataclass(frozen=True)
class Setting:
    """A training.

    Attributes:
        name: what it is like.
        rate: of Poisson sampling.
        noise: σ over the clipping norm.
        steps: of the training.
        delta: δ of the guarantee.
    """

    name: str
    rate: float
    noise: float
    steps: int
    delta: float = 1e-5


SETTINGS = (
    Setting("digits, 15 epochs", 256 / 60_000, 1.1, 3_516),
    Setting("images, 50 epochs", 0.02, 1.5, 2_500),
    Setting("small data", 0.1, 1.0, 200),
    Setting("tiny rate", 1e-4, 0.8, 10_000, 1e-6),
    Setting("tinier rate", 1e-5, 1.0, 100_000, 1e-7),
    Setting("large noise", 0.1, 20.0, 1_000),
    Setting("one step", 0.05, 1.0, 1),
    Setting("three steps", 0.5, 2.0, 3),
    Setting("all rows", 1.0, 10.0, 100),
    Setting("tiny δ", 0.01, 1.0, 1_000, 1e-10),
    Setting("large δ", 0.01, 1.0, 1_000, 1e-2),
    Setting("little noise", 0.01, 0.6, 100),
)


@dataclass(frozen=True)
class Subject:
    """An accountant of somebody.

    Attributes:
        name: as the page calls it.
        library: as it is installed.
        call: its function in ``accountant_worker``.
        environment: of ``environments.toml``; this one where empty.
        states: what it says that its number is.
    """

    name: str
    library: str
    call: str
    environment: str = ""
    states: str = "upper bound"

    @property
    def key(self) -> str:
        """Its name in the results."""
        return f"{PREFIX}{self.name}"


SUBJECTS = (
    Subject("opacus RDP", "opacus", "opacus_rdp"),
    Subject("opacus PRV", "opacus", "opacus_prv"),
    Subject("opacus GDP", "opacus", "opacus_gdp", states="approximation (central limit theorem)"),
    Subject("dp-accounting RDP", "dp-accounting", "google_rdp"),
    Subject("dp-accounting PLD", "dp-accounting", "google_pld"),
    Subject("autodp RDP", "autodp", "autodp_rdp", "accountants"),
    Subject("prv-accountant", "prv-accountant", "prv", "accountants"),
)


def truth(setting: Setting) -> tuple[float, float]:
    """An interval that holds the true ε."""
    given = {"noise_multiplier": setting.noise, "sample_rate": setting.rate}
    plan = Plan.dp_sgd(**given, steps=setting.steps)
    found = [compose(plan, name).epsilon(setting.delta) for name in ("best", "pld")]
    return max(each.lower for each in found), min(each.upper for each in found)


def measured(subject: Subject, told: Callable[[str], Any]) -> Found:
    """What an accountant says in each setting; what stopped it under ``error``."""
    task = {
        "call": subject.call,
        "library": subject.library,
        "settings": [asdict(each) for each in SETTINGS],
    }
    try:
        home = str(python(subject.environment))
        found = answer([home, "-m", "audits.libraries.accountant_worker"], json.dumps(task), 900)
    except InputError as error:
        found = {"error": str(error)}
    told(f"{subject.name}: {found.get('error', 'done')}")
    return found


def verdict(epsilon: float | None, interval: tuple[float, float]) -> str:
    """Of one cell, in words."""
    low, high = interval
    if epsilon is None:
        return "no answer"
    if epsilon < low * (1 - CLOSE):
        return f"below by {_percent(1 - epsilon / low)}"
    if epsilon <= high * (1 + CLOSE):
        return "inside"
    return f"above by {_percent(epsilon / high - 1)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"
