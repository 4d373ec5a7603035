"""Sealed subjects that declare what would let them read, or tell, more than releases.

All of them print whatever they can read, at every chance they have.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    DiscreteLaplace,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    RunResult,
    SealedSubject,
    Table,
    TrustModel,
)
from dpaudit.project import sealed_code

ABOUT = (PrivacyUnit("person"), AddRemove(), TrustModel.CENTRAL)


@dataclass(frozen=True)
class Reader(SealedSubject):
    """Prints all files that it can, before and after it has declared its table."""

    def table(self) -> Table:
        self.show()
        return Table(self.source(), "person", {"age": {"type": "integer", "range": [0, 110]}})

    def source(self) -> str:
        return "rows.csv"

    def plan(self) -> Plan:
        self.show()
        part = Contribution(1, rows=1)
        return Plan.of(Invocation.bounded(self.mechanism(), part, *ABOUT, at="visits"))

    def mechanism(self) -> Any:
        return DiscreteLaplace(10.0)

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        self.show()
        return RunResult({"visits": int(ledger.count(data, at="visits"))})

    def show(self) -> None:
        """Print what can be read."""
        here = Path(__file__).parent
        for path in sorted(here.rglob("*")):
            if path.is_file() and path.name != Path(__file__).name:
                print(path.name, path.read_text())  # noqa: T201


@dataclass(frozen=True)
class Itself(Reader):
    public_files: ClassVar = ("rows.csv",)


@dataclass(frozen=True)
class Linked(Reader):
    public_files: ClassVar = ("linked.csv",)


@dataclass(frozen=True)
class HardLinked(Reader):
    public_files: ClassVar = ("hard.csv",)


@dataclass(frozen=True)
class Around(Reader):
    public_files: ClassVar = ("folder/../rows.csv",)


@dataclass(frozen=True)
class TooLong(Reader):
    def source(self) -> str:
        return "rows" * 100 + ".csv"


@dataclass(frozen=True)
class Outside(Reader):
    public_files: ClassVar = ("../outside.csv",)


@dataclass(frozen=True)
class Absolute(Reader):
    public_files: ClassVar = ("/etc/hostname",)


@dataclass(frozen=True)
class Proc(Reader):
    public_files: ClassVar = ("/proc/self/environ",)


@dataclass(frozen=True)
class Folder(Reader):
    public_files: ClassVar = (".",)


@dataclass(frozen=True)
class NoText(Reader):
    public_files: ClassVar = ("rows.csv\0", "\udc80")


@dataclass(frozen=True)
class OfTheOwner(Reader):
    """The report of an earlier run that was made for the owner alone."""

    public_files: ClassVar = ("own.html",)


@dataclass(frozen=True)
class OfAnOlderRun(Reader):
    """What older versions wrote for the owner, and everybody may read."""

    public_files: ClassVar = ("out/owner.json",)


@dataclass(frozen=True)
class Code(Reader):
    """The table is a link to a file of Python, which is copied as code where it is imported."""

    def source(self) -> str:
        return "linked_code.csv"

    def show(self) -> None:
        import code_rows

        assert code_rows.__file__


@dataclass(frozen=True)
class Installed(Reader):
    """The table lies among what Python itself reads."""

    def source(self) -> str:
        return str(Path(os.__file__).parent / "rows.csv")


@dataclass(frozen=True)
class Unnoisy(DiscreteLaplace):
    """A law of the code's own, which says that it adds noise."""

    kind: ClassVar[str] = "unnoisy"

    def sample(self, value: Any, rng: Any) -> Any:
        return value


@dataclass(frozen=True)
class Foreign(Reader):
    def mechanism(self) -> Any:
        return Unnoisy(10.0)


@dataclass(frozen=True)
class Disguised(Foreign):
    """The same, by the name of a law that is known: it is drawn as that."""

    def mechanism(self) -> Any:
        Unnoisy.kind = "discrete-laplace"
        return Unnoisy(10.0)


@dataclass(frozen=True)
class Changing(Reader):
    """Another plan each time."""

    def mechanism(self) -> Any:
        CALLS.append(0)
        return Laplace(1e-9 if len(CALLS) > 1 else 10.0)


CALLS: list[int] = []


class Sends(Reader):
    """Replaces what this process sends of the subject, which it can."""

    facts: ClassVar[dict[str, Any]] = {}
    result: ClassVar[Any] = None
    sent: ClassVar[bool] = False

    def table(self) -> Table:
        loaded, own = sealed_code.Loaded, dict(self.facts)
        before = loaded.facts
        loaded.facts = lambda this: before(this) | own
        if self.result is not None:
            loaded.run = lambda this, data, ledger, rng: (
                self.sent or ledger.count(data, at="visits"), self.result
            )[1]  # fmt: skip
        return super().table()

    def claim(self) -> Claim:
        return Claim(1.0)


class JunkClaim(Sends):
    facts: ClassVar = {"claim": {"epsilon": "1"}}


class JunkFindings(Sends):
    facts: ClassVar = {"findings": [{"rule": 1}]}


class JunkFact(Sends):
    facts: ClassVar = {"findings": [5]}


class JunkPlan(Sends):
    facts: ClassVar = {"plan": {"invocations": [{}]}}


class HalfCharacter(Sends):
    facts: ClassVar = {"location": "\ud800"}


class Infinite(Sends):
    facts: ClassVar = {"configuration": {"x": 10**400}}


class JunkResult(Sends):
    result: ClassVar = 5


class JunkSummary(Sends):
    result: ClassVar = {"summary": 5, "series": [1]}


class JunkSeries(Sends):
    result: ClassVar = {"summary": {}, "series": {"x": ["\ud800"]}}


class Nothing(Sends):
    """Publishes without a release."""

    sent: ClassVar = True
    result: ClassVar = {"summary": {}, "series": {}}
