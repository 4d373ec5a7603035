"""Runs that a book charges, and drafts for the registry of deployments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from booking import ABOUT, ask, filled, gaussian
from jsonschema import Draft7Validator

pytest.importorskip("sqlalchemy")

from dpaudit import Claim, FloatNoise, Gaussian, Invocation, Plan, RunResult, Subject
from dpaudit.base.errors import BudgetExceededError, InputError, PlanMismatchError
from dpaudit.book import (
    Book,
    BudgetRecord,
    Status,
    booking,
    decide,
    limit_of,
    remaining_budgets,
    verify_book,
)
from dpaudit.book.booking import Booking
from dpaudit.workflow import running

SCHEMA = Path(__file__).parents[1] / "reporting" / "machine" / "schemas"


@dataclass(frozen=True)
class Totals(Subject):
    """Noisy totals; it stops, or fails, after some."""

    uses: int = 2
    fails: bool = False

    def plan(self):
        return Plan.of(Invocation(Gaussian(2.0), 1.0, *ABOUT, count=2, at="total"))

    def load(self, source, rng):
        return [0.5, 0.25]

    def run(self, data, ledger, rng):
        total = 0.0
        for _ in range(self.uses):
            total += ledger.release(Gaussian(2.0), min(1.0, sum(data)), at="total")
        if self.fails:
            raise ValueError(f"secret {sum(data)}")
        return RunResult({"total": total})


@pytest.fixture
def book(tmp_path):
    made = filled(Book.create(str(tmp_path / "book.db"), by="officer"), rho=1.0)
    yield made
    made.disconnect()


def run(book, folder, *, request=None, seed=None, **settings):
    told = Booking(book, "visits", "ann", "totals", request=request)
    given = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return running.run_subject(
        f"{__name__}:Totals",
        given,
        None,
        seed,
        folder,
        float_noise=seed is None,
        rehearse=False,
        charging=told,
    )


@pytest.fixture(autouse=True)
def findable(monkeypatch):
    monkeypatch.setattr(running, "find_target", _target)


def _target(name, settings):
    from dpaudit.certificate import SubjectRecord
    from dpaudit.project.targets import Target

    subject = Totals(**settings)
    return Target(SubjectRecord("totals"), subject.plan(), Claim(5.0, 1e-6), (), (), subject)


def spent(book) -> float:
    (left,) = remaining_budgets(book)[0].left
    return left.budget.limit.reached(left.total)["rho"]


def test_a_run_is_reserved_run_and_closed(book, tmp_path):
    certificate, (journal, *_) = run(book, tmp_path / "out")
    (release,) = book.releases()
    assert release.status is Status.CLOSED
    assert release.certificate == certificate.to_dict()["digest"]
    assert release.head == certificate.run["ledger"]["head"]
    assert spent(book) == pytest.approx(2 / 8)
    assert book.check_journal(journal).releases == 2
    verify_book(book)


def test_what_did_not_run_is_given_back(book, tmp_path):
    run(book, tmp_path / "out", uses=1)
    assert spent(book) == pytest.approx(1 / 8)
    with pytest.raises(PlanMismatchError):
        run(book, tmp_path / "none", uses=0)
    assert spent(book) == pytest.approx(1 / 8)
    verify_book(book)


def test_a_run_that_fails_is_abandoned_and_its_words_are_not_kept(book, tmp_path):
    with pytest.raises(InputError):
        run(book, tmp_path / "out", fails=True, uses=1)
    (release,) = book.releases()
    assert release.status is Status.ABANDONED
    assert spent(book) == pytest.approx(1 / 8)
    assert "secret" not in json.dumps(release.to_dict())
    verify_book(book)


def test_the_book_refuses_before_anything_is_drawn(book, tmp_path):
    for number in range(4):  # each takes a quarter of all
        run(book, tmp_path / f"{number}")
    with pytest.raises(BudgetExceededError):
        run(book, tmp_path / "4")
    assert not (tmp_path / "4" / "ledger.jsonl").exists()


def test_a_request_runs_once(book, tmp_path):
    run(book, tmp_path / "1", request="7")
    with pytest.raises(InputError, match="has begun with another journal"):
        run(book, tmp_path / "2", request="7")
    assert len(list(book.releases())) == 1


def test_no_experiment_is_charged(book, tmp_path):
    with pytest.raises(InputError, match="goes with neither --seed nor --anchor"):
        run(book, tmp_path / "out", seed=1)
    assert FloatNoise().seeded is False


def test_the_registry_gets_a_valid_record_of_each_release(book, tmp_path):
    for purpose in ("<b>a</b> *test*", "<b>a</b> *test*", "another"):
        ask(book, gaussian(5.0), purpose=purpose)
    path = booking.export(book, tmp_path / "all.registry.yaml")
    records = list(yaml.safe_load_all(path.read_text("utf-8")))
    assert len({each["url_slug"] for each in records}) == len(records) == 3
    schema = yaml.safe_load((SCHEMA / "deployments-schema.yaml").read_text("utf-8"))
    for record in records:
        Draft7Validator(schema).validate(record)
        assert record["deployment"]["basic"]["publication_date"][:2] == "20"
    assert "<b>" not in records[0]["deployment"]["basic"]["intended_use"]


def test_a_run_waits_for_approval_and_then_runs_once(book, tmp_path):
    limit = limit_of({"rho": 1.0})
    book.add(BudgetRecord("guarded", "visits", limit, approval=True), by="officer")
    for _ in range(2):
        with pytest.raises(BudgetExceededError, match=r"waits for approval.* with --request 7"):
            run(book, tmp_path / "out", request="7")
        assert not (tmp_path / "out" / "ledger.jsonl").exists()
    (release,) = book.releases()
    decide(book, release.id, by="bob", approve=True)
    run(book, tmp_path / "out", request="7")
    (release,) = book.releases()
    assert (release.status, release.approved) == (Status.CLOSED, "bob")
    verify_book(book)
