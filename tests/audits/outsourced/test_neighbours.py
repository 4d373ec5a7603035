"""Neighbouring data sets by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from audits.outsourced.canaries import canary_audit
from audits.outsourced.neighbours import Neighbours, inward, problem_rows
from dpaudit.base.errors import InputError
from private_bo.outsourced import Curator


def paper(epsilon, problem="taipei", dimension=15):
    return Curator(epsilon, 1e-5, dimension, problem_rows(problem).shape[1])


def test_rows_that_differ():
    neighbours = Neighbours.of("taipei", 5)
    x, x_prime = (neighbours.data(moved=moved) for moved in (False, True))
    changed = np.flatnonzero((x != x_prime).any(axis=1))
    assert changed.tolist() == [5]
    assert np.linalg.norm(x - x_prime) == pytest.approx(1.0)
    assert np.linalg.norm(x_prime, axis=1).max() <= 25.0 * (1 + 1e-9)
    assert Neighbours.from_dict(json.loads(json.dumps(neighbours.to_dict()))) == neighbours


def test_steps_lead_inwards():
    steps = inward(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(steps, [[-0.6, -0.8], [1.0, 0.0]])


def test_bad_input():
    with pytest.raises(InputError, match="norm 2"):
        Neighbours("taipei", 0, (2.0, 0.0))
    with pytest.raises(InputError, match="row is 414"):
        Neighbours.of("taipei", 414)
    with pytest.raises(InputError, match="neighbours are"):
        Neighbours.from_dict({"problem": "taipei"})
    with pytest.raises(InputError, match="canaries is 412"):
        canary_audit(paper(1.0), "taipei", canaries=412)
