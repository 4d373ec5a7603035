from dataclasses import dataclass
from dpaudit import AddRemove, Claim, Contribution, DiscreteLaplace, Invocation, Laplace
from dpaudit import Plan, PrivacyUnit, RunResult, SealedSubject, Table, TrustModel

WARDS = ("A1", "A2", "B1")


@dataclass(frozen=True)
class Wards(SealedSubject):
    """Visits of each ward, and what a visit of an adult costs in the busiest one."""

    epsilon: float = 1.0
    rows: int = 5  # that count of each patient

    def table(self) -> Table:
        return Table(
            source="visits.csv",
            unit="patient_id",
            columns={
                "ward": {"type": "text", "values": list(WARDS)},
                "age": {"type": "integer", "range": [0, 110]},
                "cost": {"type": "number", "range": [0, 3000], "step": 0.01},
            },
        )

    def plan(self) -> Plan:
        about = (PrivacyUnit("patient"), AddRemove(), TrustModel.CENTRAL)
        visits = Contribution(self.rows, rows=self.rows)
        spent = Contribution(3000.0, rows=self.rows)
        counted = DiscreteLaplace(3 * self.rows / self.epsilon)
        summed = Laplace(3 * 3000.0 / self.epsilon)
        return Plan.of(
            Invocation.bounded(counted, visits, *about, at="visits"),
            Invocation.bounded(summed, spent, *about, at="cost"),
            Invocation.bounded(counted, visits, *about, at="adults"),
        )

    def claim(self) -> Claim:
        return Claim(self.epsilon)

    def run(self, data, ledger, rng):
        visits = ledger.histogram(data, "ward", at="visits")
        busiest = WARDS[int(visits.argmax())]  # numbers that were released may decide anything
        adults = data.filter(f"age >= 18 AND ward = '{busiest}'")
        mean = ledger.mean(adults.vector("cost"), total="cost", count="adults")
        adults.tell_owner("adults")  # written for the owner of the data alone
        found = dict(zip(WARDS, visits.tolist(), strict=True))
        return RunResult({"visits": found, "busiest": busiest, "cost": round(float(mean), 2)})
