"""Private rows with outputs: their scale, and files that are none."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from private_bo.outsourced import CertifiedCurator, OutsourcedProblem, loans, properties
from private_bo.outsourced.problems import load_problem, scale_by_box, scale_to_norm

RNG = np.random.default_rng(20200712)
ROWS = scale_to_norm(RNG.normal(size=(40, 2)))


def test_rows_are_centred_then_scaled():
    rows = properties().rows
    np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=1e-10)
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(25.0)


def test_a_certified_curator_scales_by_public_constants():
    """Where a row is put depends on no other row; with the paper's scaling it does."""
    rows = CertifiedCurator().load("taipei", np.random.default_rng(0)).rows
    assert np.linalg.norm(rows, axis=1).max() <= 25.0
    degrees = np.array([[121.54024, 24.98298], [121.6, 24.98298]])
    box = ((121.47, 24.93), (121.57, 25.02))
    alone = scale_by_box(degrees[:1], *box)
    np.testing.assert_array_equal(alone[0], rows[0])
    np.testing.assert_array_equal(scale_by_box(degrees, *box)[0], rows[0])
    assert not np.array_equal(scale_to_norm(properties().rows[1:])[0], properties().rows[1])


def test_loans_from_a_file(tmp_path):
    file = tmp_path / "loans.csv"
    lines = ["funded_amnt_inv,int_rate,annual_inc,total_pymnt_inv,other"]
    lines += [f"{1000 * k},{0.01 * k},{1e4 * k},{1100 * k - 300},x" for k in range(5)]
    file.write_text("\n".join(lines))
    problem = load_problem(str(file), np.random.default_rng(0))
    assert problem.rows.shape == (4, 3)  # nothing was lent in the first
    ratios = np.log([0.8, 0.95, 1.0, 1.025])
    np.testing.assert_allclose(problem.f, ratios / ratios.std())


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "funded_amnt_inv,int_rate\n1,2"])
def test_other_files_are_refused(tmp_path, content):
    file = tmp_path / "loans.csv"
    file.write_text(content)
    with pytest.raises(InputError, match="CSV file of loans"):
        loans(file)


def test_missing_data(monkeypatch, tmp_path):
    monkeypatch.delenv("DPAUDIT_DATA", raising=False)
    with pytest.raises(InputError, match="DPAUDIT_DATA"):
        load_problem("loans", np.random.default_rng(0))
    with pytest.raises(InputError, match="there is no file"):
        loans(tmp_path / "none.csv.gz")
    with pytest.raises(InputError, match="must be one of grid"):
        load_problem("sensors", np.random.default_rng(0))


def test_shapes():
    with pytest.raises(InputError, match="one output for each"):
        OutsourcedProblem("x", ROWS, np.zeros(3))
    with pytest.raises(InputError, match="all equal"):
        scale_to_norm(np.ones((4, 2)))
