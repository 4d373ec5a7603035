"""Claims, verdicts and findings.

Subjects, plan files and commands state a claim; certificates judge it. Whether a proof lies within
a claim is decided by one comparison, that of ``numbers.holds``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, astuple, dataclass, fields
from enum import StrEnum
from typing import Any

from numpy.typing import ArrayLike

from dpaudit.accounting import Composition, CurvePoint
from dpaudit.base import toml_tables
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, NonNegative, Probability
from dpaudit.base.finding_table import Finding, Severity
from dpaudit.base.numbers import holds
from dpaudit.certificate.risk import RISKS, Concentrated, GaussianCurve, PointsCurve, Risk

__all__ = ["CLAIM_KEYS", "USUAL_DELTA", "Claim", "Finding", "Severity", "Verdict"]

USUAL_DELTA = 1e-5
"""δ of a guarantee beside a claim that names none."""

_EXAMPLES = {
    "epsilon": "epsilon = 1.0, delta = 1e-5",
    "advantage": "advantage = 0.1",
    "tpr": "tpr = 0.1, fpr = 0.01",
    "success": "success = 0.6, prior = 0.5",
    "mu": "mu = 1.0, delta = 1e-9",
    "rho": "rho = 0.5",
    "curve": "curve = [[0.5, 1e-3], [1.0, 1e-6]]",
}
"""One claim of each kind, as it is written."""

CLAIM_KEYS = frozenset(
    {"epsilon", "delta", "source", *(each.name for kind in RISKS.values() for each in fields(kind))}
)
"""Every key that a claim may have."""


class Verdict(StrEnum):
    """What is known of a claim."""

    CERTIFIED = "certified"
    """An accountant proves it."""
    UNPROVEN = "unproven"
    """No accountant can prove it, or an error in a finding takes the ground from the proof."""
    REFUTED = "refuted"
    """An audit rejects it at its stated error rate."""


@dataclass(frozen=True)
class Claim(Checked):
    """What an author states of the whole algorithm: (ε, δ), or in its place a risk.

    Attributes:
        epsilon: stated ε, at least 0; of a risk, the ε of a point that follows from it.
        delta: stated δ in [0, 1); of a risk, the δ of that point.
        source: where it is stated, for people.
        risk: what is stated in place of (ε, δ): how well an attack may do, or a curve.

    >>> print(Claim(1.0, 1e-5))
    ε = 1, δ = 1e-05
    >>> print(Claim.of(tpr=0.1, fpr=0.01))
    TPR ≤ 0.1 at FPR 0.01
    """

    epsilon: NonNegative
    delta: Probability = 0.0
    source: str = ""
    risk: Risk | None = None

    @classmethod
    def of(cls, **stated: Any) -> Claim:
        """The claim of one kind: ``epsilon`` (and ``delta``), or the fields of a risk.

        These are ``advantage``; ``tpr`` and ``fpr``; ``success`` (and ``prior``); ``curve``, a list
        of points [ε, δ]; ``mu`` or ``rho`` (and ``delta``).

        Raises:
            InputError: if a field is unknown, missing or invalid, or two kinds are stated.
        """
        return cls.from_dict(stated)

    def __str__(self) -> str:
        if self.risk is not None:
            return str(self.risk)
        return f"ε = {self.epsilon:g}, δ = {self.delta:g}"

    @property
    def measure(self) -> str:
        """What the claim limits, as advice on a larger or a smaller one names it."""
        return "ε" if self.risk is None else "risk"

    @property
    def points(self) -> tuple[CurvePoint, ...]:
        """The (ε, δ) that it consists of; of a smooth curve some. By increasing ε."""
        stated = (CurvePoint(self.epsilon, self.delta),) if self.risk is None else self.risk.points
        return tuple(sorted(stated, key=lambda point: point.epsilon))

    @property
    def implied(self) -> PointsCurve:
        """The curve δ(ε) that follows from these."""
        return PointsCurve(self.points)

    @property
    def curve(self) -> Callable[[ArrayLike], Any] | None:
        """The curve as an audit tests it; None where a single (ε, δ) says all of it."""
        return None if self.risk is None else self.risk.tested

    def implies(self, other: Claim) -> bool:
        """Tell whether whatever keeps this claim keeps the other, as far as points can tell."""
        if isinstance(other.risk, GaussianCurve | Concentrated):
            kinds = zip(astuple(self.risk or self), astuple(other.risk), strict=False)
            return type(self.risk) is type(other.risk) and all(own <= limit for own, limit in kinds)
        return other.excess(self.implied) is None

    def excess(self, whole: Composition) -> str | None:
        """Tell what is proved instead; None where the proof lies within the claim."""
        if self.risk is not None:
            return self.risk.excess(whole)
        proved = whole.epsilon(self.delta).upper
        return None if holds(proved, self.epsilon) else f"ε = {proved:.6g} at δ = {self.delta:g}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON record: what is stated, and its source."""
        stated = {"epsilon": self.epsilon, "delta": self.delta}
        return (stated if self.risk is None else self.risk.to_dict()) | {"source": self.source}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Claim:
        """Read what :meth:`to_dict` wrote.

        Raises:
            InputError: if a field is unknown, missing or invalid, or two kinds are stated.
        """
        given = toml_tables.table(
            "claim", record if isinstance(record, Mapping) else {}, CLAIM_KEYS
        )
        kinds = [key for key in ("epsilon", *RISKS) if key in given]
        if len(kinds) != 1:
            said = " and ".join(kinds or [f"only {k}" for k in given if k != "source"]) or "nothing"
            shown = "; ".join(_EXAMPLES.values())
            raise InputError(f"claim states {said}; it must be a table like: {shown}.")
        kind = kinds[0]
        known = {each.name: each for each in fields(RISKS.get(kind, cls))}
        for name in given.keys() - known.keys() - {"source"}:
            raise InputError(
                f"claim has both {kind!r} and {name!r}; it must be like {_EXAMPLES[kind]}."
            )
        for name, each in known.items():
            if each.default is MISSING and name not in given:
                raise InputError(
                    f"claim has {kind!r} without {name!r}; it must be like {_EXAMPLES[kind]}."
                )
        source = given.pop("source", "")
        if kind == "epsilon":
            return cls(**given, source=source)
        return cls.stating(RISKS[kind].from_dict(given), source)

    @classmethod
    def stating(cls, risk: Risk, source: str = "") -> Claim:
        """The claim of a risk."""
        point = risk.points[0]
        return cls(point.epsilon, point.delta, source, risk)
