"""Claims, verdicts and findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpaudit import validate
from dpaudit.errors import InputError

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
class Claim:
    """What an author states: (ε, δ)-differential privacy of the whole algorithm.

    Attributes:
        epsilon: stated ε, at least 0.
        delta: stated δ in [0, 1).
        source: where it is stated, for people.
    """

    epsilon: float
    delta: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.non_negative(epsilon=self.epsilon))
        object.__setattr__(self, "delta", validate.probability(delta=self.delta))

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}, δ = {self.delta:g}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        return {"epsilon": self.epsilon, "delta": self.delta, "source": self.source}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Claim:
        """The claim that :meth:`to_dict` wrote.

        Raises:
            InputError: if a field is unknown, missing or invalid.
        """
        for name in record.keys() - {"epsilon", "delta", "source"}:
            raise InputError(f"claim has an unknown field {name!r}; remove it.")
        if "epsilon" not in record:
            raise InputError("claim lacks the field 'epsilon', which it needs.")
        return cls(**record)


@dataclass(frozen=True)
class Finding:
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

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        return {
            "rule": self.rule,
            "severity": str(self.severity),
            "message": self.message,
            "remedy": self.remedy,
            "at": self.at,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Finding:
        """The finding that :meth:`to_dict` wrote."""
        return cls(**{**record, "severity": Severity(record["severity"])})
