"""Marginals measured for Private-PGM, in the environment of ``make observed``: numpy's noise."""

import numpy as np
import pytest

from dpaudit import AddRemove, Laplace, PrivacyUnit
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import replay
from dpaudit.observing import noting, plan_of, through
from dpaudit.plan import Invocation, Plan, TrustModel

mbi = pytest.importorskip("mbi", exc_type=ImportError)
ROW = PrivacyUnit("row")
ROWS = [(n % 2, n % 3) for n in range(20)]
DOMAIN = mbi.Domain(["a", "b"], [2, 3])


def estimated(rows):
    columns = np.array(rows).T
    data = mbi.Dataset(dict(zip("ab", columns, strict=True)), DOMAIN)
    marginal = data.project(("a", "b")).datavector()  # an array of jax
    noisy = marginal + np.random.default_rng(0).laplace(scale=2.0, size=marginal.size)
    measured = [mbi.LinearMeasurement(noisy, ("a", "b"))]
    return mbi.estimation.MirrorDescent().estimate(DOMAIN, measured, iters=5)


def test_the_noise_of_a_measurement_meets_its_marginal():
    with noting(AddRemove(), "numpy") as notes:
        model = estimated(ROWS)
    (call,) = notes.calls
    assert call.reading.mechanism == Laplace(2.0)
    counts = [sum(row == (a, b) for row in ROWS) for a in range(2) for b in range(3)]
    assert call.reading.value.tolist() == counts
    assert model.project(("a",)).datavector().size == 2
    assert not plan_of(notes.noted(ROW, AddRemove())).invocations[0].mechanism.real_valued


def test_a_measurement_is_replayed():
    about = (ROW, AddRemove(), TrustModel.CENTRAL)
    plan = Plan.of(Invocation(Laplace(2.0), 1.0, *about, at="estimated: laplace"))

    def run(data, ledger, _):
        with through(ledger, "numpy"):
            return np.asarray(estimated(data).project(("a",)).datavector()).tolist()

    assert replay(Routine(plan, run), ROWS, ROWS[1:]).clean
    (finding,) = replay(Routine(plan, run), ROWS, ROWS[2:]).findings
    assert finding.rule == "sensitivity-understated"
