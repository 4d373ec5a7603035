"""Outsourced trust: what the curator publishes, and a modeller that works with that alone."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from subject_conformance import SubjectConformance

from dpaudit import Ledger, guarantee
from dpaudit.base.errors import InputError
from dpaudit.rehearsal.rehearse import rehearse
from private_bo.outsourced import Release
from private_bo.own import BoxSpace, OutsourcedModeller, OutsourcedStudy, PointSpace, study

BOX = BoxSpace((0.0, 100.0), (1.0, 300.0))
ROWS = np.random.default_rng(0).uniform(BOX.lower, BOX.upper, (40, 2))


def value(row, number):
    return float(np.exp(-8 * np.square(BOX.unit(row[None]) - 0.4).sum()))


class TestConformance(SubjectConformance):
    subject = OutsourcedStudy(space=BOX, objective=value, users=40, queries=12, protected=0.2)

    def data(self):
        return ROWS.copy()

    def neighbour(self):
        moved = [*ROWS]
        moved[3] = ROWS[3] + [0.1, 0.0]
        return moved

    def bad_data(self):
        return [ROWS[:7], "rows", ROWS[:, :1]]


def test_the_plan_proves_the_claim():
    study = OutsourcedStudy(space=BOX, epsilon=2.0, output_share=0.25)
    assert guarantee(study.plan(), 1e-5).epsilon <= 2.0 * (1 + 1e-12)
    assert guarantee(study.plan(), 1e-5).epsilon > 1.99
    assert study.inner.output_mechanism.scale == pytest.approx(1 / 0.5)  # of outputs in [−½, ½]


@Ledger.register
class Bare:
    """A ledger without noise that keeps what was to be released."""

    def __init__(self):
        self.seen = []

    def release(self, mechanism, value, *, unit=None, at=""):
        self.seen.append(np.array(value))
        return value


def test_rows_are_scaled_by_the_public_box_and_neighbours_are_one_apart():
    study = OutsourcedStudy(space=BOX, objective=value, users=40, queries=9, protected=0.2)
    rng, ledger = np.random.default_rng(1), Bare()
    corner = [*ROWS]
    corner[0], corner[1] = np.array(BOX.upper), np.array([9e9, -9e9])
    study.publish(corner, ledger)
    norms = np.linalg.norm(ledger.seen[0] - ledger.seen[0].mean(axis=0), axis=1)
    assert norms.max() < 12
    scaled = study.publish(ROWS, ledger).points
    for move in study.neighbours(ROWS, rng):
        moved = study.publish(move.data, ledger).points
        apart = np.linalg.norm((moved - moved[-1]) - (scaled - scaled[-1]), axis=1)
        assert 0 < apart.max() <= 1 + 1e-9 or (move.hops == 0 and not apart.any())


def test_outputs_are_clipped_and_asked_once():
    study = OutsourcedStudy(space=BOX, objective=lambda row, n: 50.0 * n - 1, users=40, queries=9)
    desk = study.desk(ROWS, Bare())
    assert [desk.ask(row) for row in (0, 1)] == [-0.5, 0.5]
    with pytest.raises(InputError, match="has been measured"):
        desk.ask(1)


def modeller(queries=30, noise=1e-4):
    release = Release(np.linspace(0.0, 10.0, 60)[:, None])
    return OutsourcedModeller(release, queries, noise, (0.0, 1.0), np.random.default_rng(0))


def test_a_modeller_finds_the_best_though_rows_wait_and_some_are_never_told():
    one = modeller()
    waiting = []
    for turn in range(30):
        waiting.append(one.ask())
        if turn % 3 == 2:
            waiting.pop(0)  # never told
            for row in reversed(waiting):
                one.tell(row, 0.4 * np.sin(row / 60 * 5))
            waiting = []
    assert abs(one.best() / 60 * 5 - np.pi / 2) < 0.4
    with pytest.raises(InputError, match="queries is 30"):
        one.ask()


def test_wrong_use_is_one_sentence():
    one = modeller()
    with pytest.raises(InputError, match="told is empty"):
        one.best()
    row = one.ask()
    for wrong, told, words in ((-1, 0.1, "row is -1"), (row, float("nan"), "value is nan")):
        with pytest.raises(InputError, match=words):
            one.tell(wrong, told)
    one.tell(row, 0.1)
    with pytest.raises(InputError, match=f"row is {row}"):
        one.tell(row, 0.1)
    with pytest.raises(InputError, match="space is not a BoxSpace"):
        OutsourcedStudy(space=PointSpace([[1.0]]))
    with pytest.raises(InputError, match="queries is 50"):
        OutsourcedStudy(users=20)


def test_a_run_recommends_a_good_row():
    study = OutsourcedStudy(
        space=BOX, objective=value, users=40, queries=30, epsilon=60.0, protected=0.2
    )
    with closing(Ledger(study.plan(), rng=np.random.default_rng(0))) as ledger:
        result = study.run(ROWS, ledger, np.random.default_rng(1))
    assert value(ROWS[result.summary["recommended"]], 0) > 0.6
    assert result.owner is None


def test_what_the_curator_keeps_of_a_row_is_found():
    kept: dict[float, float] = {}

    def near(row, number):
        """A cache of measurements: near rows share the first one's."""
        return kept.setdefault(round(float(row[0]), 1), number % 7 / 7)

    def last(row, number):
        found, kept["last"] = kept.get("last", 0.5), float(row[0])
        return found

    rows = np.random.default_rng(5).random((60, 1))
    for objective in (near, last):
        kept.clear()
        settings = {"users": 60, "epsilon": 10.0, "trust": "outsourced", "queries": 20}
        made = study(objective, BoxSpace((0,), (1,)), **settings)
        assert any(each.severity == "error" for each in rehearse(made, rows).findings)


@pytest.mark.parametrize(
    ("epsilon", "queries", "finds"), [(1.0, 50, True), (1.38, 50, True), (1.39, 50, False),
                                      (1.0, 97, False), (1.0, 95, True), (10.0, 50, False)]
)  # fmt: skip
def test_outputs_of_which_nothing_is_learnt_are_a_finding_before_the_run(epsilon, queries, finds):
    """Laplace noise of scale 2/ε in all queries against a deviation of 1/√12: 96 queries at 1."""
    study = OutsourcedStudy(epsilon=epsilon, queries=queries)
    assert [each.rule for each in study.findings()] == ["usual-range", *["cannot-learn"] * finds]
    if finds:
        assert "even if all" in study.findings()[-1].message
        assert "entries of the release" not in study.findings()[-1].message
    assert (8 / epsilon**2 / queries >= 1 / 12) is finds


@pytest.mark.parametrize(("protected", "finds"), [(0.124, False), (0.126, True)])
def test_rows_that_noise_covers_are_a_finding_before_the_run(protected, finds):
    """Laplace noise of scale √2/(ε/2) in two columns, against 1/(2 protected): 1/8 at ε = 1."""
    study = OutsourcedStudy(epsilon=1.0, queries=400, protected=protected)
    assert [each.rule for each in study.findings()] == ["usual-range", *["cannot-learn"] * finds]
    assert not finds or "no row can be told from others" in study.findings()[-1].message
