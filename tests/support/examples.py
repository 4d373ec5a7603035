"""Small subjects and plans that many tests share."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit import (
    AuditPair,
    Claim,
    Gaussian,
    Invocation,
    Laplace,
    Plan,
    PrivacyUnit,
    ReplaceOne,
    RunResult,
    Subject,
    TrustModel,
)
from dpaudit.base.errors import InputError

RESPONSE = PrivacyUnit("response")
LAPLACE = Laplace(scale=4.0, clip=(-2.0, 2.0))


def response_plan(*, count: int = 1, total: int = 3) -> Plan:
    """Local responses at ε = 1 each."""
    return Plan.of(
        Invocation(
            LAPLACE,
            4.0,
            RESPONSE,
            ReplaceOne(),
            TrustModel.LOCAL,
            count=count,
            total=total,
            at="answer",
        )
    )


def gaussian_invocation(sigma: float = 4.0, **changes: object) -> Invocation:
    """A central Gaussian release of sensitivity 1."""
    facts = {
        "mechanism": Gaussian(sigma),
        "sensitivity": 1.0,
        "unit": PrivacyUnit("row"),
        "relation": ReplaceOne(),
        "trust": TrustModel.CENTRAL,
    }
    return Invocation(**(facts | changes))


@dataclass(frozen=True)
class Answers(Subject):
    """Users answer one question each under local privacy."""

    epsilon: float = 1.0
    users: int = 3

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise InputError(f"epsilon is {self.epsilon}; it must be above 0.")

    def plan(self) -> Plan:
        return Plan.of(
            Invocation(
                Laplace.calibrated(epsilon=self.epsilon, sensitivity=4.0, clip=(-2.0, 2.0)),
                4.0,
                RESPONSE,
                ReplaceOne(),
                TrustModel.LOCAL,
                total=self.users,
                at="answer",
            )
        )

    def claim(self) -> Claim:
        return Claim(self.epsilon)

    def not_covered(self):
        return ("That somebody answered at all.",)

    def audit_pairs(self):
        return (AuditPair(2.0, -2.0, "ends of the clip"),)

    def load(self, source, rng):
        if source != "numbers":
            raise InputError(f"data is {source!r}; it must be 'numbers'.")
        return rng.uniform(-3, 3, self.users)

    def run(self, data, ledger, rng):
        mechanism = self.plan().invocations[0].mechanism
        answers = [
            ledger.release(mechanism, value, unit=f"user {user}", at="answer")
            for user, value in enumerate(data)
        ]
        return RunResult({"mean": sum(answers) / len(answers)}, {"answers": answers})


@dataclass(frozen=True)
class Careless(Answers):
    """Runs less often than it declares."""

    def run(self, data, ledger, rng):
        return Answers.run(self, data[:-1], ledger, rng)


@dataclass(frozen=True)
class Idle(Answers):
    """Releases nothing."""

    def run(self, data, ledger, rng):
        return RunResult({})
