"""What both curators share: outputs through a mechanism, and a run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rehearsals import Gossip, rules
from scipy.stats import norm
from subject_conformance import SubjectConformance

from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.certificate import SubjectRecord, Verdict, certify
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian, Laplace
from private_bo.outsourced import CertifiedCurator, Curator, OutsourcedProblem, RowNoise
from private_bo.outsourced.problems import grid_rows, scale_to_norm, thin_svd

RNG = np.random.default_rng(20200712)
ROWS = scale_to_norm(RNG.normal(size=(40, 2)))


class TestCertified(SubjectConformance):
    subject = CertifiedCurator(5.0, queries=12, output_epsilon=2.0, output_bound=2.0)

    def data(self):
        return OutsourcedProblem("small", ROWS, np.linspace(-1.0, 1.0, 40))

    def neighbour(self):
        rows = ROWS.copy()
        rows[4] *= 1 - 1 / np.linalg.norm(rows[4])
        return OutsourcedProblem("small", rows, np.linspace(-1.0, 1.0, 40))

    def bad_data(self):
        yield ROWS
        yield OutsourcedProblem("few", ROWS[:11], np.zeros(11))
        yield OutsourcedProblem("large", 2 * ROWS, np.zeros(40))


def record(subject):
    return certify(
        subject.plan(),
        subject=SubjectRecord("x"),
        claim=subject.claim(),
        findings=subject.findings(),
        not_covered=subject.not_covered(),
    )


def test_outputs_through_a_mechanism_are_charged_by_row():
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


def test_the_ledger_refuses_a_second_output_of_a_row():
    curator = CertifiedCurator(1.0, queries=12, output_epsilon=0.5)
    ledger = Ledger(curator.plan(), rng=np.random.default_rng(0))
    curator.publish(ROWS, ledger)
    curator.desk(40, float, ledger).ask(3)
    with pytest.raises(PlanMismatchError, match="this one has been charged"):
        curator.desk(40, float, ledger).ask(3)


def test_run_on_the_properties():
    curator = Curator(queries=30)
    problem = curator.load("taipei", np.random.default_rng(0))
    with Ledger(curator.plan(), rng=np.random.default_rng(1)) as ledger:
        result = curator.run(problem, ledger, np.random.default_rng(2))
    assert problem.size == 414
    assert result.summary["queries"] == 30
    curve = result.for_owner.series["simple regret"]
    assert np.all(np.diff(curve) <= 0)
    assert curve[-1] >= 0


def test_more_queries_than_rows():
    curator = CertifiedCurator(queries=41)
    ledger = Ledger(curator.plan())
    problem = OutsourcedProblem("small", ROWS, np.zeros(40))
    with pytest.raises(InputError, match="queries is 41"):
        curator.run(problem, ledger, np.random.default_rng(0))
    assert len(ledger) == 0


@pytest.mark.parametrize("kind", [Curator, CertifiedCurator])
@pytest.mark.parametrize("output_epsilon", [None, 1.0])
def test_a_rehearsal_finds_nothing(kind, output_epsilon):
    assert rules(kind(queries=15, output_epsilon=output_epsilon), "taipei") == set()


@pytest.mark.parametrize("kind", [Curator, CertifiedCurator])
def test_a_rehearsal_finds_an_output_that_is_not_clipped(kind):
    class Unclipped(kind):
        @property
        def output_mechanism(self):
            return Laplace(super().output_mechanism.scale)

    class Small(Unclipped):
        def load(self, source, rng):
            return OutsourcedProblem(source, ROWS, np.zeros(40))

    # Every row is asked for, so those that moved are.
    assert rules(Small(queries=40, output_epsilon=1.0)) == {"sensitivity-understated"}


def test_a_rehearsal_finds_rows_on_another_scale():
    class Doubled(CertifiedCurator):
        def value(self, rows):
            return 2 * super().value(rows)

    assert rules(Doubled(queries=15), "taipei") == {"sensitivity-understated"}


@pytest.mark.parametrize("kind", [Curator, CertifiedCurator])
def test_a_rehearsal_finds_a_regret_that_is_published(kind):
    mistaken = type("Mistaken", (Gossip, kind), {})(queries=15, output_epsilon=1.0)
    assert rules(mistaken, "taipei") == {"result-not-from-releases"}


def test_neighbours_are_within_the_ball():
    curator = CertifiedCurator(queries=15)
    problem = OutsourcedProblem("small", ROWS, np.zeros(40))
    for move in curator.neighbours(problem, np.random.default_rng(0)):
        apart = np.linalg.norm(move.data.rows - ROWS, axis=1)
        assert np.count_nonzero(apart) == 1
        assert 0.999 < apart.max() <= 1
        assert np.array_equal(move.data.f, problem.f)


@pytest.mark.parametrize(("exponent", "largest"), [(1.1, 10), (1.3, 15), (1.5, 20)])
def test_largest_r_of_the_printed_tables(exponent, largest):
    grids = {1.1: (3, 6, 8, 10, 15, 20), 1.3: (3, 9, 12, 15, 20, 30)}
    choices = grids.get(exponent, (5, 10, 15, 20, 30, 50))
    least = thin_svd(grid_rows())[1][-1]
    assert least == pytest.approx(1030.88, abs=0.005)
    kept = [r for r in choices if Curator(math.exp(exponent), 1e-5, r).omega <= least]
    assert max(kept) == largest


@pytest.mark.parametrize("bound", [25.0, 1e6], ids=["inflated", "plain"])
def test_release_is_the_papers_formula(bound):
    curator = Curator(dimension=7, norm_bound=bound)
    rows = ROWS * (bound / 25)
    X = rows - rows.mean(axis=0)
    left, values, right = np.linalg.svd(X, full_matrices=False)
    if values[-1] < curator.omega:
        X = left @ np.diag(np.sqrt(values**2 + curator.omega**2)) @ right
    M = np.random.default_rng(5).standard_normal((2, 7))
    (release,) = curator.audit_release(rows, 1, np.random.default_rng(5))
    np.testing.assert_allclose(release, X @ M / math.sqrt(7), rtol=1e-9, atol=1e-9)


def test_ledger_and_audit_draw_the_same():
    curator = Curator(dimension=3)
    with Ledger(curator.plan(), rng=np.random.default_rng(1)) as ledger:
        release = curator.publish(ROWS, ledger)
    (again,) = curator.audit_release(ROWS, 1, np.random.default_rng(1))
    np.testing.assert_array_equal(release.points, again)


def test_claim_is_unproven_and_says_why():
    certificate = record(Curator())
    assert certificate.verdict is Verdict.UNPROVEN
    rules = {finding.rule for finding in certificate.findings}
    assert rules >= {"disjoint-supports", "data-dependent-branch", "outside-the-claim"}


@pytest.mark.parametrize("noise", list(RowNoise))
@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.exp(1.1), 20.0])
@pytest.mark.parametrize("shape", [(2, 10), (3, 15), (8, 3)])
def test_certified_at_its_claim(noise, epsilon, shape):
    curator = CertifiedCurator(epsilon, 1e-5, shape[1], shape[0], noise=noise, rows=50)
    certificate = record(curator)
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon <= epsilon


def test_laplace_needs_no_delta():
    assert record(CertifiedCurator(delta=0.0)).verdict is Verdict.CERTIFIED


def test_the_least_noise_is_chosen():
    few, many = (CertifiedCurator(1.0, columns=2), CertifiedCurator(1.0, columns=40, dimension=40))
    assert isinstance(few.mechanism, Laplace)
    assert isinstance(many.mechanism, Gaussian)
    for curator in (few, many):
        others = [
            CertifiedCurator(1.0, 1e-5, curator.dimension, curator.columns, noise=noise)
            for noise in (RowNoise.LAPLACE, RowNoise.GAUSSIAN)
        ]
        assert curator.noise_variance == min(other.noise_variance for other in others)


def test_gaussian_noise_is_the_analytic_mechanism_at_the_centred_sensitivity():
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
def test_no_neighbours_are_farther_apart_than_declared(seed, noise, columns, dimension):
    rng = np.random.default_rng(seed)
    curator = CertifiedCurator(1.0, 1e-5, dimension, columns, noise=noise, rows=12)
    rows = scale_to_norm(rng.normal(size=(12, columns))) * 0.8
    moved = rows.copy()
    step = rng.normal(size=columns)
    moved[rng.integers(12)] += step / np.linalg.norm(step)
    distance = curator.value(curator.checked(rows)) - curator.value(curator.checked(moved))
    order = 1 if noise is RowNoise.LAPLACE else 2
    assert np.linalg.norm(distance.ravel(), order) <= curator.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("noise", [RowNoise.LAPLACE, RowNoise.GAUSSIAN])
def test_the_declared_distance_is_reached(noise):
    curator = CertifiedCurator(1.0, 1e-5, noise=noise, rows=len(ROWS))
    moved = ROWS.copy()
    moved[3] -= np.sign(ROWS[3]) / math.sqrt(2)
    difference = (curator.value(ROWS) - curator.value(moved)).ravel()
    order = 1 if noise is RowNoise.LAPLACE else 2
    assert np.linalg.norm(difference, order) == pytest.approx(curator.sensitivity, rel=1e-9)


def test_noise_has_the_declared_variance():
    for noise in (RowNoise.LAPLACE, RowNoise.GAUSSIAN):
        curator = CertifiedCurator(noise=noise)
        draws = curator.audit_release(ROWS, 500, np.random.default_rng(0))
        errors = draws - curator.value(ROWS)
        # Relative standard error sqrt(5/40000) at most; 6 of them.
        assert np.var(errors) == pytest.approx(curator.noise_variance, rel=0.07)


BAD_ROWS = {
    "NaN": (np.where(np.arange(80).reshape(40, 2) == 7, np.nan, ROWS), "NaN"),
    "text": ([["a", "b"]] * 9, "finite numbers"),
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


@pytest.mark.parametrize("kind", [Curator, CertifiedCurator])
def test_a_constant_column_is_released_like_any_other(kind):
    """A refusal would tell it from its neighbour, in which one row differs."""
    rows = np.column_stack([np.full(len(ROWS), 0.2), ROWS[:, 1] / 2])
    curator = kind()
    ledger = Ledger(curator.plan(), rng=np.random.default_rng(0))
    assert np.isfinite(np.asarray(curator.publish(rows, ledger).points)).all()
    assert len(ledger) == 1


def test_no_error_shows_a_value_of_the_rows():
    for rows in (ROWS * 1.01, [["HIV+", 1.0]] * 9):
        with pytest.raises(InputError) as caught:
            Curator().checked(rows)
        assert "HIV" not in str(caught.value)
        assert f"{np.linalg.norm(ROWS * 1.01, axis=1).max():.4g}" not in str(caught.value)


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
