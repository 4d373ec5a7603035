"""What sealed studies under local trust cost, and what becomes of their mistakes.

Run ``python -m tests.benchmarks.sealed_studies [--users 300] [--times 1] [--no-mutants]``. Each
number is computed in this run. *Study* is the study on rewards that it holds; *handles* is its
sealed form in one process, with where its time goes; *sealed* is what a user waits for, as against
the same command on handles, both as processes of their own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from dpaudit.ledger import Ledger
from dpaudit.project.sealed_subject import OpenSubject
from dpaudit.sealed.operations import Operations
from dpaudit.sealed.per_unit import UnitFunctions
from dpaudit.sealed.sandbox import lacking
from dpaudit.sealed.store import Store
from tests.support.sealed_mutants import REMEMBERING, moved_by_one, mutants, outcome
from tests.support.sealed_studies import (
    BANDITS,
    bandit,
    liking_of,
    made_rewards,
    plain,
    problem,
    study,
    write_rewards,
    write_users,
)

ROOT = Path(__file__).parents[2]
_PARTS: dict[str, tuple[type, tuple[str, ...]]] = {
    "table": (Store, ("values", "records", "codes_of", "keep")),
    "functions": (UnitFunctions, ("values", "require_answers")),
    "ledger": (Ledger, ("release_each", "release")),
    "requests": (Operations, ("answer",)),
}
_OWN = """
from private_bo.gp import FiniteDomain, Matern
from private_bo.sealed import NAME

FEW = {"domain": FiniteDomain.grid(6), "kernel": Matern(0.3, nu=2.5)}
OWN = NAME(steps=STEPS, **FEW, **SETTINGS)
"""
_STUDY = """
from taste import liking
from private_bo import BoxSpace
from private_bo.sealed import LocalStudy

COLUMNS = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
OWN = LocalStudy(space=BoxSpace((0,), (1,)), objective=liking, users=STEPS, columns=COLUMNS)
"""
_TASTE = """
def liking(records, rng, point):
    return 1.2 - 2 * (point[0] - records["best"][0]) ** 2
"""


@contextmanager
def timed(seconds: Counter[str]) -> Iterator[None]:
    """Add up how long some methods take, without those within them."""

    within: list[float] = []

    def wrapped(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            within.append(0.0)
            try:
                return method(*given, **named)
            finally:
                taken = time.perf_counter() - start
                seconds[name] += taken - within.pop()
                if within:
                    within[-1] += taken

        return call

    patches = [
        patch.object(kind, method, wrapped(part, getattr(kind, method)))
        for part, (kind, methods) in _PARTS.items()
        for method in methods
    ]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def seconds_of(subject: Any, data: Any) -> float:
    """How long a run takes, with noise from a seed."""
    ledger = Ledger(subject.plan(), rng=np.random.default_rng(1))
    start = time.perf_counter()
    subject.run(data, ledger, np.random.default_rng(2))
    return time.perf_counter() - start


def row(name: str, subject: Any, data: Any, code: str, times: int) -> None:
    """Print what one subject costs, in milliseconds of an answer, and in seconds of a command."""
    answers = subject.plan().invocations[0].total
    without = min(seconds_of(plain_of(subject), data) for _ in range(times))
    held = OpenSubject(subject, Path()).load(subject.default_data, np.random.default_rng(0))
    parts: Counter[str] = Counter()
    with held.stack, timed(parts):
        handles = seconds_of(OpenSubject(subject, Path()), held)
    shown = [without, handles, *(parts[each] for each in _PARTS)]
    Path("own.py").write_text(code.replace("STEPS", str(answers)), "utf-8")
    commands = [min(command(seal=each) for _ in range(times)) for each in (False, True)]
    cells = "".join(f"{1e3 * each / answers:9.2f}" for each in shown)
    print(f"{name:14}{cells}{commands[0]:11.2f}{commands[1]:9.2f}", flush=True)


def plain_of(subject: Any) -> Any:
    """The study that holds what is private."""
    found = plain(subject)
    return found if hasattr(subject, "domain") else replace(found, objective=liking_of)


def command(*, seal: bool) -> float:
    """Seconds of a run as a process of its own, sealed or on handles in one process."""
    code = "run_subject('own.py:OWN', (), None, 1, Path(out), sealed=True)"
    if not seal:
        code = "run_target(open_target('own.py:OWN', {}, '-'), '', Path(out), RunOptions(seed=1))"
    with tempfile.TemporaryDirectory() as out:
        names = "from pathlib import Path; from dpaudit.workflow.running import *; "
        names += f"from dpaudit.workflow.running import open_target; out = {out!r}; "
        words = [sys.executable, "-c", names + code]
        environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'algorithms'}"}
        start = time.perf_counter()
        subprocess.run(words, check=True, env=environment, capture_output=True)
        return time.perf_counter() - start


def times_of_all(users: int, times: int) -> None:
    """Print the table."""
    print(f"{os.cpu_count()} processors; ms of an answer, of {users}; seconds of a command")
    print(
        "                  study  handles    table functions  ledger requests    handles   sealed"
    )
    for kind in BANDITS:
        subject = bandit(kind, users)
        rewards = made_rewards(subject)
        write_rewards(Path("rewards.csv"), rewards)
        data = problem(subject, rewards)
        code = _OWN.replace("NAME", kind.__name__).replace("SETTINGS", repr(BANDITS[kind]))
        row(kind.__name__, subject, data, code, times)
    subject = study(users=users)
    records = write_users(Path("users.csv"), subject.names)
    Path("taste.py").write_text(_TASTE, "utf-8")
    row("LocalStudy", subject, records, _STUDY, times)


def mistakes() -> None:
    """Print what becomes of each."""
    total: Counter[str] = Counter()
    for mutant in mutants():
        with tempfile.TemporaryDirectory() as folder:
            found, why = outcome(mutant, Path(folder))
        total[found] += 1
        print(f"{mutant.name:18}{found:15}{why}", flush=True)
    for objective in () if lacking() else REMEMBERING:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            moved = moved_by_one(objective, Path(one))
            without = moved_by_one(objective, Path(two), seal=False)
        found = "harmless" if moved <= 1 else "leaks"
        total[found] += 1
        said = f"one user moves the answers of {moved}, and of {without} in one process"
        print(f"{objective.__name__:18}{found:15}{said}", flush=True)
    print(f"{total.total()} mistakes: " + ", ".join(f"{n} {name}" for name, n in total.items()))


def main(users: int, times: int, *, with_mutants: bool) -> None:
    """Print all of it."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        times_of_all(users, times)
    if with_mutants:
        mistakes()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=300)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--no-mutants", action="store_true")
    arguments = parser.parse_args()
    main(arguments.users, arguments.times, with_mutants=not arguments.no_mutants)
