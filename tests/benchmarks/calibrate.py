"""Random targets for ``dpaudit calibrate``: what it prints must certify, and 0.1 % less must not.

::

    python -m tests.benchmarks.calibrate [TARGETS]
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.accounting import compose
from dpaudit.base.errors import InputError
from dpaudit.certificate import Claim, SubjectRecord, Verdict, certify
from dpaudit.mechanisms import Mechanism
from dpaudit.project.plan_file import read_plan
from dpaudit.workflow.calibrating import calibrate_target

CLAIMS = ("epsilon", "pure", "advantage", "success", "tpr", "mu", "slack", "rho", "curve")
_UNSCALED = ("opaque", "shuffled", "laplace-vector", "gaussian-vector")
"""Whose noise is no one number."""
_SCALED = {"p": 1, "lie": 1, "sigma": 1, "scale": 1, "epsilon": -1, "rho": -2}


@dataclass(frozen=True)
class Target:
    """What is to be calibrated."""

    kind: str
    settings: tuple[str, ...]
    claim: str


@dataclass(frozen=True)
class Tried:
    """What came of it: a fault, a sentence that refuses, or neither."""

    target: Target
    fault: str = ""
    refused: str = ""


def targets(number: int, seed: int, quick: bool = False) -> Iterator[Target]:
    """Every mechanism with every kind of claim in turn, with random numbers."""
    rng = np.random.default_rng(seed)
    own = (k for k, each in Mechanism.kinds().items() if each.__module__.startswith("dpaudit."))
    kinds = sorted(kind for kind in own if kind not in _UNSCALED)
    order = rng.permutation(len(kinds) * len(CLAIMS))
    for place in range(number):
        one = int(order[place % len(order)])
        kind, claim = kinds[one // len(CLAIMS)], CLAIMS[one % len(CLAIMS)]
        yield Target(kind, tuple(_settings(kind, rng, quick)), _claim(claim, rng))


def _settings(kind: str, rng: np.random.Generator, quick: bool) -> Iterator[str]:
    mechanism = Mechanism.kinds()[kind]
    whole = "discrete-" in kind
    if mechanism.norm == "change":
        yield "sensitivity=1"
    else:
        sensitivity = int(rng.integers(1, 4)) if whole else float(10 ** rng.uniform(-2, 2))
        yield f"sensitivity={sensitivity!r}"
    if kind.startswith("continual"):
        yield f"participations={int(rng.integers(1, 3))}"
        tree = rng.choice(["binary-tree", "honaker-tree", "square-root-toeplitz"])
        yield f"factorization={json.dumps({'kind': str(tree), 'steps': int(rng.integers(1, 200))})}"
    if kind in ("randomized-response", "unary-encoding", "subset-selection"):
        yield f"k={int(rng.integers(2, 9))}"
    if kind == "top-k":
        yield f"k={int(rng.integers(1, 5))}"
    if kind == "individual-gaussian":
        yield "steps=5"
    if kind == "staircase":
        yield f"width={sensitivity!r}"
    if kind == "truncated-laplace":
        yield f"bound={300.0 * sensitivity!r}"
    if kind == "sparse-vector":
        yield f"threshold={float(rng.normal())!r}"
        yield f"cutoff={int(rng.integers(1, 9))}"
    if kind == "truncated-discrete-gaussian":
        yield f"bound={int(rng.integers(20, 3000))}"
    if kind == "bit-vector-response":
        yield f"bits={int(rng.integers(8, 40))}"
        yield f"ones={int(rng.integers(1, 8))}"
    if kind in ("stable-histogram", "gaussian-histogram"):
        yield f"threshold={float(rng.integers(2, 2000))!r}"
        yield f"key_sensitivity={int(rng.integers(1, 4))}"
    if kind == "approximate-black-box":
        yield f"delta={float(10 ** rng.uniform(-12, -8))!r}"
    yield f"relation={rng.choice(['add-remove', 'replace-one', 'zero-out'])}"
    count = int(rng.choice([1, 1, 2] if quick or whole else [1, 1, 10, 300]))
    yield f"count={count}"
    if kind == "gaussian" and not quick and rng.random() < 0.2:
        yield 'sampling={"scheme": "poisson", "rate": 0.05}'
        yield "relation=add-remove"


def _claim(kind: str, rng: np.random.Generator) -> str:
    small, delta = float(10 ** rng.uniform(-2, 0.7)), float(10 ** rng.uniform(-9, -3))
    fpr = float(10 ** rng.uniform(-3, -0.5))
    prior = float(rng.uniform(0.2, 0.8))
    success = max(prior, 1 - prior) + rng.uniform(0.05, 0.6) * min(prior, 1 - prior)
    return {
        "epsilon": f"epsilon = {small}, delta = {delta}",
        "pure": f"epsilon = {small}",
        "advantage": f"advantage = {rng.uniform(0.01, 0.8)}",
        "success": f"success = {float(success)}, prior = {prior}",
        "tpr": f"tpr = {fpr + rng.uniform(0.02, 0.7) * (1 - fpr)}, fpr = {fpr}",
        "mu": f"mu = {small}",
        "slack": f"mu = {small}, delta = {delta}",
        "rho": f"rho = {small * small / 2}",
        "curve": f"curve = [[{small / 3}, {10 * delta}], [{small}, {delta}]]",
    }[kind]


def tried(target: Target) -> Tried:
    """Calibrate, certify what is printed, and again with a little less noise."""
    settings = list({each.partition("=")[0]: each for each in target.settings}.values())
    try:
        found = calibrate_target(target.kind, settings, target.claim)
    except InputError as error:  # a claim that this mechanism can never keep
        return Tried(target, refused=str(error))
    content = json.loads(json.dumps(found.content))
    read = read_plan(content)
    made = certify(read.plan, subject=SubjectRecord("read again"), claim=read.claim)
    if made.verdict is not Verdict.CERTIFIED:
        return Tried(target, fault=f"{found.noise} is {made.verdict}")
    if _with_less(content, read.claim):
        return Tried(target, fault=f"less than {found.noise} is certified too")
    return Tried(target)


def _with_less(content: dict[str, Any], claim: Claim | None) -> bool:
    """Whether 0.1 % less noise keeps the claim as well."""
    (item,) = content["invocation"]
    name = next(name for name in _SCALED if name in item)
    item[name] *= 0.999 ** _SCALED[name]
    assert claim is not None
    return claim.excess(compose(read_plan(content | {"claim": claim.to_dict()}).plan)) is None


def main(number: int) -> int:
    """Print how many targets were tried, refused and wrong."""
    counted: Counter[str] = Counter()
    for target in targets(number, seed=2026):
        found = tried(target)
        outcome = "wrong" if found.fault else "refused" if found.refused else "right"
        counted[outcome] += 1
        if found.fault:
            print(f"{target}: {found.fault}", flush=True)
        if sum(counted.values()) % 100 == 0:
            print(f"{sum(counted.values())} targets so far: {dict(counted)}", flush=True)
    print(f"{number} targets: {dict(counted)}")
    return 1 if counted["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
