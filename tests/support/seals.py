"""A certificate of a sealed run, of a record that is made by hand."""

from dpaudit import (
    AddRemove,
    Claim,
    Contribution,
    DiscreteLaplace,
    Invocation,
    Plan,
    PrivacyUnit,
    TrustModel,
    certify,
)
from dpaudit.certificate import SealRecord, SubjectRecord
from dpaudit.certificate.records import TRIES

SEAL = SealRecord(
    "Linux 6.12.1 x86_64",
    ("namespaces of its own", "no clock", "Landlock (ABI 6)", "seccomp, 58 calls allowed"),
    dict.fromkeys(TRIES, "EPERM"),
    "visits.csv",
    "cd" * 32,
    {"wards.csv": "ef" * 32},
)
CODE = SubjectRecord("visits.py:Visits", {}, "ab" * 32, "visits.py:8")
RUN = {
    "summary": {"data": "visits.csv", "visits": 812, "releases": 1},
    "series": {},
    "ledger": {
        "journal": "0" * 32,
        "lines": 3,
        "head": "1" * 64,
        "entries": 1,
        "samplers": {"opendp 0.16.0, exact": 1},
        "seeded": False,
        "durability": "process",
    },
}


def visits(mechanism=None, **changes):
    """A plan of one count of rows."""
    facts = {
        "unit": PrivacyUnit("patient"),
        "relation": AddRemove(),
        "trust": TrustModel.CENTRAL,
        "contribution": Contribution(rows=1, bound=1.0),
        "at": "visits",
    }
    return Plan.of(Invocation(mechanism or DiscreteLaplace(2.0), 1.0, **(facts | changes)))


def sealed(plan=None, *, seal=SEAL, run=RUN, seed=None):
    """A certificate of code that ran sealed."""
    plan = visits() if plan is None else plan
    made = certify(plan, subject=CODE, claim=Claim(1.0), not_covered=("Trends.",), seal=seal)
    return made.with_run(run, seed)
