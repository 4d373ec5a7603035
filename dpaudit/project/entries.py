"""What a project file lists: subjects, attacks and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dpaudit.accounting import AccountantName
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Record
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim
from dpaudit.project.execution import Execution
from dpaudit.project.subject import AuditPair

DRAWN = ("runs", "confidence", "seed", "workers", "timeout", "memory", "own_randomness")
"""Fields of an execution that a project file may give."""

REPEATABLE = Execution(confidence=0.99, seed=0)
"""Where a project file says nothing else: reports then differ only where something changed."""


class Code(StrEnum):
    """What a project file says of the code of a subject."""

    REHEARSED = "rehearsed"
    NOT_REHEARSED = "not rehearsed"
    """The certificate is to speak of the plan alone, and the row may be certified all the same."""


@dataclass(frozen=True)
class AuditEntry:
    """One attack.

    Attributes:
        execution: how many runs are drawn, at least 2, and how.
        pair: the neighbours; where not given, the best of the subject's own.
        every_pair: attack each of the subject's own pairs.
        exact: enumerate the outputs of the declared mechanism in place of runs.
        through_run: attack what the subject's real run releases, on a neighbour of its data.
        code: ``FILE.py:function`` to attack in place of the subject's own releases.
        arguments: of further parameters of that function, by name.
        epsilon: the ε under test; the claim's where not given.
        delta: the δ under test; the claim's where not given.
    """

    execution: Execution = REPEATABLE
    pair: AuditPair | None = None
    every_pair: bool = False
    exact: bool = False
    through_run: bool = False
    code: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        validate.integer_at_least(2, runs=self.execution.runs)
        for name in ("every_pair", "exact", "through_run"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is {shown(getattr(self, name))}; give true or false.")
        if self.arguments and (self.code is None or not isinstance(self.arguments, Mapping)):
            raise InputError("arguments must be a table, of the parameters of a function in code.")
        if self.code is not None:
            validate.text(code=self.code)
            if self.pair is None:
                raise InputError("code is given without a pair; add pair = [x, x'].")
        if self.through_run and (self.exact or self.every_pair or self.pair or self.code):
            raise InputError(
                "through_run is given with exact, every_pair, pair or code; it finds its own pair."
            )
        if self.exact and self.code is not None:
            raise InputError("exact and code are both given; code is attacked by runs only.")
        if self.every_pair and self.pair is not None:
            raise InputError("every_pair and pair are both given; keep one of them.")
        if self.epsilon is not None:
            validate.non_negative(epsilon=self.epsilon)
        if self.delta is not None:
            validate.probability(delta=self.delta)

    def tested(self, claim: Claim) -> Claim:
        """The claim with this entry's own numbers in place of its."""
        if self.epsilon is None and self.delta is None:
            return claim
        epsilon = claim.epsilon if self.epsilon is None else self.epsilon
        delta = claim.delta if self.delta is None else self.delta
        return Claim(epsilon, delta, claim.source)


@dataclass(frozen=True)
class SubjectEntry:
    """One subject.

    Attributes:
        name: of its files; unique.
        target: ``module:Object``, ``FILE.py:Object`` or a plan file.
        settings: public fields.
        claim: in place of the subject's own.
        delta: δ of the guarantee; the claim's where not given.
        accountant: whose proof is wanted.
        code: whether the code must be rehearsed for the row to be certified.
        data: what it is rehearsed on; its default data where not given.
        audits: the attacks; None where the file lists none.
        default_audit: made where the file lists none and the subject has code.
    """

    name: str
    target: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    claim: Claim | None = None
    delta: float | None = None
    accountant: str = AccountantName.BEST
    code: Code = Code.REHEARSED
    data: str | None = None
    audits: tuple[AuditEntry, ...] | None = None
    default_audit: AuditEntry = field(default_factory=AuditEntry)


@dataclass(frozen=True)
class BudgetEntry(Record):
    """The largest allowed ε at δ of all that some subjects release together.

    Attributes:
        name: for people.
        subjects: names of the subjects; they compose sequentially.
        limit: the allowed (ε, δ).
    """

    name: str
    subjects: tuple[str, ...]
    limit: Claim
