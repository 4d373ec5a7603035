"""A subject is run: what it writes, what its owner alone sees, and the demo."""

import json
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from examples import LAPLACE, Answers, response_plan

from dpaudit import InputError, Ledger, RunResult, TamperedError
from dpaudit.auditing import audit_subject
from dpaudit.certificate import load_certificate
from dpaudit.ledger import read_journal
from dpaudit.reporting import render_to
from dpaudit.workflow import demo
from dpaudit.workflow.running import _made, ledger_record, run_subject, with_owner
from dpaudit.workflow.sealing import SealedRun

# What a certificate says of a run is what the ledger's file says


def released(path, users="abc"):
    ledger = Ledger(response_plan(), rng=np.random.default_rng(1), journal=path)
    ledger.release_each(LAPLACE, [0.0] * len(users), units=users)
    return ledger


def test_a_closed_ledger_is_read_back(tmp_path):
    ledger = released(tmp_path / "ledger.jsonl")
    ledger.close()
    record = ledger_record(ledger, tmp_path / "ledger.jsonl")
    assert (record["entries"], record["lines"]) == (3, 5)


def test_a_file_that_was_not_closed_is_not_believed(tmp_path):
    ledger = released(tmp_path / "ledger.jsonl")
    ledger.journal.release()
    with pytest.raises(TamperedError, match="somebody else wrote"):
        ledger_record(ledger, tmp_path / "ledger.jsonl")


def test_the_file_of_another_run_is_not_believed(tmp_path):
    ledger, other = released(tmp_path / "ledger.jsonl"), released(tmp_path / "other.jsonl", "bca")
    ledger.close()
    other.close()
    with pytest.raises(TamperedError, match="was replaced by another one"):
        ledger_record(ledger, tmp_path / "other.jsonl")


@dataclass(frozen=True)
class Fails(Answers):
    default_data = "numbers"
    how: str = "raises"

    def run(self, data, ledger, rng):
        if self.how == "early":
            raise ValueError("secret 17")
        super().run(data, ledger, rng)
        if self.how == "raises":
            raise ValueError("secret 17")
        return RunResult({"when": complex(1)})


@pytest.mark.parametrize("how", ["raises", "shows"])
def test_a_run_that_fails_late_says_what_is_charged(tmp_path, how):
    with pytest.raises(InputError, match="stay charged \\(releases: 3\\)") as told:
        run_subject(f"{__name__}:Fails", [f"how={how}"], None, 1, tmp_path, rehearse=False)
    assert "secret" not in str(told.value)
    assert "ledger.jsonl' keeps the record." in str(told.value)
    assert len(read_journal(tmp_path / "ledger.jsonl").releases) == 3


def test_a_run_that_fails_before_any_release_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="raised ValueError"):
        run_subject(f"{__name__}:Fails", ["how=early"], None, 1, tmp_path, rehearse=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="raised ValueError"):
        run_subject(
            f"{__name__}:Fails", ["how=early"], None, 1, tmp_path / "a" / "b", rehearse=False
        )
    assert list(tmp_path.iterdir()) == []


class Theirs:
    """A library that draws in its own way."""

    sampler = "theirs 1.0"

    def draw(self):
        """Adds nothing anywhere."""


@dataclass(frozen=True)
class Borrows(Answers):
    default_data = "numbers"

    def run(self, data, ledger, rng):
        for unit in "abc":
            ledger.observe(LAPLACE, Theirs(), unit=unit)
        return RunResult({})


def test_noise_of_another_library_is_told(tmp_path):
    certificate, _ = run_subject(f"{__name__}:Borrows", [], None, 1, tmp_path, rehearse=False)
    told = {each.rule: each.message for each in certificate.findings}
    assert "theirs 1.0, in its own way" in told["noise-drawn-elsewhere"]


# What the owner alone may see is in the owner's report, and nowhere else


@dataclass(frozen=True)
class WithTruth(Answers):
    """Answers, and their true mean for their owner."""

    def run(self, data, ledger, rng):
        shown = super().run(data, ledger, rng)
        owner = RunResult({"true mean": float(data.mean())}, {"true answers": data})
        return RunResult(shown.summary, shown.series, owner)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    name = f"{__name__}:WithTruth"
    certificate, files = run_subject(name, [], "numbers", 1, tmp_path_factory.mktemp("run"))
    return certificate, {path.name: path for path in files}


def test_the_owner_s_part_is_in_a_file_of_its_own(run):
    certificate, files = run
    private = json.loads(files["owner.json"].read_text())
    truth = private["summary"]["true mean"]
    for name in ("certificate.json", "report.html", "ledger.jsonl"):
        text = files[name].read_text()
        assert "true mean" not in text
        assert repr(truth) not in text
    assert certificate.verdict == "certified"


def test_the_owner_s_report_says_whose_it_is(run, tmp_path):
    _, files = run
    certificate = load_certificate(files["certificate.json"])
    merged = with_owner(certificate, files["owner.json"])
    assert merged.to_dict() == certificate.to_dict()
    text = render_to(merged, tmp_path / "r.md").read_text()
    assert "true mean (for the owner alone)" in text
    assert "true answers (for the owner alone)" in text
    assert certificate.to_dict()["digest"] in text


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"summary": 1, "series": {}}', '{"summary": {}, "series": {"a": ["x"]}}']
)
def test_another_file_is_refused(run, tmp_path, text):
    path = tmp_path / "o.json"
    path.write_text(text)
    with pytest.raises(InputError, match="must hold a summary and series of numbers"):
        with_owner(load_certificate(run[1]["certificate.json"]), path)


# The demo: what everybody sees, and what the owner of the data sees


def test_the_regret_is_in_the_owners_files_alone(tmp_path, monkeypatch):
    settings = [each for each in demo.DEMO_SETTINGS if not each.startswith("steps=")]
    monkeypatch.setattr(demo, "DEMO_SETTINGS", (*settings, "steps=20"))

    def audit_shortly(subject, pair, **given):
        return audit_subject(subject, pair, **given | {"runs": 500})

    monkeypatch.setattr(demo, "audit_subject", audit_shortly)
    names = ["ledger.jsonl", "certificate.json", "report.html", "owner.json", "for-owner.html"]
    for name in names:
        (tmp_path / name).write_text("of an earlier demo, whose place this one takes")
    certificate, written = demo.run_demo(tmp_path, 1)
    assert [each.name for each in written] == names
    assert {each.name for each in tmp_path.iterdir()} == {each.name for each in written}
    assert load_certificate(tmp_path / "certificate.json") == certificate
    assert certificate.rehearsal is not None
    assert certificate.rehearsal.done
    assert "final regret" in json.loads((tmp_path / "owner.json").read_text())["summary"]
    for name in ("certificate.json", "report.html"):
        assert "final regret" not in (tmp_path / name).read_text()
    assert "final regret (for the owner alone)" in (tmp_path / "for-owner.html").read_text()


@pytest.mark.parametrize("began", [False, True])
def test_releases_of_another_run_in_the_same_folder_are_not_those_of_a_sealed_run(began, tmp_path):
    """Of two runs at once one makes the journal; the other one made no release."""
    path = tmp_path / "ledger.jsonl"
    with Ledger(response_plan(total=1), rng=np.random.default_rng(0), journal=path) as ledger:
        ledger.release(LAPLACE, 0.5, unit="ann")
    said = [{"began": True}] * began + [{"error": "it ended.", "kind": "InputError"}]
    channel = SimpleNamespace(send=lambda _: None, receive=lambda: said.pop(0))
    run = SealedRun(None, channel, print)
    with pytest.raises(InputError, match="it ended"):
        run.go({}, None)
    assert _made(run, path) == int(began)
