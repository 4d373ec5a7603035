from dataclasses import dataclass
from dpaudit import Claim, Invocation, Laplace, Plan, PrivacyUnit
from dpaudit import ReplaceOne, RunResult, Subject, TrustModel


@dataclass(frozen=True)
class Survey(Subject):
    """Every user answers once; the answer is clipped and noised before it leaves the user."""

    epsilon: float = 1.0
    users: int = 1000

    def mechanism(self) -> Laplace:
        return Laplace.calibrated(epsilon=self.epsilon, sensitivity=10, clip=(0, 10))

    def plan(self) -> Plan:
        about = (PrivacyUnit("user"), ReplaceOne(), TrustModel.LOCAL)
        return Plan.of(Invocation(self.mechanism(), 10, *about, total=self.users, at="answer"))

    def claim(self) -> Claim:
        return Claim(self.epsilon)

    def load(self, source, rng):
        return {f"user {n}": int(rng.integers(0, 11)) for n in range(self.users)}

    def run(self, data, ledger, rng):
        answers = [
            ledger.release(self.mechanism(), value, unit=user, at="answer")
            for user, value in data.items()
        ]
        return RunResult(
            {"mean": sum(answers) / len(answers)},
            owner=RunResult({"true mean": sum(data.values()) / len(data)}),
        )
