"""What the largest accepted inputs cost: estimated seconds, processor seconds, memory.

Run ``python -m tests.benchmarks.work [PREFIX...]``; each case runs in a process of its own, whose
peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from dpaudit import (
    AddRemove,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampling,
    FloatNoise,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Mechanism,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    ReplaceOne,
    TrustModel,
    certify,
)
from dpaudit.accounting import guarantee, seconds_of_proof
from dpaudit.certificate import SubjectRecord
from dpaudit.mechanisms.continual import (
    BinaryTree,
    BufferedToeplitz,
    ContinualGaussian,
    ContinualLaplace,
    Factorization,
    HonakerTree,
    SquareRootToeplitz,
)
from dpaudit.plan import Group, Membership
from dpaudit.workflow.verifying import verify_file

TIMEOUT = 600
POISSON, FIXED = PoissonSampling(0.01), FixedSizeSampling(1, 100)


def plan(
    *mechanisms: Mechanism,
    relation: Relation | None = None,
    sensitivity: float = 1.0,
    **facts: object,
) -> Plan:
    unit, relation = PrivacyUnit("user"), relation or AddRemove()
    return Plan.of(
        *(
            Invocation(one, sensitivity, unit, relation, TrustModel.CENTRAL, **facts)  # type: ignore[arg-type]
            for one in mechanisms
        )
    )


def gaussians(number: int, **facts: object) -> Plan:
    return plan(*(Gaussian(1 + place / number) for place in range(number)), **facts)


def laplaces(number: int, **facts: object) -> Plan:
    return plan(*(Laplace(1 + place / number) for place in range(number)), **facts)


def stream(factorization: Factorization, participations: int, laplace: bool = False) -> Plan:
    pattern = {"participations": participations, "min_separation": 1000}
    if laplace:
        return plan(ContinualLaplace(scale=9.0, factorization=factorization, **pattern))
    return plan(ContinualGaussian(sigma=9.0, factorization=factorization, **pattern))


def grouped(number: int, membership: Membership) -> Plan:
    """No group dominates another."""
    return Plan.of(
        *(
            Invocation(
                Laplace(1 + place * 7919 % number / number),
                1.0,
                PrivacyUnit("user"),
                ReplaceOne(),
                TrustModel.CENTRAL,
                count=1 + place,
                group=Group(f"group {place}", membership),
            )
            for place in range(number)
        )
    )


def proofs() -> dict[str, Callable[[], Plan]]:
    """Plans, the largest of each kind first or last."""
    return {
        "count 10^15, laplace": lambda: plan(Laplace(1.0), count=10**15),
        "count 10^12, laplace": lambda: plan(Laplace(1.0), count=10**12),
        "count 10^15, poisson": lambda: plan(Gaussian(1.0), count=10**15, sampling=POISSON),
        "steps 10^7, tree": lambda: stream(BinaryTree(10**7), 100),
        "steps 10^6, tree L1": lambda: stream(BinaryTree(10**6), 100, laplace=True),
        "steps 10^7, honaker L1": lambda: stream(HonakerTree(10**7), 10_000, laplace=True),
        "steps 10^7, root": lambda: stream(SquareRootToeplitz(10**7), 100),
        "steps 10^7, buffers": lambda: stream(BufferedToeplitz(10**7, (1e-3, 0.1), (1e-2,)), 100),
        "discrete laplace 10^4": lambda: plan(DiscreteLaplace(1e4), sensitivity=1e4, count=1000),
        "discrete laplace 10^5": lambda: plan(DiscreteLaplace(1e5), sensitivity=1e5, count=1000),
        "discrete gaussian 10^4": lambda: plan(DiscreteGaussian(1e4), sensitivity=1e4, count=1000),
        "distinct 64, laplace": lambda: laplaces(64, count=1000),
        "distinct 64, poisson": lambda: gaussians(64, sampling=POISSON),
        "distinct 64, fixed": lambda: gaussians(64, sampling=FIXED, relation=ReplaceOne()),
        "distinct 300, poisson": lambda: gaussians(300, sampling=POISSON),
        "distinct 300, fixed": lambda: gaussians(300, sampling=FIXED, relation=ReplaceOne()),
        "distinct 1000, laplace": lambda: laplaces(1000),
        "distinct 10000, gaussian": lambda: gaussians(10_000),
        "groups 10, value": lambda: grouped(10, Membership.VALUE),
        "groups 30, position": lambda: grouped(30, Membership.POSITION),
    }


def certificate_of(number: int, folder: Path) -> Path:
    """A large certificate: many invocations alike."""
    many = plan(*[Gaussian(100.0)] * number)
    return certify(many, subject=SubjectRecord("large"), delta=1e-6).save(folder / "large.json")


def journal_of(number: int, folder: Path) -> Path:
    """A long journal, of a thousand units."""
    noise, path = Gaussian(1.0), folder / "ledger.jsonl"
    ledger = Ledger(plan(noise, count=number, total=number), journal=path, noise=FloatNoise())
    for start in range(0, number, 1000):
        size = min(1000, number - start)
        names = [f"user {place}" for place in range(size)]
        ledger.release_each(noise, [0.0] * size, units=names)
    ledger.close()
    return path


FILES = {
    "certificate of 10000 invocations": (certificate_of, 10_000),
    "certificate of 30000 invocations": (certificate_of, 30_000),
    "journal of 10^5 releases": (journal_of, 10**5),
    "journal of 10^6 releases": (journal_of, 10**6),
}


def measured(name: str) -> dict[str, float]:
    """Estimate, seconds and peak memory of one case, in this process."""
    found: dict[str, float] = {}
    if name in FILES:
        make, number = FILES[name]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.json"
            if make is journal_of:  # made elsewhere: its maker keeps every entry
                path = Path(folder) / "ledger.jsonl"
            code = (
                f"from tests.benchmarks.work import *; {make.__name__}({number}, Path({folder!r}))"
            )
            subprocess.run([sys.executable, "-c", code], check=True)
            found["bytes"] = path.stat().st_size
            start = time.process_time()
            verify_file(path)
            found["seconds"] = time.process_time() - start
    else:
        start = time.process_time()
        made = proofs()[name]()
        found["estimate"] = seconds_of_proof(made)
        guarantee(made, 1e-6)
        found["seconds"] = time.process_time() - start
    return found | {"memory": getrusage(RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    wanted = sys.argv[1:]
    print(f"{'case':36}{'estimate':>10}{'seconds':>10}{'MB':>8}{'file MB':>9}")
    for name in (*proofs(), *FILES):
        if wanted and not any(map(name.startswith, wanted)):
            continue
        code = (
            "import json; from tests.benchmarks.work import measured; "
            f"print(json.dumps(measured({name!r})))"
        )
        try:
            done = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            print(f"{name:36}{'':10}  over {TIMEOUT} s", flush=True)
            continue
        found = json.loads(done.stdout)
        estimate = f"{found['estimate']:.1f}" if "estimate" in found else ""
        size = f"{found['bytes'] / 1e6:.1f}" if "bytes" in found else ""
        seconds, memory = found["seconds"], found["memory"]
        print(f"{name:36}{estimate:>10}{seconds:>10.2f}{memory:>8.0f}{size:>9}", flush=True)


if __name__ == "__main__":
    main()
