"""Accountants and calibrators of others: their ε of DP-SGD, and their noise for a target.

The truth is that of the composition of Poisson-sampled Gaussian mechanisms with add-remove
neighbours: an interval, from above what dpaudit proves, from below the same with losses rounded
down.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
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


_TABLES = files.read_toml(Path(__file__).with_suffix(".toml"), what="accountants")
SETTINGS = tuple(Setting(**fields) for fields in _TABLES["settings"])


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


SUBJECTS = tuple(Subject(**fields) for fields in _TABLES["accountants"])


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


TARGETS = tuple(Target(**fields) for fields in _TABLES["targets"])
