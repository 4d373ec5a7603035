"""Samplers that leak through their bits, and ones that do not."""

import json

import numpy as np

from audits.catalogue.measuring_floats import FloatEntry, run_floats
from dpaudit import Claim, DiscreteLaplace, Laplace

LEAKS = FloatEntry("numpy", True, Claim(1.0), 1000, Laplace(1.0).release_many)
SOUND = FloatEntry("discrete", False, Claim(1.0), 1000, DiscreteLaplace(1.0).release_many)


def test_a_finding_is_expected_where_there_is_a_leak_and_nowhere_else():
    rows = run_floats([LEAKS, SOUND], seed=1)
    assert all(row.as_expected for row in rows)
    assert rows[0].rules == ("float-lsb",)
    assert rows[1].rules == ()
    unexpected = run_floats([FloatEntry("?", False, Claim(1.0), 1000, LEAKS.release)], seed=1)
    assert not unexpected[0].as_expected


def test_draws_are_at_most_the_budget_and_at_most_what_is_wanted():
    silent = FloatEntry("silent", False, Claim(1.0), 300, lambda x, n, rng: np.zeros(n))
    assert [row.draws for row in run_floats([silent])] == [300]
    assert [row.draws for row in run_floats([silent], draws=200)] == [200]


def test_a_row_is_strict_json():
    (row,) = run_floats([LEAKS])
    record = json.loads(json.dumps(row.to_dict(), allow_nan=False))
    assert (record["sampler"], record["leaks"], record["as_expected"]) == ("numpy", True, True)
