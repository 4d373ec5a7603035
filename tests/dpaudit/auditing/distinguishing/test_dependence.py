"""Runs that depend on each other are found; independent ones of any law raise no alarm."""

import numpy as np
import pytest

from dpaudit import AuditPair, InconclusiveError
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.distinguishing import dependence
from dpaudit.auditing.distinguishing.dependence import require_independent

PROCESSES, CALLS = [200] * 16, [50] * 64
RNG = np.random.default_rng(0)
RUNS = 3200


def whole(side, other=None):
    other = RNG.laplace(size=RUNS) if other is None else other
    require_independent((side, other), PROCESSES, CALLS)


LAWS = {
    "laplace": lambda: RNG.laplace(size=RUNS),
    "cauchy": lambda: RNG.standard_cauchy(size=(RUNS, 3)),
    "infinite": lambda: np.where(RNG.random(RUNS) < 0.3, np.inf, RNG.laplace(size=RUNS)),
    "bits": lambda: RNG.integers(2, size=RUNS).astype(float),
    "rare": lambda: (RNG.random(RUNS) < 0.002).astype(float),
    "an atom": lambda: np.maximum(RNG.laplace(size=RUNS), 0),
    "grid": lambda: RNG.geometric(0.01, size=RUNS).astype(float),
    "constant": lambda: np.zeros(RUNS),
}


@pytest.mark.parametrize("law", LAWS)
def test_independent_runs_are_let_pass(law, monkeypatch):
    # 60 samples at an error of 1e-7 each: a false alarm in less than 1e-5 of all seeds.
    monkeypatch.setattr(dependence, "ERROR", 1e-7)
    for _ in range(30):
        whole(LAWS[law](), LAWS[law]())


def test_the_error_rate_is_as_stated(monkeypatch):
    """At an error of 0.2, at most 20 % alarms; 60 of 150 has a probability below 1e-7."""
    monkeypatch.setattr(dependence, "ERROR", 0.2)
    alarms = 0
    for _ in range(150):
        try:
            whole(RNG.laplace(size=RUNS))
        except InconclusiveError:
            alarms += 1
    assert alarms < 60


def steps(size, spread):
    return np.repeat(RNG.laplace(scale=spread, size=RUNS // size), size)


@pytest.mark.parametrize(
    ("side", "message"),
    [
        (lambda: steps(50, 1.0), "runs on x have a rank correlation"),
        (lambda: steps(2, 1.0) + 0.5 * RNG.laplace(size=RUNS), "neighbouring runs"),
        (lambda: steps(50, 0.5) + RNG.laplace(size=RUNS), "blocks of (16|25|32|64|100) runs"),
        (lambda: steps(200, 0.4) + RNG.laplace(size=RUNS), "blocks of (32|64|100) runs"),
        (lambda: np.tile(RNG.laplace(size=200), 16), "one place of two processes|exact values"),
        (lambda: RNG.laplace(size=(16, 40))[np.arange(RUNS) // 200, RNG.integers(40, size=RUNS)],
         "exact values of a (process|call) on x repeat"),
        (lambda: steps(50, 1.0) > 0, "rank correlation"),
    ],
)  # fmt: skip
def test_dependent_runs_are_found(side, message):
    with pytest.raises(InconclusiveError, match=f"runs are not independent: .*({message})"):
        whole(side().astype(float))


def test_equal_noise_on_both_sides_is_found():
    noise = RNG.laplace(size=RUNS)
    with pytest.raises(InconclusiveError, match="the same runs on x and on x'"):
        whole(noise, noise + 1)


def test_few_runs_prove_nothing():
    for runs in (1, 2, 3, 20):
        require_independent((np.arange(runs) * 1.0, np.zeros(runs)), [runs], [runs])


def shared(data, rng, size):
    return data + 3 * rng.laplace() + 1e-3 * rng.laplace(size=size)


class Remembers:
    def __init__(self):
        self.noise = None

    def __call__(self, data, rng):
        if self.noise is None:
            self.noise = np.random.laplace()  # noqa: NPY002
        return data + self.noise + 0.5 * rng.laplace()


@pytest.mark.processes
@pytest.mark.parametrize("seed", range(3))
def test_audits_of_right_mechanisms_that_share_draws_are_inconclusive(seed):
    settings = {"epsilon": 2.0, "runs": 3000, "seed": seed}
    with pytest.raises(InconclusiveError, match=r"differs from single calls|not independent"):
        audit_release(BlackBox(shared), AuditPair(0.0, 1.0), **settings)
    with pytest.raises(InconclusiveError, match="not independent"):
        audit_release(BlackBox(Remembers()), AuditPair(0.0, 1.0), own_randomness=True, **settings)
