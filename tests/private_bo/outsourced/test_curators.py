"""Curators: the paper's formulas, the certified sensitivities, and what must never be released."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpaudit.certificate import SubjectRecord, Verdict, certify
from dpaudit.errors import InputError, PlanMismatchError
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian, Laplace
from private_bo.outsourced import (
    AnswerDesk,
    CertifiedCurator,
    Curator,
    OutsourcedProblem,
    Release,
    RowNoise,
    loans,
    properties,
)
from private_bo.outsourced.problems import grid_rows, in_public_box, load_problem, to_norm
from private_bo.outsourced.rows import inflated, largest_l1_gain, public_projection, thin_svd

RNG = np.random.default_rng(20200712)
ROWS = to_norm(RNG.normal(size=(40, 2)))


def record(subject):
    return certify(
        subject.plan(),
        subject=SubjectRecord("x"),
        claim=subject.claim(),
        findings=subject.findings(),
        not_covered=subject.not_covered(),
    )


class TestAlgorithm1:
    @pytest.mark.parametrize(("exponent", "largest"), [(1.1, 10), (1.3, 15), (1.5, 20)])
    def test_largest_r_of_the_printed_tables(self, exponent, largest):
        grids = {1.1: (3, 6, 8, 10, 15, 20), 1.3: (3, 9, 12, 15, 20, 30)}
        choices = grids.get(exponent, (5, 10, 15, 20, 30, 50))
        least = thin_svd(grid_rows())[1][-1]
        assert least == pytest.approx(1030.88, abs=0.005)
        kept = [r for r in choices if Curator(math.exp(exponent), 1e-5, r).omega <= least]
        assert max(kept) == largest

    def test_singular_values_are_inflated_in_the_same_directions(self):
        X = ROWS - ROWS.mean(axis=0)
        omega = 2 * np.linalg.svd(X, compute_uv=False)[-1]
        left, values, right = np.linalg.svd(inflated(X, omega), full_matrices=False)
        expected = np.sqrt(np.linalg.svd(X, compute_uv=False) ** 2 + omega**2)
        np.testing.assert_allclose(values, expected, rtol=1e-12)
        undone = (left * np.sqrt(values**2 - omega**2)) @ right
        np.testing.assert_allclose(undone, X, atol=1e-10)

    def test_rows_with_large_singular_values_are_left_alone(self):
        X = ROWS - ROWS.mean(axis=0)
        assert inflated(X, np.linalg.svd(X, compute_uv=False)[-1] * 0.999) is X

    def test_thin_svd_is_numpys(self):
        left, values, right = thin_svd(ROWS)
        np.testing.assert_allclose((left * values) @ right, ROWS, atol=1e-12)
        np.testing.assert_allclose(values, np.linalg.svd(ROWS, compute_uv=False), rtol=1e-12)

    @pytest.mark.parametrize("bound", [25.0, 1e6], ids=["inflated", "plain"])
    def test_release_is_the_papers_formula(self, bound):
        curator = Curator(dimension=7, norm_bound=bound)
        rows = ROWS * (bound / 25)
        X = rows - rows.mean(axis=0)
        left, values, right = np.linalg.svd(X, full_matrices=False)
        if values[-1] < curator.omega:
            X = left @ np.diag(np.sqrt(values**2 + curator.omega**2)) @ right
        M = np.random.default_rng(5).standard_normal((2, 7))
        (release,) = curator.audit_release(rows, 1, np.random.default_rng(5))
        np.testing.assert_allclose(release, X @ M / math.sqrt(7), rtol=1e-9, atol=1e-9)

    def test_ledger_and_audit_draw_the_same(self):
        curator = Curator(dimension=3)
        with Ledger(curator.plan(), rng=np.random.default_rng(1)) as ledger:
            release = curator.publish(ROWS, ledger)
        (again,) = curator.audit_release(ROWS, 1, np.random.default_rng(1))
        np.testing.assert_array_equal(release.points, again)

    def test_claim_is_unproven_and_says_why(self):
        certificate = record(Curator())
        assert certificate.verdict is Verdict.UNPROVEN
        rules = {finding.rule for finding in certificate.findings}
        assert rules >= {"disjoint-supports", "data-dependent-branch", "outside-the-claim"}


class TestCertified:
    @pytest.mark.parametrize("noise", list(RowNoise))
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, math.exp(1.1), 20.0])
    @pytest.mark.parametrize("shape", [(2, 10), (3, 15), (8, 3)])
    def test_certified_at_its_claim(self, noise, epsilon, shape):
        curator = CertifiedCurator(epsilon, 1e-5, shape[1], shape[0], noise=noise, rows=50)
        certificate = record(curator)
        assert certificate.verdict is Verdict.CERTIFIED
        assert certificate.guarantee.epsilon <= epsilon

    def test_laplace_needs_no_delta(self):
        assert record(CertifiedCurator(delta=0.0)).verdict is Verdict.CERTIFIED

    def test_the_least_noise_is_chosen(self):
        few, many = (
            CertifiedCurator(1.0, columns=2),
            CertifiedCurator(1.0, columns=40, dimension=40),
        )
        assert isinstance(few.mechanism, Laplace)
        assert isinstance(many.mechanism, Gaussian)
        for curator in (few, many):
            others = [
                CertifiedCurator(1.0, 1e-5, curator.dimension, curator.columns, noise=noise)
                for noise in (RowNoise.LAPLACE, RowNoise.GAUSSIAN)
            ]
            assert curator.noise_variance == min(other.noise_variance for other in others)

    def test_gaussian_noise_is_the_analytic_mechanism_at_the_centred_sensitivity(self):
        curator = CertifiedCurator(1.0, 1e-5, noise=RowNoise.GAUSSIAN, rows=10)
        ratio = math.sqrt(1 - 1 / 10) / math.sqrt(curator.noise_variance)
        # Balle and Wang 2018, Theorem 8.
        delta = norm.cdf(ratio / 2 - 1 / ratio) - math.e * norm.cdf(-ratio / 2 - 1 / ratio)
        assert delta == pytest.approx(1e-5, rel=1e-6)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(
        seed=st.integers(0, 2**32),
        noise=st.sampled_from([RowNoise.LAPLACE, RowNoise.GAUSSIAN]),
        columns=st.integers(1, 5),
        dimension=st.integers(1, 6),
    )
    def test_no_neighbours_are_farther_apart_than_declared(self, seed, noise, columns, dimension):
        rng = np.random.default_rng(seed)
        curator = CertifiedCurator(1.0, 1e-5, dimension, columns, noise=noise, rows=12)
        rows = to_norm(rng.normal(size=(12, columns)), 20.0)
        moved = rows.copy()
        step = rng.normal(size=columns)
        moved[rng.integers(12)] += step / np.linalg.norm(step)
        distance = curator._value(curator.checked(rows)) - curator._value(curator.checked(moved))
        order = 1 if noise is RowNoise.LAPLACE else 2
        assert np.linalg.norm(distance.ravel(), order) <= curator.sensitivity * (1 + 1e-9)

    @pytest.mark.parametrize("noise", [RowNoise.LAPLACE, RowNoise.GAUSSIAN])
    def test_the_declared_distance_is_reached(self, noise):
        curator = CertifiedCurator(1.0, 1e-5, noise=noise, rows=len(ROWS))
        moved = ROWS.copy()
        moved[3] -= np.sign(ROWS[3]) / math.sqrt(2)
        difference = (curator._value(ROWS) - curator._value(moved)).ravel()
        order = 1 if noise is RowNoise.LAPLACE else 2
        assert np.linalg.norm(difference, order) == pytest.approx(curator.sensitivity, rel=1e-9)

    def test_l1_gain_against_a_search(self):
        matrix = np.random.default_rng(3).normal(size=(3, 4))
        directions = np.random.default_rng(4).normal(size=(200_000, 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        found = np.abs(directions @ matrix).sum(axis=1).max()
        assert found <= largest_l1_gain(matrix) <= found * 1.001
        wide = np.random.default_rng(5).normal(size=(3, 20))
        assert np.abs(directions @ wide).sum(axis=1).max() <= largest_l1_gain(wide)

    def test_projection_depends_on_the_public_seed_alone(self):
        assert np.array_equal(public_projection(5, 3, 7), public_projection(5, 3, 7))
        assert not np.array_equal(public_projection(5, 3, 7), public_projection(5, 3, 8))
        assert np.array_equal(public_projection(3, 3, 7), np.eye(3))

    def test_noise_has_the_declared_variance(self):
        for noise in (RowNoise.LAPLACE, RowNoise.GAUSSIAN):
            curator = CertifiedCurator(noise=noise)
            draws = curator.audit_release(ROWS, 500, np.random.default_rng(0))
            errors = draws - curator._value(ROWS)
            # Relative standard error sqrt(5/40000) at most; 6 of them.
            assert np.var(errors) == pytest.approx(curator.noise_variance, rel=0.07)


BAD_ROWS = {
    "NaN": (np.where(np.arange(80).reshape(40, 2) == 7, np.nan, ROWS), "NaN"),
    "text": ([["a", "b"]] * 9, "finite numbers"),
    "constant": (np.column_stack([ROWS[:, 0] * 0 + 1, ROWS[:, 1]]), "column 0 of rows is constant"),
    "few": (ROWS[:2], "more rows than columns"),
    "wide": (np.ones((40, 3)), "3 columns"),
    "flat": (ROWS[:, 0], "shape"),
    "long": (ROWS * 1.01, "norm_bound"),
}


@pytest.mark.parametrize("kind", [Curator, CertifiedCurator])
@pytest.mark.parametrize("name", BAD_ROWS)
def test_nothing_is_released_after_a_failed_check(kind, name):
    rows, message = BAD_ROWS[name]
    curator = kind()
    ledger = Ledger(curator.plan(), rng=np.random.default_rng(0))
    with pytest.raises(InputError, match=message):
        curator.publish(rows, ledger)
    assert len(ledger) == 0
    with pytest.raises(InputError, match=message):
        curator.audit_release(rows, 1, np.random.default_rng(0))
    if kind is Curator:
        with pytest.raises(InputError, match=message):
            ledger.release(curator.mechanism, rows)
        assert len(ledger) == 0


def test_declared_number_of_rows():
    with pytest.raises(InputError, match="declared 41"):
        CertifiedCurator(rows=41).checked(ROWS)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dimension": 0}, "dimension is 0"),
        ({"dimension": 10**12}, "GiB"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"columns": 0}, "columns"),
        ({"norm_bound": -1.0}, "norm_bound"),
        ({"output_epsilon": -1.0}, "output_epsilon"),
        ({"queries": 0}, "queries"),
    ],
)
@pytest.mark.parametrize("kind", [Curator, CertifiedCurator])
def test_bad_fields(kind, fields, message):
    with pytest.raises(InputError, match=message):
        kind(**fields)


def test_bad_fields_of_one_curator():
    with pytest.raises(InputError, match="delta"):
        Curator(delta=0.0)
    with pytest.raises(InputError, match="delta"):
        CertifiedCurator(delta=0.0, noise=RowNoise.GAUSSIAN)
    with pytest.raises(InputError, match="noise is 'none'"):
        CertifiedCurator(noise="none")


def test_a_release_larger_than_memory_is_refused():
    curator = Curator(dimension=10**7)
    with pytest.raises(InputError, match="at most"):
        curator.checked(ROWS)


class TestProtocol:
    def test_desk_answers_each_row_once(self):
        desk = AnswerDesk(3, lambda row: 10.0 * row)
        assert desk.ask(2) == 20.0
        with pytest.raises(InputError, match="row is 2, which has been measured"):
            desk.ask(2)
        assert desk.ask(np.int64(0)) == 0.0

    @pytest.mark.parametrize("row", [3, -1, 0.5, True, "1", None])
    def test_desk_refuses_rows_that_do_not_exist(self, row):
        with pytest.raises(InputError, match="whole number from 0 to 2"):
            AnswerDesk(3, float).ask(row)

    def test_desk_refuses_outputs_that_are_no_numbers(self):
        with pytest.raises(InputError, match="output"):
            AnswerDesk(3, lambda _: math.nan).ask(0)

    def test_release_cannot_be_written_to(self):
        release = Release(ROWS)
        with pytest.raises(ValueError, match="read-only"):
            release.points[0, 0] = 1.0

    def test_outputs_through_a_mechanism_are_charged_by_row(self):
        curator = CertifiedCurator(1.0, queries=12, output_epsilon=0.5, output_bound=2.0)
        problem = OutsourcedProblem("small", ROWS, np.linspace(-1.0, 1.0, 40))
        with Ledger(curator.plan(), rng=np.random.default_rng(0)) as ledger:
            curator.run(problem, ledger, np.random.default_rng(1))
        units = [entry.unit for entry in ledger]
        assert units[0] is None
        assert len(set(units[1:])) == 12
        certificate = record(curator)
        assert certificate.verdict is Verdict.CERTIFIED
        assert 1.49 < certificate.guarantee.epsilon <= 1.5
        assert not any(f.rule == "outside-the-claim" for f in certificate.findings)

    def test_the_ledger_refuses_a_second_output_of_a_row(self):
        curator = CertifiedCurator(1.0, queries=12, output_epsilon=0.5)
        ledger = Ledger(curator.plan(), rng=np.random.default_rng(0))
        curator.publish(ROWS, ledger)
        curator.desk(40, float, ledger).ask(3)
        with pytest.raises(PlanMismatchError, match="row 3"):
            curator.desk(40, float, ledger).ask(3)


class TestProblems:
    def test_run_on_the_properties(self):
        curator = Curator(queries=30)
        problem = curator.load("taipei", np.random.default_rng(0))
        with Ledger(curator.plan(), rng=np.random.default_rng(1)) as ledger:
            result = curator.run(problem, ledger, np.random.default_rng(2))
        assert problem.size == 414
        assert result.summary["queries"] == 30
        curve = result.series["simple regret"]
        assert np.all(np.diff(curve) <= 0)
        assert curve[-1] >= 0

    def test_rows_are_centred_then_scaled(self):
        rows = properties().rows
        np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=1e-10)
        assert np.linalg.norm(rows, axis=1).max() == pytest.approx(25.0)

    def test_a_certified_curator_scales_by_public_constants(self):
        """Where a row is put depends on no other row; with the paper's scaling it does."""
        rows = CertifiedCurator().load("taipei", np.random.default_rng(0)).rows
        assert np.linalg.norm(rows, axis=1).max() <= 25.0
        degrees = np.array([[121.54024, 24.98298], [121.6, 24.98298]])
        box = ((121.47, 24.93), (121.57, 25.02))
        alone = in_public_box(degrees[:1], *box)
        np.testing.assert_array_equal(alone[0], rows[0])
        np.testing.assert_array_equal(in_public_box(degrees, *box)[0], rows[0])
        assert not np.array_equal(to_norm(properties().rows[1:])[0], properties().rows[1])

    def test_more_queries_than_rows(self):
        curator = CertifiedCurator(queries=41)
        ledger = Ledger(curator.plan())
        problem = OutsourcedProblem("small", ROWS, np.zeros(40))
        with pytest.raises(InputError, match="queries is 41"):
            curator.run(problem, ledger, np.random.default_rng(0))
        assert len(ledger) == 0

    def test_loans_from_a_file(self, tmp_path):
        file = tmp_path / "loans.csv"
        lines = ["funded_amnt_inv,int_rate,annual_inc,total_pymnt_inv,other"]
        lines += [f"{1000 * k},{0.01 * k},{1e4 * k},{1100 * k - 300},x" for k in range(5)]
        file.write_text("\n".join(lines))
        problem = load_problem(str(file), np.random.default_rng(0))
        assert problem.rows.shape == (4, 3)  # nothing was lent in the first
        ratios = np.log([0.8, 0.95, 1.0, 1.025])
        np.testing.assert_allclose(problem.f, ratios / ratios.std())

    @pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "funded_amnt_inv,int_rate\n1,2"])
    def test_other_files_are_refused(self, tmp_path, content):
        file = tmp_path / "loans.csv"
        file.write_text(content)
        with pytest.raises(InputError, match="CSV file of loans"):
            loans(file)

    def test_missing_data(self, monkeypatch, tmp_path):
        monkeypatch.delenv("DPAUDIT_DATA", raising=False)
        with pytest.raises(InputError, match="DPAUDIT_DATA"):
            load_problem("loans", np.random.default_rng(0))
        with pytest.raises(InputError, match="CSV file of loans"):
            loans(tmp_path / "none.csv.gz")
        with pytest.raises(InputError, match="must be grid"):
            load_problem("sensors", np.random.default_rng(0))

    def test_shapes(self):
        with pytest.raises(InputError, match="one output for each"):
            OutsourcedProblem("x", ROWS, np.zeros(3))
        with pytest.raises(InputError, match="all equal"):
            to_norm(np.ones((4, 2)))
