"""What can be certified, run and audited: an algorithm with a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificate import Claim, Finding
from dpaudit.errors import UnsupportedError
from dpaudit.plan import Plan

if TYPE_CHECKING:
    from dpaudit.ledger import Ledger

__all__ = ["AuditPair", "RunResult", "Subject"]


@dataclass(frozen=True)
class AuditPair:
    """Two neighbouring data sets, as JSON values.

    Attributes:
        x: one of them.
        x_prime: the other.
        why: what makes this pair worth an attack.
    """

    x: Any
    x_prime: Any
    why: str = ""


@dataclass(frozen=True)
class RunResult:
    """What a run shows to its owner. Nothing here is private: it follows from the releases.

    Attributes:
        summary: named results, JSON values.
        series: named curves over rounds, such as the cumulative regret.
    """

    summary: Mapping[str, Any]
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A JSON record."""
        curves = {name: [float(y) for y in values] for name, values in self.series.items()}
        return {"summary": dict(self.summary), "series": curves}


class Subject(ABC):
    """Base of an algorithm: a frozen dataclass whose fields are its public configuration.

    Only :meth:`plan` must be written. Every field has a default, so that the algorithm can be
    certified with no more than a privacy parameter.
    """

    default_data: ClassVar[str] = "synthetic"
    """Name of the data that :meth:`load` gives where the user names none."""

    @abstractmethod
    def plan(self) -> Plan:
        """Every invocation that the algorithm may make, from its fields alone."""

    def claim(self) -> Claim | None:
        """What its author states of it, if anything."""
        return None

    def findings(self) -> tuple[Finding, ...]:
        """What its author knows that a reader of the certificate must know."""
        return ()

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out, one sentence each."""
        return ()

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Neighbours that are likely to show a mistake, worst first."""
        return ()

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` independent transcripts of what an adversary sees on ``data``, shape (size, …).

        The default serves algorithms of one invocation: the release of its mechanism.

        Raises:
            UnsupportedError: if the plan has several invocations.
        """
        invocations = self.plan().invocations
        if len(invocations) > 1:
            raise UnsupportedError(
                f"{type(self).__name__} has {len(invocations)} invocations and does not say how to "
                "audit them together; define audit_release."
            )
        return invocations[0].mechanism.release_many(data, size, rng)

    def load(self, source: str, rng: np.random.Generator) -> Any:
        """The data of that name or path, for :meth:`run`.

        Raises:
            InputError: if there are none.
        """
        raise UnsupportedError(f"{type(self).__name__} has no data {source!r} to run on.")

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Run on private data, which leave only through the ledger.

        Args:
            data: what :meth:`load` returned.
            ledger: a ledger of :meth:`plan`.
            rng: source of the randomness that has no privacy role.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot be run; define run.")
