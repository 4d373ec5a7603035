"""Commands bound their work and their words, and a full disk costs nothing that was there."""

import json
import resource
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from typed_commands import LONGEST

from dpaudit import Gaussian, Laplace, Plan, certify
from dpaudit.base import files
from dpaudit.certificate import SubjectRecord

PLAN = """
[plan]
relation = "add-remove"
[[invocation]]
mechanism = "gaussian"
sigma = 20.0
sensitivity = 1.0
"""
PROJECT = '[audit]\nruns = 200\n[[subject]]\nname = "numbers"\ntarget = "plan.toml"\ndelta = 1e-6\n'
HUGE = "9" * 4000


@pytest.fixture
def call(call):
    """The same where there is a plan and a project."""
    Path("plan.toml").write_text(PLAN)
    Path("dpaudit.toml").write_text(PROJECT)
    return call


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('relation = "add-remove"', f'relation = "{"x" * 10**5}"'),
        ("sigma = 20.0", f'sigma = "{"x" * 10**5}"'),
        ("sigma = 20.0", f"sigma = {HUGE}"),
        ("sigma = 20.0", f"sigma = 0x{HUGE}"),
        ("sigma = 20.0", f"sigma = {HUGE * 2}"),
        ("sigma = 20.0", f"sigma = [{'1,' * 10**5}]"),
        ("sigma = 20.0", f"sigma = 20.0\ncount = 0x{HUGE}"),
        ("sigma = 20.0", f"sigma = 20.0\ncount = {10**15 + 1}"),
        ("sigma = 20.0", f"sigma = 20.0\n{'k' * 10**5} = 1"),
        ("sigma = 20.0", f"sigma = 20.0\nat = [{'[' * 50}{']' * 50}]"),
        ('"gaussian"', f'"{"g" * 10**5}"'),
        ("[plan]", f'[plan]\nunit = "{"u" * 10**5}"'),
        ("[plan]", f'[plan]\ntrust = "{"u" * 10**5}"'),
        ("[plan]", f"[{'p' * 10**5}]\n[plan]"),
        ("sigma = 20.0", f'sigma = 20.0\nsampling = {{ scheme = "{"p" * 10**5}" }}'),
    ],
    ids=lambda text: f"{text:.40}",
)
def test_huge_words_and_numbers_in_a_plan_are_told_briefly(call, old, new):
    Path("plan.toml").write_text(PLAN.replace(old, new))
    start = time.perf_counter()
    call("certify", "plan.toml", "--delta", "1e-6").refuses()
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "numbers"', f'name = "{"x" * 10**5}"'),
        ('name = "numbers"', f"name = 0x{HUGE}"),
        ('"plan.toml"', f'"{"x" * 10**5}"'),
        ('"plan.toml"', f'"{"x" * 10**5}.toml"'),
        ("delta = 1e-6", f"delta = 0x{HUGE}"),
        ("delta = 1e-6", f'accountant = "{"x" * 10**5}"'),
        ("runs = 200", f"runs = 0x{HUGE}"),
        ("[audit]", f'[project]\nreports = "{"x" * 10**5}"\n[audit]'),
        ("[audit]", f'[project]\nformats = ["{"x" * 10**5}"]\n[audit]'),
        ("[audit]", f"[{'x' * 10**5}]\n[audit]"),
    ],
    ids=lambda text: f"{text:.40}",
)
def test_huge_words_and_numbers_in_a_project_are_told_briefly(call, old, new):
    Path("dpaudit.toml").write_text(PROJECT.replace(old, new))
    code, out, err = call("check")
    assert code == 3
    assert len(out + err) <= 3 * LONGEST


@pytest.mark.parametrize(
    "arguments",
    [
        ("certify", f"examples:{'x' * 10**4}"),
        ("certify", f"{'x' * 10**4}:Answers"),
        ("certify", "examples:Answers", "--set", f"{'x' * 10**4}=1"),
        ("certify", "examples:Answers", "--set", "x" * 10**4),
        ("certify", "examples:Answers", "--set", f"epsilon={'x' * 10**4}"),
        ("certify", "plan.toml", "--accountant", "x" * 200),
        ("certify", "plan.toml", "--delta", "x" * 200),
        ("run", "examples:Answers", "--durability", "x" * 200),
        ("verify", "x" * 200),
        ("report", "x" * 200, "-o", "y.html"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]:.20}",
)
def test_huge_arguments_are_told_briefly(call, arguments):
    call(*arguments).refuses()


def test_a_stream_of_too_many_steps_is_refused_at_once(call):
    stream = """mechanism = "continual-laplace"
scale = 1.0
participations = {participations}
min_separation = 2
factorization = {{ kind = "binary-tree", steps = {steps} }}"""
    for steps, participations, word in ((10**9, 1, "10000000"), (10**6, 10**9, "product")):
        body = stream.format(steps=steps, participations=participations)
        text = PLAN.replace('mechanism = "gaussian"\nsigma = 20.0', body)
        Path("plan.toml").write_text(text)
        start = time.perf_counter()
        call("certify", "plan.toml").refuses(word)
        assert time.perf_counter() - start < 20


def certificate(path, plan):
    return certify(plan, subject=SubjectRecord("large"), delta=1e-6).save(path)


def dear(path):
    """A small certificate whose proof takes long: the plan of a proved one is exchanged."""
    record = json.loads(certificate(Path("cheap.json"), declared(Gaussian(9.0))).read_text())
    plan = declared(*(Laplace(1 + place / 5000) for place in range(5000)))
    record |= {"plan": plan.to_dict(), "plan_hash": plan.hash}
    record.pop("digest")
    path.write_text(files.pretty_json(record | {"digest": files.digest(record)}))
    return path


def declared(*mechanisms):
    from examples import gaussian_invocation

    return Plan.of(*(gaussian_invocation(mechanism=each) for each in mechanisms))


@pytest.mark.parametrize(
    "command", [("verify",), ("report", "-o", "out.html")], ids=["verify", "report"]
)
def test_somebody_elses_proof_that_would_take_long_is_not_begun(call, command):
    path = dear(Path("dear.json"))
    start = time.perf_counter()
    call(*command, path).refuses("would take about", "--allow-work")
    assert time.perf_counter() - start < 60
    assert not Path("out.html").exists()


def test_work_that_is_allowed_is_done(call, monkeypatch):
    path = certificate(Path("small.json"), declared(Laplace(9.0)))
    monkeypatch.setattr("dpaudit.accounting.work.MOST_SECONDS", 0.0)
    call("verify", path).refuses("--allow-work")
    assert call("verify", path, "--allow-work")[0] == 0


@pytest.mark.parametrize("command", ["verify", "report", "certify", "check"])
def test_a_large_file_is_refused_unread(call, command):
    path = Path("plan.toml" if command in ("certify", "check") else "large.json")
    with path.open("wb") as file:
        file.truncate(3 * 10**9)  # takes no room
    arguments = {
        "verify": (path,),
        "report": (path, "-o", "out.html"),
        "certify": (path,),
        "check": (),
    }[command]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code, out, err = call(command, *arguments)
    assert code == 3
    assert "at most" in err + out
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


@contextmanager
def disk_of(size):
    """Files of this process cannot grow beyond a size, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def everything(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        ("certify", "plan.toml", "--delta", "1e-6", "-o", "c.json"),
        ("report", "c.json", "-o", "r.html"),
        ("report", "c.json", "-o", "r.md"),
        ("check", "-o", "rep"),
        ("run", "examples:Answers", "--data", "numbers", "--seed", "1", "-o", "out"),
        ("audit", "examples:Answers", "--runs", "100", "--seed", "1", "-o", "a.json"),
        ("audit", "examples:Answers", "--runs", "100", "--seed", "1", "--journal", "trials"),
    ],
    ids=lambda words: " ".join(words[:2] + words[-1:]),
)
def test_a_full_disk_is_a_sentence_and_leaves_no_half(call, arguments, tmp_path):
    certificate(Path("c.json"), declared(Gaussian(9.0)))
    Path("r.html").write_text("an old report of dpaudit")
    Path("rep").mkdir()
    before = everything(tmp_path)
    with disk_of(1500):
        outcome = call(*arguments)
    outcome.refuses("cannot be written")
    after = everything(tmp_path)
    assert {path: after.get(path) for path in before} == before
    made = {path.relative_to(tmp_path) for path in after.keys() - before.keys()}
    if made:  # what was released stays on record, and finished chunks of an audit
        assert made <= {Path("out/ledger.jsonl"), Path("trials")}
        assert all(
            after[tmp_path / path].endswith(b"\n") or not after[tmp_path / path] for path in made
        )


RESULTS = """
from examples import Answers

class Result:
    def __init__(self, record): self.record = record
    def to_dict(self): return self.record

class Odd(Answers):
    def run(self, problem, ledger, rng):
        super().run(problem, ledger, rng)
        return {result}
"""


@pytest.mark.parametrize(
    "result",
    [
        "{}",
        "None",
        "Result(7)",
        "Result({'summary': 3})",
        "Result({'x': float('nan')})",
        "Result({1: {2}})",
    ],
)
def test_a_result_that_is_none_is_a_sentence_and_the_ledger_stays(call, result):
    Path("odd.py").write_text(RESULTS.replace("{result}", result))
    arguments = ("odd.py:Odd", "--data", "numbers", "--seed", "1", "--no-rehearsal", "-o", "out")
    call("run", *arguments).refuses("result of odd.py:Odd")
    assert call("verify", "out/ledger.jsonl")[0] == 0


def test_a_result_that_cannot_be_written_is_found_before_anything_is_released(call):
    Path("odd.py").write_text(RESULTS.replace("{result}", "Result({'x': float('nan')})"))
    code, out, _ = call("run", "odd.py:Odd", "--data", "numbers", "--seed", "1", "-o", "out")
    assert code == 2
    assert "unwritable-result" in out
    assert not Path("out").exists()


def test_a_result_without_curves_is_written(call):
    Path("odd.py").write_text(RESULTS.replace("{result}", "Result({'mean': 1.0})"))
    assert call("run", "odd.py:Odd", "--data", "numbers", "--seed", "1", "-o", "out")[0] == 0


def test_randomised_response_that_always_lies_costs_nothing_in_a_sample(call):
    text = PLAN.replace('"gaussian"\nsigma = 20.0', '"randomized-response"\np = 1.0')
    text = text.replace("add-remove", "replace-one")
    sampling = 'sampling = { scheme = "fixed-size", size = 1, population = 10 }'
    Path("plan.toml").write_text(f"{text}{sampling}\n")
    assert (
        call("certify", "plan.toml", "--delta", "1e-6", "--json").record(0)["guarantee"]["epsilon"]
        == 0
    )
