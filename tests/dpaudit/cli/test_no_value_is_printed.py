"""Code that fails with its data in its words: no command, and no helper of pytest, repeats them."""

from pathlib import Path

import pytest

from dpaudit.cli.main import main
from dpaudit.project import AuditPair
from dpaudit.pytest_plugin import PrivacyViolationError, assert_private, assert_rehearsed

SECRET = 471147
CODE = """
import sys
from dataclasses import dataclass
import numpy as np
from dpaudit import *
from dpaudit.base.errors import *
from dpaudit.base.validate import positive

NOISE = Laplace(1.0)

class Own(PlanMismatchError):
    def __str__(self):
        return f"a row of {self.args[0]}"

def chained(n):
    try:
        raise KeyError(n)
    except KeyError as error:
        error.add_note(f"{n}")
        raise InputError(f"no {n}") from error

def again(n, ledger):
    try:
        positive(data=-n)
    except InputError as error:
        raise type(error)(f"{error}")

def reraised(n):
    try:
        positive(data=-n)
    except InputError as error:
        raise

WAYS = {
    "own error": lambda n, ledger: exec("raise InputError(f'bad row {n}')", globals() | {"n": n}),
    "subclass": lambda n, ledger: exec("raise Own(n)", globals() | {"n": n}),
    "undecided": lambda n, ledger: exec("raise InconclusiveError(f'{n}')", globals() | {"n": n}),
    "unsupported": lambda n, ledger: exec("raise UnsupportedError(f'{n}')", globals() | {"n": n}),
    "refused": lambda n, ledger: exec("raise PlanMismatchError(f'{n}')", globals() | {"n": n}),
    "chained": lambda n, ledger: chained(n),
    "said again": again,
    "raised again": lambda n, ledger: reraised(n),
    "another's": lambda n, ledger: [][n],
    "key": lambda n, ledger: {}[n],
    "exit": lambda n, ledger: sys.exit(f"row {n}"),
    "validator": lambda n, ledger: positive(data=-n),
    "mechanism": lambda n, ledger: Laplace(-n),
    "other scale": lambda n, ledger: ledger.release(Laplace(n), 0.0, at="sum"),
    "other noise": lambda n, ledger: ledger.release(Gaussian(n), 0.0, at="sum"),
    "label": lambda n, ledger: ledger.release(NOISE, 0.0, at=f"row {n}"),
    "unit": lambda n, ledger: [ledger.release(NOISE, 0.0, unit=f"{n}", at="sum") for _ in "ab"],
    "text": lambda n, ledger: ledger.release(NOISE, f"{n}", at="sum"),
    "sampled": lambda n, ledger: ledger.sample(["a"], at=f"{n}"),
    "bounded": lambda n, ledger: ledger.sum([1.0], at=f"{n}"),
    "count": lambda n, ledger: ledger.count(-n, at="count"),
    "share": lambda n, ledger: ledger.quantile([1.0], n, [0.0], at="count"),
    "shape": lambda n, ledger: ledger.individual((-n,), at="count"),
    "sampler": lambda n, ledger: ledger.observe(NOISE, type("", (), {"sampler": (n,)})(), at="sum"),
}

@dataclass(frozen=True)
class Tells(Subject):
    way: str = "own error"

    def plan(self):
        about = PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL
        count = Invocation.bounded(NOISE, Contribution(1.0), *about, at="count")
        return Plan.of(Invocation(NOISE, 1.0, *about, at="sum"), count)

    def claim(self):
        return Claim(3.0)

    def load(self, source, rng):
        return [471147.0, 471147.0, 471147.0]

    def run(self, data, ledger, rng):
        WAYS[self.way](int(data[0]), ledger)
        ledger.release(NOISE, sum(data), at="sum")
        return ledger.count(len(data), at="count")

@dataclass(frozen=True)
class LoadTells(Tells):
    def load(self, source, rng):
        raise InputError("bad row 471147")

@dataclass(frozen=True)
class ResultTells(Tells):
    def run(self, data, ledger, rng):
        ledger.release(NOISE, 0.0, at="sum")
        ledger.count(0, at="count")
        return ResultThatTells()

class ResultThatTells:
    def to_dict(self):
        raise InputError("bad row 471147")

def function(data, rng):
    WAYS["own error"](int(data[0]), None)

def library(data, rng):
    Laplace(-data[0])

def plain(data, rng):
    raise ValueError(f"bad row {data}")
"""


def ways() -> list[str]:
    known: dict[str, object] = {"__name__": "code"}
    exec(CODE, known)
    return list(known["WAYS"])  # type: ignore[call-overload]


@pytest.fixture
def told(capfd, tmp_path, monkeypatch):
    """What a command prints, and what it writes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPAUDIT_DEBUG", raising=False)
    Path("telling.py").write_text(CODE)
    Path("rows.json").write_text(f"[{SECRET}, {SECRET}, {SECRET}]")

    def told(*arguments):
        before = {*Path.cwd().rglob("*")}
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        made = {*Path.cwd().rglob("*")} - before
        files = [each for each in made if each.is_file() and each.name != "ledger.jsonl"]
        written = [each.read_text(errors="replace") for each in files]  # a ledger names units
        captured = capfd.readouterr()
        said = captured.out + captured.err
        assert str(SECRET) not in " ".join([said, *written]).replace("\n", "")
        assert "Traceback" not in said
        return ended.value.code, " ".join(said.split())

    return told


@pytest.mark.parametrize("way", ways())
def test_a_run_tells_the_kind_and_the_place(told, way):
    for rehearsal in ("--rehearse", "--no-rehearsal"):
        run = "run", "telling.py:Tells", "--set", f"way={way}", "--seed", 1, rehearsal
        code, said = told(*run)
        assert code != 0
        assert "fault of dpaudit" not in said
    assert "telling.py:" in said


@pytest.mark.parametrize("name", ["LoadTells", "ResultTells"])
def test_neither_load_nor_result_tells(told, name):
    assert told("run", f"telling.py:{name}", "--seed", 1)[0] == 3


def test_the_kind_of_error_decides_the_exit(told):
    run = "run", "telling.py:Tells", "--seed", 1, "--no-rehearsal", "--set"
    kinds = {"own error": 3, "subclass": 1, "refused": 1, "undecided": 2, "other scale": 1}
    assert {way: told(*run, f"way={way}")[0] for way in kinds} == kinds


def test_what_the_ledger_says_itself_is_told(told):
    said = told("run", "telling.py:Tells", "--set", "way=other scale", "--no-rehearsal")[1]
    assert (
        "the plan declares Laplace(scale=1.0, clip=None) at 'sum', but one with another scale ran "
        in said
    )


@pytest.mark.parametrize("way", ["own error", "subclass", "unsupported", "label", "mechanism"])
def test_a_rehearsal_tells_the_kind_and_the_place(told, way):
    told("certify", "telling.py:Tells", "--set", f"way={way}", "--rehearse", "-o", "made.json")


def test_a_check_tells_the_kind_and_the_place(told):
    entries = "".join(
        f'[[subject]]\nname = "{way[:3]}"\ntarget = "telling.py:Tells"\nset = {{way = "{way}"}}\n'
        'code = "rehearsed"\n'
        for way in ("own error", "mechanism")
    )
    Path("dpaudit.toml").write_text(entries)
    code, said = told("check")
    assert code != 0
    assert "telling.py:" in said


@pytest.mark.parametrize("name", ["function", "library", "plain"])
def test_neither_audit_nor_observation_tells(told, name):
    code = f"telling.py:{name}"
    data = "--data", "rows.json"
    assert told("audit", code, *data, "--epsilon", 1, "--runs", 200)[0] != 0
    assert told("observe", code, *data)[0] == 3


def test_a_claim_that_is_wrong_in_the_plan_is_told(told):
    """No data were seen: an honest author reads what is wrong."""
    Path("wrong.py").write_text(CODE.replace("NOISE, 1.0, *about", "Laplace(-2.0), 1.0, *about"))
    Path("dpaudit.toml").write_text('[[subject]]\nname = "wrong"\ntarget = "wrong.py:Tells"\n')
    for command in (["certify", "wrong.py:Tells"], ["run", "wrong.py:Tells"], ["check"]):
        code, said = told(*command)
        assert code == 3
        assert "scale is -2.0; it must be a finite number above 0." in said


def test_the_helpers_of_pytest_do_not_tell():
    known: dict[str, object] = {"__name__": "code"}
    exec(CODE, known)
    for way in ("own error", "mechanism", "label"):
        with pytest.raises(PrivacyViolationError) as failed:
            assert_rehearsed(known["Tells"](way), [float(SECRET)] * 3)
        assert str(SECRET) not in str(failed.getrepr(style="long", funcargs=True))
    pair = AuditPair([float(SECRET)] * 3, [float(SECRET)] * 2)
    for name in ("function", "library", "plain"):
        with pytest.raises(Exception, match="mechanism") as failed:
            assert_private(known[name], 1.0, pair, runs=200)
        inner = [each for each in failed.traceback if "dpaudit" in str(each.path.parent)]
        assert str(SECRET) not in str(failed.value)
        assert {each.name for each in inner if each.path.name != Path(__file__).name} <= {
            "assert_private"
        }
