"""Records of a certificate: its subject, its audits, and an opinion of another library.

They are written as JSON and read back equal; numbers that JSON does not know are written as text.

An opinion is no part of the certificate. Both sides state bounds on one number; they contradict
each other only where a lower bound of one is above an upper bound of the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpaudit.base.displayed import Displayed
from dpaudit.base.fields import NonNegative, Probability, Record
from dpaudit.base.numbers import down, plain, up

TOLERANCE = 0.01
"""Relative difference up to which numbers agree: other libraries round on grids, with floats."""


@dataclass(frozen=True)
class SecondOpinion(Record):
    """What another library says of a certificate's plan.

    Attributes:
        library: its name.
        version: its version.
        accountant: which of its accountants answered; None where none did.
        epsilon: its ε, an upper bound; None where it gives none.
        lower: its ε from below; None where that was not needed, or is not to be had.
        delta: the δ of both; None where the certificate proves nothing.
        ours: what the certificate proves of ε, from below and from above; None where it does not.
        agrees: whether the bounds of both can hold; None where there is nothing to compare.
        reason: both numbers and how they compare, or why there is no opinion; one sentence.
    """

    library: str
    version: str
    accountant: str | None
    epsilon: float | None
    lower: float | None
    delta: float | None
    ours: tuple[float | None, float | None]
    agrees: bool | None
    reason: str

    @property
    def contradicts(self) -> bool:
        """Whether its lower bound is above the ε that the certificate proves."""
        upper = self.ours[1]
        return upper is not None and self.lower is not None and exceeds(self.lower, upper)


def exceeds(one: float, other: float) -> bool:
    """Tell whether a number is above another by more than the tolerance."""
    return one > other * (1 + TOLERANCE) + 1e-9


OBSERVED = (
    "Noise that was drawn in other processes, by libraries that were not observed, or by code "
    "that was not run."
)
"""What no certificate of an observed run covers, by which such a certificate is known."""


@dataclass(frozen=True)
class SubjectRecord:
    """What the certificate speaks of.

    Attributes:
        name: ``module:object``, or the path of a plan file.
        configuration: the public fields, as JSON values.
        code_hash: SHA-256 of the code, or None for a plan without code.
        location: file of the code relative to its source root, with a line, or empty.
    """

    name: str
    configuration: Mapping[str, Any] = field(default_factory=dict)
    code_hash: str | None = None
    location: str = ""


@dataclass(frozen=True)
class ReleaseRecord(Record):
    """The declared queries over a table of which a certificate of scope *release* speaks.

    Attributes:
        source: name of the table's source.
        queries: each query in words.
        declaration: SHA-256 of schema, bounds and queries as they were written.
    """

    source: str
    queries: tuple[str, ...]
    declaration: str


MEANS = ("Landlock", "seccomp", "namespaces", "no clock")
"""What keeps the code of a sealed run from the data; with less of it no run is sealed."""
TRIES = (
    "open what is private",
    "list what is private",
    "stat what is private",
    "write a file",
    "make a socket",
    "connect",
    "fork",
    "exec",
    "ptrace the parent",
    "read the memory of the parent",
    "signal the parent",
    "shared memory",
    "inherited descriptors",
    "read a clock",
    "/proc of others",
    "take a wall down",
)
"""What the process of the code must have tried in vain before it sees a handle."""
FUNCTION_TRIES = tuple(
    f"function: {name}"
    for name in (
        "reach what is private",
        "make a file, a pipe or a socket",
        "share memory",
        "fork or exec",
        "signal or trace another",
        "learn its number",
        "learn what the machine did",
        "other descriptors",
        "take a wall down",
    )
)
"""What the process of a function must have tried in vain before one sees records."""
SUCCEEDED = "succeeded"
"""What stands beside a try that did not fail, after which no run is sealed."""
NEVER_SEALED = (
    "How long a sealed run and each of its answers take.",
    "Whether a run fails for want of memory or room, or of the machine.",
    "What a kernel shares between processes: caches, load, the use of its memory.",
)
"""What no certificate of a sealed run covers."""


@dataclass(frozen=True)
class SealRecord(Record):
    """How the code of a sealed run was kept from the data, as its own process tried it.

    Attributes:
        system: kernel and machine.
        means: what kept it, in words that name each of :data:`MEANS`.
        tries: what the process tried before it saw a handle, each of :data:`TRIES` among it, and
            how each try failed.
        source: name of the table's source.
        table: SHA-256 of source, schema and bounds as they were declared.
        files: public files that the code could read, with the SHA-256 of each.
        made_up: the made-up rows of a run that was made for the seal alone, such as ``synthetic
            200``, and of which the certificate states nothing; None of a run that it states.
        functions: of the author, each of which ran on the records of one unit at a time, in a
            process of its own; None of code without any.
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"made_up", "functions"})
    system: str
    means: tuple[str, ...]
    tries: Mapping[str, str]
    source: str
    table: str
    files: Mapping[str, str] = field(default_factory=dict)
    made_up: str | None = None
    functions: tuple[str, ...] | None = None

    @property
    def required_tries(self) -> tuple[str, ...]:
        """What must have been tried in vain."""
        return TRIES + (FUNCTION_TRIES if self.functions else ())


@dataclass(frozen=True)
class CheckRecord(Record):
    """What the independent checker proves of a plan.

    Attributes:
        epsilon: ε, rounded up; None where it proves nothing.
        delta: the δ it holds at.
        rules: what the proof uses, one sentence for each set of invocations.
        reason: why nothing is proved.
        refused: whether a witness does not hold, and not only lacks.
    """

    epsilon: NonNegative | None
    delta: Probability
    rules: tuple[str, ...] = ()
    reason: str = ""
    refused: bool = False

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"proves nothing: {self.reason.rstrip('.')}"
        return f"proves ε ≤ {up(self.epsilon)} at δ = {plain(self.delta)}"


NARROW = 1.1
"""Times the claim, up to which a refuting bound is near it."""
_NARROWLY = (
    "The bound is close to the claim, and an audit of right code ends so with a probability of up "
    "to {:.2g}: if you audited much code, or code several times, give more runs and confidence."
)
_BY_CHANCE = (
    "The event was more frequent than the claim allows, but so few runs may show this by chance."
)
_COUNTS = ("hits", "runs", "other_hits", "other_runs")


@dataclass(frozen=True)
class AuditRecord(Displayed):
    """One audit: an experiment with a stated error rate.

    Attributes:
        refuted: whether it rejects the claim.
        method: how the evidence was made.
        claim_epsilon: the ε under test.
        delta: the δ under test.
        epsilon_lower: with probability ``confidence`` the true ε at ``delta`` is at least this.
        confidence: of the lower bound; None in exact mode, where nothing is sampled.
        runs: runs of the mechanism on each side.
        event: the distinguishing event in words, or None.
        seed: of the whole experiment; replays it.
        pair: the neighbours, as JSON values.
        power: what the audit would have found, in words.
        details: further facts of the method, JSON values.
    """

    refuted: bool
    method: str
    claim_epsilon: float
    delta: float
    epsilon_lower: float | None
    confidence: float | None
    runs: int
    event: str | None
    seed: int | None
    pair: Any
    power: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        """The verdict, what is shown and what was tested, in one line."""
        sure = "exact" if self.confidence is None else f"{100 * self.confidence:.6g} % confidence"
        return (
            f"{self.verdict}: ε ≥ {self.bound()} at δ = {self.delta:g} ({sure}), where ε = "
            f"{self.claim_epsilon:g} is claimed; {self.method}"
        )

    def bound(self, digits: int = 4) -> str:
        """The lower bound as it is printed, rounded down: as above the claim where it is."""
        lower, claim = self.epsilon_lower, self.claim_epsilon
        if lower is None:
            return "none"
        enough = (n for n in range(digits, 17) if not float(down(lower, n)) <= claim < lower)
        return down(lower, next(enough, 17))

    @property
    def caution(self) -> str:
        """What chance may have made of an event, in a sentence; empty where it hardly has."""
        lower, counts = self.epsilon_lower or 0.0, self.details.get("counts")
        if self.refuted and 0 < lower <= NARROW * self.claim_epsilon:
            return _NARROWLY.format(1 - (self.confidence or 0.0))
        if self.refuted or not isinstance(counts, Mapping):
            return ""
        found = [counts[name] for name in _COUNTS if isinstance(counts.get(name), int)]
        if len(found) < len(_COUNTS) or not found[1] or not found[3]:
            return ""
        hits, runs, other, others = found
        allowed = math.exp(min(self.claim_epsilon, 700.0)) * other / others + self.delta
        return _BY_CHANCE if hits / runs > allowed else ""

    @property
    def trainings(self) -> str | None:
        """How many models were trained with how many canaries; None of other attacks."""
        canaries = self.details.get("canaries")
        if not isinstance(canaries, int):
            return None
        times = f"{self.runs} trainings" if self.runs > 1 else "one training"
        return f"{times} with {canaries // max(1, self.runs)} canaries"

    @property
    def is_of_equals(self) -> bool:
        """Whether it found nothing on a pair of equal sides, as they are recorded or were found."""
        both = self._sides
        equal = len(both) == 2 and both[0] == both[1]
        return not self.refuted and (bool(equal) or self.details.get("equals") is True)

    @property
    def is_of_a_pair(self) -> bool:
        """Whether two sides are recorded that differ, or that it told apart."""
        return len(self._sides) == 2 and not self.is_of_equals

    @property
    def _sides(self) -> Sequence[Any]:
        both = list(self.pair.values()) if isinstance(self.pair, Mapping) else self.pair
        return both if isinstance(both, list | tuple) else ()

    @property
    def verdict(self) -> str:
        """``refuted`` or ``not-refuted``."""
        return "refuted" if self.refuted else "not-refuted"

    def to_dict(self) -> dict[str, Any]:
        """A JSON record. An unbounded lower bound (disjoint supports) is written as text."""
        record = {"verdict": self.verdict, **vars(self), "details": dict(self.details)}
        del record["refuted"]
        if self.epsilon_lower == math.inf:
            record["epsilon_lower"] = "infinity"
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> AuditRecord:
        """The record that :meth:`to_dict` wrote."""
        given = dict(record)
        refuted = given.pop("verdict") == "refuted"
        if given["epsilon_lower"] == "infinity":
            given["epsilon_lower"] = math.inf
        return cls(refuted=refuted, **given)
