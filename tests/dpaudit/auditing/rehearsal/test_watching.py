"""Ways around the ledger are seen where the code takes them."""

import inspect
import sqlite3
import subprocess

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import Gaussian, Ledger, Plan
from dpaudit.auditing.rehearsal.watching import watched

NOISE = Gaussian(4.0)
PLAN = Plan.of(gaussian_invocation(mechanism=NOISE, at="sum"))


def test_the_ledger_of_the_rehearsal_is_no_finding():
    with Ledger(PLAN, rng=np.random.default_rng(0)) as ledger, watched() as watch:
        ledger.release(NOISE, 1.0, at="sum")
    assert watch.findings() == ()


def test_a_second_ledger_is_named_with_its_line():
    with watched() as watch:
        line = inspect.currentframe().f_lineno + 1
        Ledger(PLAN, rng=np.random.default_rng(0))
    (finding,) = watch.findings()
    assert finding.rule == "second-ledger"
    assert f"test_watching:{line}" in finding.message


def test_a_mechanism_beside_the_ledger_is_named():
    for use in (NOISE.release, lambda value, rng: NOISE.release_many(value, 3, rng)):
        with watched() as watch:
            use(1.0, np.random.default_rng(0))
        assert [finding.rule for finding in watch.findings()] == ["release-beside-the-ledger"]


def test_nothing_is_watched_afterwards():
    with watched() as watch:
        pass
    NOISE.release(1.0, np.random.default_rng(0))
    Ledger(PLAN, rng=np.random.default_rng(0))
    assert watch.findings() == ()


def opens(folder):
    (folder / "x").write_text("1")


def reads(folder):
    (folder / "there").read_text()


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (opens, "writes a file"),
        (lambda folder: (folder / "sub").mkdir(), "makes a folder"),
        (lambda folder: subprocess.run(["true"], check=True), "starts a process"),
        (lambda folder: sqlite3.connect(folder / "d").close(), "opens a database"),
        (reads, "reads a file"),
    ],
)
def test_what_reaches_the_world_is_named(tmp_path, deed, words):
    (tmp_path / "there").write_text("1")
    with watched() as watch:
        deed(tmp_path)
    found = watch.findings()
    rule = "reads-beside-load" if deed is reads else "beside-the-ledger"
    assert [each.rule for each in found] == [rule]
    assert f"The run {words} at " in found[0].message
