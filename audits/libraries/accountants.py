"""Accountants and calibrators of others: their ε of DP-SGD, and their noise for a target.

The truth is that of the composition of Poisson-sampled Gaussian mechanisms with add-remove
neighbours: an interval, from above what dpaudit proves, from below the same with losses rounded
down.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

from audits.libraries.rows import WORKER, environment
from audits.result_table import Record
from dpaudit.accounting import compose
from dpaudit.base import files
from dpaudit.plan import Plan

PREFIX = "accountant: "
TRUTH = f"{PREFIX}truth"
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


def truth(setting: Setting) -> tuple[float, float]:
    """An interval that holds the true ε."""
    given = {"noise_multiplier": setting.noise, "sample_rate": setting.rate}
    plan = Plan.dp_sgd(**given, steps=setting.steps)
    found = [compose(plan, name).epsilon(setting.delta) for name in ("best", "pld")]
    return max(each.lower for each in found), min(each.upper for each in found)


SETTINGS_ASKED = {"settings": files.digest([asdict(each) for each in SETTINGS])}
"""What the records of all that is asked in these settings repeat."""


class Truths:
    """The intervals of all settings, as a cell."""

    asked = SETTINGS_ASKED

    def measured(self) -> Record:
        """By the names of the settings."""
        return {each.name: list(truth(each)) for each in SETTINGS}


@dataclass(frozen=True)
class Subject:
    """An accountant of somebody.

    Attributes:
        name: as the page calls it.
        library: as it is installed.
        call: its function in ``worker``.
        environment: of ``environments.toml``; this one where empty.
        states: what it says that its number is.
    """

    name: str
    library: str
    call: str
    environment: str = ""
    states: str = "upper bound"

    asked: ClassVar[Record] = SETTINGS_ASKED

    @property
    def key(self) -> str:
        """Its name in the results."""
        return f"{PREFIX}{self.name}"

    def measured(self) -> Record:
        """What it says in each setting."""
        task = {"kind": "epsilon", "call": self.call, "library": self.library}
        task |= {"settings": [asdict(each) for each in SETTINGS]}
        return environment(self.environment).ask(WORKER, task, longest=900)


SUBJECTS = (
    Subject("opacus RDP", "opacus", "opacus_rdp"),
    Subject("opacus PRV", "opacus", "opacus_prv"),
    Subject("opacus GDP", "opacus", "opacus_gdp", states="approximation (central limit theorem)"),
    Subject("dp-accounting RDP", "dp-accounting", "google_rdp"),
    Subject("dp-accounting PLD", "dp-accounting", "google_pld"),
    Subject("autodp RDP", "autodp", "autodp_rdp", "accountants"),
    Subject("prv-accountant", "prv-accountant", "prv", "accountants"),
)


@dataclass(frozen=True)
class Target:
    """What a calibrator is asked for.

    Attributes:
        name: whose calibrator, and which.
        call: its function in ``worker``.
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

    @property
    def asked(self) -> Record:
        """What a record of it repeats."""
        return {"delta": self.delta, "rate": self.rate, "steps": self.steps}

    def measured(self) -> Record:
        """The noise, and the interval of what it costs."""
        found = environment("").ask(WORKER, asdict(self) | {"kind": "sigma"})
        noise = Setting("", self.rate, found["sigma"], self.steps, self.delta)
        return found | {"truth": list(truth(noise))}


_TRAINING = {"rate": 0.01, "steps": 1_000}
TARGETS = (
    Target("opacus, GDP", "opacus_gdp", 8.0, rate=0.05, steps=2_000),
    Target("opacus, GDP", "opacus_gdp", 2.0, **_TRAINING),
    Target("opacus, RDP", "opacus_rdp", 8.0, **_TRAINING),
    Target("opacus, PRV", "opacus_prv", 8.0, **_TRAINING),
    Target("Flower, LocalDpMod", "flower", 1.0),
    Target("Flower, LocalDpMod", "flower", 8.0),
    Target("Flower, LocalDpMod", "flower", 10.0),
    Target("Flower, LocalDpMod", "flower", 20.0),
)
