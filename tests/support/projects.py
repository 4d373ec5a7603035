"""Projects to be checked: plans, subjects that break in every way, and entries that name them."""

import json

PLAN = """
[plan]
unit = "row"
relation = "add-remove"
[claim]
epsilon = {claim}
[[invocation]]
mechanism = "{mechanism}"
sensitivity = 1
count = {count}
{rest}
"""

CODE = """
from dataclasses import dataclass
import numpy as np
from dpaudit import *

@dataclass(frozen=True)
class Sum(Subject):
    scale: float = 1.0

    def plan(self):
        return Plan.of(self.use("sum"))

    def use(self, at):
        row, trust = PrivacyUnit("row"), TrustModel.CENTRAL
        return Invocation(Laplace(self.scale), 1, row, AddRemove(), trust, at=at)

    def claim(self):
        return Claim(1.0)

    def audit_pairs(self):
        return (AuditPair(1.0, 0.0), AuditPair(0.5, 0.0))

class HalfTheNoise(Sum):
    def audit_release(self, data, size, rng):
        return Laplace(self.scale / 2).release_many(data, size, rng)

class NoNoise(Sum):
    def findings(self):
        return (Finding("no-noise", Severity.ERROR, "The code adds no noise."),)

class Twice(Sum):
    def plan(self):
        return Plan.of(self.use("one"), self.use("two"))

class Unclaimed(Sum):
    def claim(self):
        return None

class Leaves(Sum):
    def plan(self):
        raise SystemExit("good bye")

class Raises(Sum):
    def audit_release(self, data, size, rng):
        raise OSError("no\\nsuch disk")

class Confused(Sum):
    def claim(self):
        return "one"

class Runs(Sum):
    def load(self, source, rng):
        return rng.uniform(0, 1, 20)

    def run(self, rows, ledger, rng):
        total = np.clip(np.nan_to_num(rows), 0, 1).sum()
        return RunResult({"sum": ledger.release(Laplace(self.scale), total)})

class ShowsTheLargest(Runs):
    def run(self, rows, ledger, rng):
        shown = super().run(rows, ledger, rng).summary
        return RunResult({**shown, "largest": float(max(rows, default=0))})

class FailsOnItsData(Runs):
    def run(self, rows, ledger, rng):
        raise KeyError(f"secret {rows[0]}")

def half(data, rng, size):
    return data + rng.laplace(scale=0.5, size=size)

def double(data, rng, size):
    return data + rng.laplace(scale=2.0, size=size)
"""


def entry(name, target=None, *more, code="not rehearsed"):
    """A subject; its code has no data, which the project accepts unless ``code`` says otherwise."""
    lines = [f'name = "{name}"', f'target = "{target or f"code.py:{name}"}"']
    if not (target or "").endswith(".toml"):
        lines.append(f'code = "{code}"')
    return "[[subject]]\n" + "\n".join([*lines, *more]) + "\n"


def budget(epsilon, *names, delta=0.0):
    listed = f"subjects = {json.dumps(names)}\n" if names else ""
    return f"[[budget]]\nepsilon = {epsilon}\ndelta = {delta}\n{listed}"


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
