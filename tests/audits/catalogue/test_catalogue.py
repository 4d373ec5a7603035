"""The catalogue, reduced: every wrong row within its budget, right rows with fewer runs."""

import json

import pytest

from audits.catalogue import ENTRIES
from audits.catalogue.entry import Entry
from audits.catalogue.measuring import audit_entry, run_catalogue
from audits.catalogue.summary import Summary
from dpaudit import Claim
from dpaudit.base.errors import InputError

WRONG = [entry for entry in ENTRIES if not entry.right]
RIGHT = [entry for entry in ENTRIES if entry.right]


def names(entries):
    return [entry.name for entry in entries]


@pytest.mark.parametrize("entry", WRONG, ids=names(WRONG))
def test_wrong_rows_are_refuted_within_their_budget(entry):
    record = audit_entry(entry, seed=11)
    assert record.refuted
    assert record.runs <= entry.runs
    assert (record.confidence is None) == (entry.exact is not None)
    if entry.rho is None:
        assert record.epsilon_lower <= entry.true_epsilon * (1 + 1e-9)


def test_right_rows_are_not_refuted_more_often_than_stated():
    rows = run_catalogue(RIGHT, seed=100, runs=1_000)
    assert all(row.as_expected for row in rows)
    alarms = Summary.of(rows).false_alarms
    assert alarms.trials >= 50
    # At 5 % each, 15 of 50 and more have a probability below 1e-7.
    assert alarms.hits < 15


def test_true_losses_are_those_of_the_literature():
    true = {entry.name: entry.true_epsilon for entry in ENTRIES}
    expected = {
        "Laplace, half the scale": 2.0,
        "Laplace, 0.9 of the scale": 1.111,
        "histogram, scale ε for 1/ε": 2.0,
        "noisy max that returns the value": 5.0,
        "sparse vector, Lee and Clifton, c = 5": (1 + 6 * 5) / 4,
        "Gaussian, half of σ": 2.155,
        "Gaussian, L∞ sensitivity in 16 dimensions": 4.746,
        "classic Gaussian calibration at ε = 10": 10.39,
        "10 rounds accounted as 1": 3.619,
        "subsampled Gaussian that never samples": 4.377,
        "tree that ignores its levels, Laplace": 4.0,
    }
    for name, value in expected.items():
        assert true[name] == pytest.approx(value, abs=0.006), name
    steep = next(e for e in WRONG if e.name.startswith("exponential"))
    assert audit_entry(steep, 0).epsilon_lower == pytest.approx(steep.true_epsilon)


def test_permute_and_flip_needs_more_than_the_stated_rho():
    entry = next(entry for entry in WRONG if entry.rho is not None)
    record = audit_entry(entry, seed=0)
    assert entry.rho[1] == pytest.approx(0.6885, abs=5e-5)
    assert record.details["rho_lower"] >= entry.rho[1]
    assert record.details["claim_rho"] == 0.5
    assert json.loads(json.dumps(record.to_dict()))["verdict"] == "refuted"
    (row,) = run_catalogue([entry])
    assert json.loads(json.dumps(row.to_dict()))["as_expected"] is True


def test_entries_that_contradict_themselves_are_refused():
    with pytest.raises(InputError, match="does not go with right = True"):
        Entry("x", True, Claim(1.0), 0, 1, 2.0, 100, lambda d, n, rng: rng.random(n))
    with pytest.raises(InputError, match="needs one of"):
        Entry("x", False, Claim(1.0), 0, 1, 2.0)
