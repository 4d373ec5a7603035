"""What both curators share: outputs through a mechanism, and a run."""

from __future__ import annotations

import numpy as np
import pytest
from rehearsals import Gossip, rules
from subject_conformance import SubjectConformance

from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.certificate import SubjectRecord, Verdict, certify
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Laplace
from private_bo.outsourced import (
    CertifiedCurator,
    Curator,
    OutsourcedProblem,
)
from private_bo.outsourced.problems import to_norm

RNG = np.random.default_rng(20200712)
ROWS = to_norm(RNG.normal(size=(40, 2)))


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
