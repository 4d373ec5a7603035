"""Claims, verdicts and findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpaudit.fields import NonNegative, Probability, Record

__all__ = ["Claim", "Finding", "Severity", "Verdict"]


class Verdict(StrEnum):
    """What is known of a claim."""

    CERTIFIED = "certified"
    """An accountant proves it."""
    UNPROVEN = "unproven"
    """No accountant can prove it, or an error in a finding takes the ground from the proof."""
    REFUTED = "refuted"
    """An audit rejects it at its stated error rate."""


class Severity(StrEnum):
    """How much a finding matters to the claim."""

    ERROR = "error"
    """The claim, or the declaration behind it, does not hold."""
    WARNING = "warning"
    """The claim holds only under an assumption that deserves a decision."""
    NOTE = "note"
    """Worth knowing."""


@dataclass(frozen=True)
class Claim(Record):
    """What an author states: (ε, δ)-differential privacy of the whole algorithm.

    Attributes:
        epsilon: stated ε, at least 0.
        delta: stated δ in [0, 1).
        source: where it is stated, for people.
    """

    epsilon: NonNegative
    delta: Probability = 0.0
    source: str = ""

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}, δ = {self.delta:g}"


@dataclass(frozen=True)
class Finding(Record):
    """Something about the claim or the code that a reader must know.

    Attributes:
        rule: short stable identifier, such as ``data-dependent-bound``.
        severity: how much it matters.
        message: one or two sentences for people.
        remedy: what to do about it.
        at: the invocation or place in the code that it speaks of, if any.
    """

    rule: str
    severity: Severity
    message: str
    remedy: str = ""
    at: str = ""
