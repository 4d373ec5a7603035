"""Runs that a book charges, drafts for the registry, and which promises still hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

import yaml
from audit_records import attack
from booking import ABOUT, ask, edited, filled, gaussian, log_lines
from booking import ran as released
from jsonschema import Draft7Validator

from dpaudit import (
    Claim,
    FloatNoise,
    Gaussian,
    Invocation,
    Plan,
    RunResult,
    Subject,
    certify,
)
from dpaudit.base import files
from dpaudit.base.errors import BudgetExceededError, InputError, PlanMismatchError, TamperedError
from dpaudit.book import (
    Book,
    BudgetRecord,
    Status,
    add_people,
    booking,
    charge_people,
    decide,
    limit_of,
    remaining_budgets,
    verify_book,
)
from dpaudit.book.booking import Booking
from dpaudit.book.rechecking import recheck
from dpaudit.certificate import SubjectRecord
from dpaudit.cli.main import _outcome
from dpaudit.workflow import running

# Runs that a book charges, and drafts for the registry of deployments

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


def test_a_run_whose_ledger_cannot_be_opened_costs_nothing(book, tmp_path, monkeypatch):
    def full(*_, **__):
        raise InputError("there is no room")

    monkeypatch.setattr(running, "Ledger", full)
    with pytest.raises(InputError, match="there is no room"):
        run(book, tmp_path / "out")
    (release,) = book.releases()
    assert release.withdrawn
    assert spent(book) == 0
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
    with pytest.raises(InputError, match="--book is given with --seed or --anchor"):
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


# Which promises of a book still hold

PLAN = gaussian(2.0, count=2)
CERTIFICATE = certify(
    PLAN, subject=SubjectRecord("mine:Own", {}, "ab" * 32), claim=Claim(5.0, 1e-6)
)
AUDIT = attack(refuted=True, claim_epsilon=5.0, delta=1e-6, epsilon_lower=9.0)


def older(record):
    """As an older version, whose accountant proved too little noise to be enough, made it."""
    record["guarantee"]["epsilon"] /= 2
    record["guarantee"]["compared"] = {
        name: each / 2 for name, each in record["guarantee"]["compared"].items()
    }


def ran(book, folder, name, change=lambda record: None):
    """A release that ran, with the certificate that somebody made of it."""
    reserved = ask(book, PLAN)
    (folder / name).mkdir(parents=True)
    journal = folder / name / "ledger.jsonl"
    released(reserved, journal, 2)
    record = CERTIFICATE.to_dict()
    record["versions"] = record["versions"] | {"dpaudit": "0.0.9"}
    change(record)
    rest = {key: value for key, value in record.items() if key != "digest"}
    record["digest"] = files.digest(rest)
    (folder / name / "certificate.json").write_text(files.pretty_json(record), "utf-8")
    book.close(reserved.id, by="ann", journal=journal, certificate=record["digest"])
    return reserved.id


def last_line(book):
    return json.loads(log_lines(book)[-1])


def test_what_holds_holds_and_what_an_older_accountant_said_does_not(book, tmp_path):
    fine, wrong = ran(book, tmp_path, "a"), ran(book, tmp_path, "b", older)
    found = recheck(book, tmp_path, by="officer")
    assert found.facts == {"checked": 2, "broken": [wrong], "missing": {}}
    (said,) = found.lacks
    now = CERTIFICATE.guarantee.epsilon
    assert said == f"release {wrong}: ε at δ = 1e-06: {now / 2:.6g} → {now:.6g} (worse)."
    line = last_line(book)
    counts = {"checked": 2, "broken": 1, "missing": 0}
    assert line == line | counts | {"event": "rechecked"}
    assert line["told"] == [{"release": wrong, "why": [said.partition(": ")[2]]}]
    assert fine not in str(line["told"])
    verify_book(book)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["findings"].clear(), "warning float-noise: none →"),
        (lambda r: r.update(verdict="refuted"), "verdict: refuted → certified"),
        (lambda r: r.update(verdict="unproven"), "verdict is unproven; plan, claim, findings and"),
        (
            lambda r: r["claim"].update(epsilon=0.5),
            "verdict: certified → claim exceeded (worse)",
        ),
    ],
)
def test_a_verdict_or_a_finding_that_does_not_follow(book, tmp_path, change, said):
    wrong = ran(book, tmp_path, "a", change)
    found = recheck(book, tmp_path, by="officer")
    assert said in " ".join(found.lacks)
    assert found.facts["broken"] == [wrong]


def test_an_audit_that_was_made_since_refutes(book, tmp_path):
    release = ran(book, tmp_path, "a")
    for name, code in (("same", "ab" * 32), ("other", "cd" * 32)):
        subject = replace(CERTIFICATE.subject, code_hash=code)
        attacked = replace(CERTIFICATE, subject=subject).with_audits([AUDIT])
        attacked.save(tmp_path / f"{name}.json")
    found = recheck(book, tmp_path, audits=[tmp_path / "same.json"], by="officer")
    assert "verdict: certified → refuted (worse)." in " ".join(found.lacks)
    assert found.facts["broken"] == [release]
    found = recheck(book, tmp_path, audits=[tmp_path / "other.json"], by="officer")
    assert (found.lacks, found.facts["broken"]) == ((), [])
    assert found.remarks == (f"{tmp_path / 'other.json'} matches no certificate in the folder.",)


def test_files_that_are_missing_or_were_edited(book, tmp_path):
    first, second, third = (ran(book, tmp_path, name) for name in "abc")
    (tmp_path / "a" / "certificate.json").write_text("{")
    (tmp_path / "b" / "ledger.jsonl").unlink()
    journal = tmp_path / "c" / "ledger.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    ask(book, PLAN)  # has no files yet
    found = recheck(book, tmp_path, by="officer")
    # the first has the certificate of the third: they are the same
    assert found.facts["missing"] == {second: "journal"}
    assert found.facts["broken"] == [third]
    assert "its last lines were dropped" in found.lacks[0]
    assert first not in found.facts["broken"]


def test_a_charge_that_is_too_small_now(book, tmp_path, monkeypatch):
    release = ask(book, PLAN).id
    from dpaudit.book import RhoLimit

    own = RhoLimit.cost
    monkeypatch.setattr(RhoLimit, "cost", lambda *given: tuple(2 * n for n in own(*given)))
    found = recheck(book, tmp_path, by="officer")
    told = "line 4 of the book's log charges less to 'main' than its plan costs."
    assert found.lacks == (f"release {release}: {told}",)
    assert (found.facts["checked"], found.facts["broken"]) == (0, [release])


def test_a_charge_of_people_and_a_carried_one_that_are_too_small_now(book, tmp_path, monkeypatch):
    from dpaudit.book import RhoLimit

    about = {"key": bytes(32), "by": "ann"}
    add_people(book, "each", "visits", limit_of({"rho": 2.0}), **about)
    charge_people(book, "each", PLAN, ["bob"], lambda _: None, purpose="a test", **about)
    assert recheck(book, tmp_path, by="officer").lacks == ()
    ask(book, PLAN)
    book.add(BudgetRecord("later", "visits", limit_of({"rho": 5.0})), by="officer")
    own = RhoLimit.cost
    monkeypatch.setattr(RhoLimit, "cost", lambda *given: tuple(2 * n for n in own(*given)))
    found = recheck(book, tmp_path, by="officer")
    people = "line 5 of the book's log charges people less than its plan costs."
    assert f"charge 1 of 'each': {people}" in found.lacks
    assert found.facts["broken"] == ["charge 1 of 'each'", "R6", "budget 'later'"]
    assert last_line(book)["told"][0] == {"of": "charge 1 of 'each'", "why": [people]}


def test_a_certificate_of_another_plan(book, tmp_path, monkeypatch, capsys):
    other = certify(gaussian(7.0), subject=CERTIFICATE.subject, claim=Claim(5.0, 1e-6)).to_dict()

    def change(record):
        record.clear()
        record.update(other)

    wrong = ran(book, tmp_path, "a", change)
    found = recheck(book, tmp_path, by="officer")
    assert found.lacks == (f"release {wrong}: its certificate is for another plan.",)
    monkeypatch.chdir(tmp_path)
    release, path = ask(book, PLAN).id, "a/certificate.json"
    assert _outcome(["book", "close", release, "--certificate", path]) == 3
    assert "is for another plan than release" in capsys.readouterr().err
    path = str(CERTIFICATE.save(tmp_path / "own.json"))
    assert _outcome(["book", "close", release, "--certificate", path]) == 0
    assert book.release(release).certificate == CERTIFICATE.to_dict()["digest"]


def test_what_the_log_contradicts_is_refused_and_nothing_is_written(book, tmp_path):
    ran(book, tmp_path, "a")
    edited(book, "DELETE FROM release")
    before = last_line(book)
    with pytest.raises(TamperedError, match="is in the log but not in the table"):
        recheck(book, tmp_path, by="officer")
    assert last_line(book) == before


def test_the_command(book, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    release = ran(book, tmp_path / "files", "a")
    assert _outcome(["book", "recheck", "files"]) == 0
    assert "valid" in capsys.readouterr().out
    (tmp_path / "files" / "a" / "ledger.jsonl").unlink()
    assert _outcome(["book", "recheck", "files"]) == 2
    assert f"{release} journal" in capsys.readouterr().out
    attacked = CERTIFICATE.with_audits([AUDIT]).save(tmp_path / "attacked.json")
    assert _outcome(["book", "recheck", "files", "--audit", str(attacked), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["broken"] == [release]
    assert _outcome(["book", "recheck", "none"]) == 3
    assert (
        capsys.readouterr().err
        == "dpaudit: 'none' is not a folder; give the folder with the files.\n"
    )
    with pytest.raises(InputError, match="does not exist"):
        recheck(book, tmp_path, audits=[Path("none.json")], by="officer")
