"""The curators under attack: column space, branch, canaries, and what is stated of them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from audits.differences import differences
from audits.outsourced.__main__ import main
from audits.outsourced.attacks import (
    ColumnSpaceScore,
    attack,
    boundary_pair,
    branch_audit,
    canary_audit,
    column_space_audit,
    disjoint_supports,
    lattice_pair,
    reconstruct_rows,
)
from audits.outsourced.comparison import cells_of, curves_of
from audits.outsourced.counterexample import attack_curator, replay_audits
from audits.outsourced.neighbours import Neighbours, inward, problem_rows
from dpaudit import AuditPair, Verdict
from dpaudit.auditing import audit_release
from dpaudit.base.errors import InputError
from dpaudit.certificate import load_certificate
from dpaudit.mechanisms import Gaussian
from private_bo.outsourced import (
    CertifiedCurator,
    Curator,
    RowNoise,
    grid_problem,
)

EPSILONS = (math.exp(1.1), 0.1)
ALPHA = 1e-6


# -- neighbouring data sets by name ----------------------------------------------------------------


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


# -- the column-space attack: it refutes the paper's curator and spares the certified one ----------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_supports_are_disjoint(epsilon):
    record = disjoint_supports(paper(epsilon), Neighbours.of("taipei"))
    assert record.refuted
    assert record.epsilon_lower == math.inf
    assert record.details["sine_of_largest_angle"] > 1e6 * record.details["rounding"]
    still = Neighbours("taipei", 0, (0.0, 0.0))
    assert not disjoint_supports(paper(epsilon), still).refuted


def test_residuals_tell_neighbours_apart():
    record = column_space_audit(paper(0.1), Neighbours.of("taipei"), alpha=ALPHA)
    assert record.refuted
    own, other = record.details["residuals_on_x"].values()
    assert own["largest"] < 1e-8 * other["least"]


def test_one_pair_needs_more_releases_at_a_large_epsilon():
    """20 + 20 faultless answers are no proof against ε = e^1.1, and none is pretended."""
    record = column_space_audit(paper(EPSILONS[0]), Neighbours.of("taipei"), alpha=ALPHA)
    assert not record.refuted
    # A mechanism of that ε may answer all of them rightly with chance ((1 - 1/e^ε))^20.
    assert record.details["p_value"] == pytest.approx((1 - math.exp(-EPSILONS[0])) ** 20, 1e-2)
    needed = record.details["fewest_releases_a_side"]
    more = column_space_audit(
        paper(EPSILONS[0]), Neighbours.of("taipei"), releases=needed + 20, alpha=ALPHA
    )
    assert more.refuted


def test_the_score_serves_the_engine():
    neighbours = Neighbours.of("taipei")
    score = ColumnSpaceScore.of(*(neighbours.data(moved=moved) for moved in (False, True)))
    curator = paper(0.1, dimension=3)

    def release(moved, size, rng):
        return curator.audit_release(neighbours.data(moved=moved), size, rng)

    record = audit_release(
        release,
        AuditPair(False, True),
        epsilon=curator.epsilon,
        delta=curator.delta,
        runs=60,
        confidence=1 - ALPHA,
        seed=0,
        score=score,
    )
    assert record.refuted


@pytest.mark.parametrize("noise", [RowNoise.LAPLACE, RowNoise.GAUSSIAN])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_attack_refutes(noise, epsilon):
    curator = CertifiedCurator(epsilon, 1e-5, noise=noise)
    assert not column_space_audit(curator, Neighbours.of("taipei"), releases=100).refuted
    assert not canary_audit(curator, "taipei").refuted


# -- the branch of the paper's curator is a leak of its own ----------------------------------------


@pytest.mark.parametrize(("away", "refuted"), [({}, True), ({"offset": 2.0}, False)])
def test_the_branch_alone_refutes(away, refuted):
    record = branch_audit(Curator(norm_bound=1e4), **away, runs=2000, alpha=ALPHA)
    assert record.refuted is refuted


def test_the_pair_straddles_the_branch_and_is_legal():
    omega = Curator().omega
    pair = boundary_pair(omega)
    x, x_prime = np.array(pair.x), np.array(pair.x_prime)
    values = [
        np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)[-1] for rows in (x, x_prime)
    ]
    assert values[0] >= omega > values[1]
    assert np.linalg.norm(x - x_prime, axis=1).max() == pytest.approx(1.0)
    corner = lattice_pair(4)
    moved = np.linalg.norm(np.array(corner.x_prime) - np.array(corner.x), axis=1)
    assert moved == pytest.approx([1.0, *[0.0] * (len(moved) - 1)])


# -- many canaries in one release: the paper's curator gives all of them away ----------------------


@dataclass(frozen=True)
class CarelessCurator(CertifiedCurator):
    """States the claim of its parent and adds far too little noise."""

    @property
    def mechanism(self):
        return Gaussian(0.05)


@pytest.mark.parametrize("problem", ["grid", "taipei"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_few_releases_refute(problem, epsilon):
    record = canary_audit(paper(epsilon, problem), problem, alpha=ALPHA)
    assert record.refuted
    assert record.runs <= 20
    assert record.details["p_value"] < ALPHA
    assert record.details["largest_error_of_a_row"] < 1e-9


def test_reconstruction_is_exact_in_both_branches():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    known = np.arange(5)
    for bound, epsilon in ((100.0, 0.1), (1e7, 1e6)):
        curator = Curator(epsilon, 1e-5, 6, 3, bound)
        (release,) = curator.audit_release(rows, 1, rng)
        np.testing.assert_allclose(reconstruct_rows(release, rows[known], known), rows, atol=1e-8)


def test_too_little_noise_is_found():
    curator = CarelessCurator(EPSILONS[0], 1e-5)
    assert canary_audit(curator, "taipei").refuted


# -- the generic engine against the curators, without a score --------------------------------------


@pytest.mark.parametrize("noise", [RowNoise.LAPLACE, RowNoise.GAUSSIAN])
def test_the_engine_does_not_refute(noise):
    curator = CertifiedCurator(EPSILONS[0], 1e-5, noise=noise)
    pair = curator.audit_pairs()[0]
    assert not attack(curator, pair, runs=400, confidence=1 - ALPHA).refuted


def test_the_engine_finds_the_leak_without_a_score():
    curator = Curator()
    record = attack(curator, curator.audit_pairs()[0], runs=3000, confidence=1 - ALPHA)
    assert record.refuted


# -- certificates of the refutation, and what a replay finds different -----------------------------


def test_a_false_statement_is_found():
    certificate = attack_curator("CertifiedCurator", "taipei", 1.0)
    stated, found = next(replay_audits(certificate))
    assert not differences(stated.to_dict(), found.to_dict())
    wrong = replace(stated, details=stated.details | {"p_value": 1e-9})
    (apart,) = differences(wrong.to_dict(), found.to_dict())
    assert apart.path == "details.p_value"
    assert certificate.verdict is Verdict.CERTIFIED


# -- the command that refutes and replays ----------------------------------------------------------


SHIPPED = Path(__file__).parents[2] / "reports" / "outsourced" / "curator-taipei-epsilon-0.1.json"


def test_from_a_file(tmp_path, capsys):
    folder = str(tmp_path)
    refuted = main(["refute", "--problem", "taipei", "--curator", "Curator", "--folder", folder])
    assert refuted == 1
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    certificate = load_certificate(files[0])
    assert certificate.verdict is Verdict.REFUTED
    assert certificate.audits[1].pair["row"] == 0
    assert main(["replay", str(files[0])]) == 0
    assert "DIFFERENT" not in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "none.json")]) == 3
    assert "none.json" in capsys.readouterr().err


@pytest.mark.skipif(not SHIPPED.exists(), reason="the reports are in the repository only")
def test_the_published_counterexample(capsys):
    assert main(["replay", str(SHIPPED)]) == 0
    assert capsys.readouterr().out.count("same: refuted") == 4


# -- what noise and its reading are worth ----------------------------------------------------------


def test_the_comparison_has_a_row_for_each_cell(capsys):
    assert main(["compare", "--trials", "1", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    problem_seed, *seeds = np.random.SeedSequence(0).spawn(1)[0].spawn(3)
    problem = grid_problem(np.random.default_rng(problem_seed))
    for label, cell in cells_of(math.exp(1.3)).items():
        (curve,) = curves_of(problem, [cell], *seeds)
        assert curve.size == 60
        assert (np.diff(curve) <= 0).all()
        (row,) = (line for line in printed.splitlines() if line.startswith(f"| {label} |"))
        assert row.endswith(f" {curve[-1]:.3f} ± 0.000 |")
    assert main(["compare", "--trials", "0"]) == 3
