"""Valid plans of every kind: each must certify, run and verify, within time and memory.

Run ``python -m tests.benchmarks.fuzz [--cases 5000] [--seed 0] [--only NUMBER]``. A case follows
from the seed and its number alone. Its plan is written as TOML where plan files can say it; it is
certified, saved and verified; a subject that releases exactly what the plan declares is run through
a ledger with a journal, of which the journal is verified and the account compared with the plan.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import numpy as np

from dpaudit import (
    AddRemove,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampling,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Mechanism,
    MetricBall,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    RandomizedResponse,
    ReplaceOne,
    TrustModel,
    ZeroOut,
    certify,
)
from dpaudit.accounting import seconds_of_proof
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.certificate import SubjectRecord, load_certificate, verify
from dpaudit.ledger import FloatNoise, summarise_journal
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ExponentialMechanism,
    NoisyMax,
    Norm,
    SparseVector,
    SubsetSelection,
    UnaryEncoding,
)
from dpaudit.mechanisms.choice import Choice, Noise
from dpaudit.mechanisms.continual import (
    BinaryTree,
    BufferedToeplitz,
    ContinualGaussian,
    ContinualLaplace,
    HonakerTree,
    SquareRootToeplitz,
)
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import Contribution, Group, Membership, Sampling

MOST_SECONDS, MOST_MEGABYTES = 60.0, 1500.0
_EXTREME = (1e-300, 1e-12, 1e-3, 0.3, 1.0, 3.0, 1e3, 1e12, 1e300)
_RUNNABLE = 200
"""Releases that are made in a run; plans with more are certified and verified alone."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case: a violation or "", processor seconds, memory, the estimate."""

    violation: str
    seconds: float
    megabytes: float
    estimate: float
    kinds: tuple[str, ...]
    ran: bool
    refused: str


def number(rng: random.Random) -> float:
    """A positive number, usual or extreme."""
    return rng.choice(_EXTREME) if rng.random() < 0.15 else math.exp(rng.uniform(-3, 5))


def count(rng: random.Random) -> int:
    return rng.choice([1, 1, 1, 2, 3, 10, 100, 10**4, 10**7, 10**12, 10**15])


def mechanism(rng: random.Random) -> Mechanism:
    steps = rng.choice([1, 2, 3, 7, 8, 64, 1000])
    pattern = {
        "participations": rng.choice([1, 1, 2, 10**6]),
        "min_separation": rng.choice([1, 3]),
        "fixed_steps": rng.random() < 0.5,
    }
    factorization = rng.choice(
        [
            BinaryTree(steps),
            BinaryTree(steps, release_root=True),
            HonakerTree(steps),
            SquareRootToeplitz(steps),
            BufferedToeplitz(steps, (1e-3, 0.1), (1e-2,)),
        ]
    )
    clip = rng.choice([None, (-1.0, 1.0), (0.0, 1e6)])
    return rng.choice(
        [
            lambda: Laplace(number(rng), clip=clip),
            lambda: Gaussian(number(rng), clip_norm=rng.choice([None, 1.0, 5.0])),
            lambda: DiscreteLaplace(rng.choice([0.01, 0.5, 3.0, 100.0, 1e15])),
            lambda: DiscreteGaussian(rng.choice([0.3, 1.0, 10.0, 100.0])),
            lambda: RandomizedResponse(
                rng.choice([1.0, 0.5, 0.01, 1e-300]), rng.choice([2, 3, 2**53])
            ),
            lambda: ExponentialMechanism(number(rng), number(rng)),
            lambda: NoisyMax(number(rng), number(rng), rng.random() < 0.5, rng.choice([*Noise])),
            lambda: SparseVector(number(rng), 0.0, rng.choice([1, 3, 10**6])),
            lambda: UnaryEncoding(3, rng.choice([0.5, 0.01, 1e-300]), rng.choice([0.5, 0.9])),
            lambda: SubsetSelection(4, rng.choice([1.0, 0.5, 1e-300]), rng.choice([1, 3])),
            lambda: ContinualGaussian(
                sigma=number(rng),
                factorization=factorization,
                symmetric=rng.random() < 0.2,
                **pattern,
            ),
            lambda: ContinualLaplace(scale=number(rng), factorization=factorization, **pattern),
            lambda: ApproximateBlackBox(rng.choice([0.01, 1.0, 700.0]), rng.choice([0.0, 1e-9])),
        ]
    )()


def sampling(rng: random.Random, trust: TrustModel) -> Sampling | None:
    if trust is TrustModel.LOCAL or rng.random() < 0.6:
        return None
    if rng.random() < 0.5:
        return FixedSizeSampling(rng.choice([1, 7, 99, 100]), rng.choice([100, 10**6, 10**15]))
    return PoissonSampling(rng.choice([1e-300, 1e-9, 0.01, 0.5, 1.0]))


def sensitivity(rng: random.Random, one: Mechanism) -> float:
    if one.norm is Norm.CHANGE:
        return rng.choice([0.0, 1.0, 1.0])
    if isinstance(one, DiscreteLaplace | DiscreteGaussian):
        return float(rng.choice([0, 1, 2, 10]))
    return rng.choice([0.0, 1.0, 2.0, number(rng)])


def made_plan(rng: random.Random) -> Plan:
    """A valid plan; what the constructors refuse is drawn again."""
    while True:
        relation = rng.choice([AddRemove(), ReplaceOne(), ZeroOut(), MetricBall(number(rng))])
        trust = rng.choice(list(TrustModel))
        membership = rng.choice(list(Membership))
        invocations = []
        for place in range(rng.choice([1, 1, 2, 3, 6])):
            one, times = mechanism(rng), count(rng)
            facts = {
                "count": times,
                "total": min(times * rng.choice([1, 1, 3]), 10**15),
                "group": Group(f"group {rng.randrange(3)}", membership)
                if rng.random() < 0.3
                else None,
                "sampling": sampling(rng, trust),
                "at": f"place {place} — ε",
            }
            shift = sensitivity(rng, one)
            summed = one.norm in (Norm.L1, Norm.L2) and not isinstance(one, Continual)
            if summed and rng.random() < 0.15 and shift > 0:
                bound = shift / relation.contribution_factor
                if 1e-200 <= bound <= 1e200:
                    facts["total"] = times  # a sum touches every unit
                    facts["contribution"] = Contribution(bound, rows=rng.choice([None, 1, 5]))
            try:
                invocations.append(
                    Invocation(one, shift, PrivacyUnit("user"), relation, trust, **facts)
                )
            except InputError:
                continue
        if invocations:
            return Plan.of(*invocations)


def value(one: Mechanism) -> object:
    """A private value that the mechanism accepts."""
    if isinstance(one, Choice | SparseVector):
        return np.array([0.0, 1.0, -2.0])
    if isinstance(one, Continual):
        side = (2, 2) if getattr(one, "symmetric", False) else ()
        return np.zeros((one.factorization.steps, *side))
    return 0


def run(plan: Plan, folder: Path, seed: int) -> bool:
    """Release exactly what a plan declares; whether it was tried."""
    if sum(one.releases for one in plan.invocations) > _RUNNABLE:
        return False
    path = folder / "ledger.jsonl"
    with Ledger(plan, noise=FloatNoise(np.random.default_rng(seed)), journal=path) as ledger:
        for one in plan.invocations:
            name = "all" if one.group is None else one.group.name
            for place in range(one.releases):
                # As many units as are needed, each touched as often as is declared.
                unit = None if one.contribution else f"{name} {place // one.count}"
                if isinstance(one.mechanism, ApproximateBlackBox):
                    ledger.observe(one.mechanism, _Elsewhere(), unit=unit, at=one.at)
                elif one.contribution is not None:
                    ledger.sum(np.zeros(5, dtype=np.int64), at=one.at)
                else:
                    ledger.release(one.mechanism, value(one.mechanism), unit=unit, at=one.at)
    summary = summarise_journal(path)
    assert summary.releases == sum(one.releases for one in plan.invocations)
    for one in plan.invocations:
        assert summary.account.most_for_one(one.at) <= one.count
    assert summary.closed
    return True


class _Elsewhere:
    """Another library, which draws."""

    sampler = "elsewhere 1.0"

    def draw(self) -> None:
        """Nothing to do."""


def case(seed: int, place: int) -> Outcome:
    """One case, made and judged."""
    rng = random.Random(f"{seed}/{place}")
    plan, violation, ran, refused = made_plan(rng), "", False, ""
    estimate = seconds_of_proof(plan)
    start, before = time.process_time(), getrusage(RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        try:
            delta = rng.choice([1e-6, 1e-6, 1e-12, 0.1, 0.0])
            assert Plan.from_dict(plan.to_dict()) == plan
            certificate = certify(plan, subject=SubjectRecord(f"case {place}"), delta=delta)
            path = certificate.save(Path(folder) / "certificate.json")
            again = load_certificate(path)
            assert again.to_dict() == certificate.to_dict()
            verify(again)
            proved = certificate.guarantee
            if proved is not None:
                assert proved.epsilon >= 0  # and so no NaN
                assert all(0 <= point.delta <= 1 for point in proved.curve)
            try:
                ran = run(plan, Path(folder), seed)
            except UnsupportedError as error:
                refused = str(error)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a violation
            violation = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - start
    megabytes = (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024  # beyond what others needed
    if not violation and seconds > max(MOST_SECONDS, 2 * 2 * estimate):  # proved twice
        violation = f"took {seconds:.0f} s, estimated {estimate:.0f} s"
    if not violation and megabytes > MOST_MEGABYTES:
        violation = f"the process grew by {megabytes:.0f} MB"
    kinds = tuple(sorted({one.mechanism.kind for one in plan.invocations}))
    return Outcome(violation, seconds, megabytes, estimate, kinds, ran, refused)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument(
        "--estimated-below", type=float, default=float("inf"), help="leave out slower proofs"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    last = arguments.first + arguments.cases
    places = [arguments.only] if arguments.only is not None else range(arguments.first, last)
    outcomes: dict[int, Outcome] = {}
    try:
        for place in places:
            plan = made_plan(random.Random(f"{arguments.seed}/{place}"))
            if seconds_of_proof(plan) >= arguments.estimated_below:
                continue
            outcomes[place] = case(arguments.seed, place)
            if outcomes[place].violation:
                print(f"VIOLATION in case {place}: {outcomes[place].violation:.400}", flush=True)
    except KeyboardInterrupt:
        print("interrupted; of the cases so far:")
    seconds = np.array([one.seconds for one in outcomes.values()])
    shares = np.quantile(seconds, [0.5, 0.9, 0.99, 1.0])
    print(
        f"{len(outcomes)} cases, {sum(bool(one.violation) for one in outcomes.values())} violations"
    )
    names = ("half", "90 %", "99 %", "worst")
    told = ", ".join(f"{name} {each:.2f}" for name, each in zip(names, shares, strict=True))
    print(f"processor seconds: {told}")
    print(f"largest growth {max(one.megabytes for one in outcomes.values()):.0f} MB")
    print(f"{sum(one.ran for one in outcomes.values())} were run through a ledger")
    slow = sorted(outcomes, key=lambda place: -outcomes[place].seconds)[:5]
    for place in slow:
        one = outcomes[place]
        print(f"  case {place}: {one.seconds:.1f} s (estimated {one.estimate:.0f}) {one.kinds}")
    low = [p for p, one in outcomes.items() if one.seconds > 2 * 2 * max(one.estimate, 5.0)]
    print(
        f"{len(low)} took more than twice their estimate (two proofs, of 5 s or more): {low[:10]}"
    )
    kinds = Counter(kind for one in outcomes.values() for kind in one.kinds)
    print("mechanisms: " + ", ".join(f"{kind} {times}" for kind, times in sorted(kinds.items())))
    for sentence, times in Counter(one.refused for one in outcomes.values()).most_common(5):
        print(f"  {times} × {sentence:.160}" if sentence else f"  {times} × nothing refused")


if __name__ == "__main__":
    main()
