"""A subject is run: what it writes, what its owner alone sees, and the demo."""

import json
import math
import sys
from dataclasses import dataclass
from functools import reduce
from types import SimpleNamespace
from unittest.mock import ANY

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


def test_a_file_in_the_place_of_the_owner_s_folder_is_told_before_anything_is_charged(tmp_path):
    (tmp_path / "owner").touch()
    with pytest.raises(InputError, match="owner' cannot be made: File exists"):
        run_subject(f"{__name__}:WithTruth", [], "numbers", 1, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["owner"]


def test_a_folder_that_others_may_open_is_not_the_owner_s(tmp_path):
    (tmp_path / "owner").mkdir(mode=0o755)
    with pytest.raises(InputError, match="owner' exists, and is open to others; give another"):
        run_subject(f"{__name__}:WithTruth", [], "numbers", 1, tmp_path)
    assert (tmp_path / "owner").stat().st_mode & 0o777 == 0o755
    assert [each.name for each in tmp_path.iterdir()] == ["owner"]


def test_where_a_ledger_is_nothing_is_made(tmp_path):
    (tmp_path / "ledger.jsonl").touch()
    with pytest.raises(InputError, match="exists already; give another folder"):
        run_subject(f"{__name__}:WithTruth", [], "numbers", 1, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["ledger.jsonl"]


def test_nobody_else_may_open_the_owner_s_file(run):
    (owner,) = (path for name, path in run[1].items() if name == "owner.json")
    assert owner.parent.name == "owner"
    assert owner.stat().st_mode & 0o777 == 0o600
    assert owner.parent.stat().st_mode & 0o777 == 0o700


class Raises:
    """A result of another class, of which nothing can be had but what is published."""

    owner = property(lambda self: 1 / 0)

    def to_dict(self):
        return {"summary": {}, "series": {}}


class Exits(Raises):
    owner = property(lambda self: sys.exit("private"))


class Stops(BaseException):
    pass


class Ends(Raises):
    @property
    def owner(self):
        raise Stops("private")


class Prints:
    """Neither JSON nor silent."""

    def __str__(self):
        sys.stdout.write("private")
        return "printed"


ODD = {
    "nothing": RunResult({}),
    "no such part": SimpleNamespace(to_dict=dict),
    "numbers": RunResult({}, owner=RunResult({"a": 1}, {"b": [0.5]})),
    "nan": RunResult({}, owner=RunResult({"a": math.nan, "b": -math.inf})),
    "nan in a curve": RunResult({}, owner=RunResult({}, {"b": [math.nan, 1]})),
    "an object": RunResult({}, owner=RunResult({"a": Prints(), "b": {1, 2}})),
    "no curve": RunResult({}, owner=RunResult({}, {"b": [1j]})),
    "half a character": RunResult({}, owner=RunResult({"\ud800": "\ud800"})),
    "deep": RunResult({}, owner=RunResult({"a": reduce(lambda inner, _: [inner], range(2000))})),
    "deep inside": RunResult({}, owner=SimpleNamespace(to_dict=lambda: {"summary": DEEP})),
    "long": RunResult({}, owner=RunResult({"a": 10**5000})),
    "a class of its own": RunResult({}, owner=SimpleNamespace(to_dict=lambda: {"a": {2: 1}})),
    "no result": RunResult({}, owner=17),
    "raises": Raises(),
    "exits": Exits(),
    "ends": Ends(),
}
TOLD = {
    "nothing": {},
    "no such part": {},
    "numbers": {"a": 1},
    "nan": {"a": "NaN", "b": "-Infinity"},
    "nan in a curve": {"result": {"summary": {}, "series": {"b": ["NaN", 1.0]}}},
    "an object": {"a": "printed", "b": "{1, 2}"},
    "half a character": {"?": "?"},
    "a class of its own": {"result": {"summary": {}, "series": {}, "a": {"2": 1}}},
}
NOW = {0: "nothing"}
DEEP = {"a": reduce(lambda inner, _: {"a": inner}, range(2000), {})}


@dataclass(frozen=True)
class TellsOddly(Answers):
    default_data = "numbers"

    def run(self, data, ledger, rng):
        super().run(data, ledger, rng)
        return ODD[NOW[0]]


@pytest.mark.parametrize("what", ODD)
def test_no_one_else_sees_what_the_owner_is_told_or_whether(tmp_path, monkeypatch, capsys, what):
    monkeypatch.setitem(NOW, 0, what)
    name = f"{__name__}:TellsOddly"
    certificate, written = run_subject(name, [], None, 1, tmp_path, rehearse=False)
    files = ["ledger.jsonl", "certificate.json", "report.html", "owner/owner.json"]
    assert [path.relative_to(tmp_path).as_posix() for path in written] == files
    said = capsys.readouterr()
    assert "private" not in f"{said.out}{said.err}"
    assert certificate.run["summary"] == {"data": "numbers", "releases": 3}
    owned = with_owner(certificate, written[-1])
    assert owned.owner["summary"] == TOLD.get(what, {"error": ANY})
    render_to(owned, tmp_path / "owner" / "report.html")


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
    names = ["ledger.jsonl", "certificate.json", "report.html"]
    names += ["owner/owner.json", "owner/for-owner.html"]
    (tmp_path / "owner").mkdir(mode=0o700)
    for name in names:
        (tmp_path / name).write_text("of an earlier demo, whose place this one takes")
    certificate, written = demo.run_demo(tmp_path, 1)
    assert [each.relative_to(tmp_path).as_posix() for each in written] == names
    assert {each for each in tmp_path.rglob("*") if each.is_file()} == set(written)
    assert load_certificate(tmp_path / "certificate.json") == certificate
    assert certificate.rehearsal is not None
    assert certificate.rehearsal.done
    assert "final regret" in json.loads((tmp_path / "owner/owner.json").read_text())["summary"]
    for name in ("certificate.json", "report.html"):
        assert "final regret" not in (tmp_path / name).read_text()
    assert "final regret (for the owner alone)" in (tmp_path / "owner/for-owner.html").read_text()


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
