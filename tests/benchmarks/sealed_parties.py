"""What sealed studies under joint and federated trust cost, and what becomes of their mistakes.

Run ``python -m tests.benchmarks.sealed_parties [--users 100] [--agents 50] [--no-mutants]``. Each
number is computed in this run, in seconds. *Study* is the study on data that it holds; *handles* is
its sealed form in one process, with where its time goes; then the two commands that a user waits
for, on handles and sealed, as processes of their own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.project.sealed_subject import OpenSubject
from private_bo import BoxSpace, federated, joint, own, sealed
from tests.benchmarks.sealed_studies import command, seconds_of, timed
from tests.support.same_releases import written
from tests.support.sealed_party_mutants import party_mutants, party_outcome
from tests.support.sealed_studies import liking, liking_of

_TASTE = """
def liking(records, rng, point):
    return 1.2 - 2 * (point[0] - records["best"][0]) ** 2
"""
_STUDY = """
from taste import liking
from private_bo import BoxSpace
from private_bo.sealed import JointStudy

COLUMNS = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
OWN = JointStudy(space=BoxSpace((0,), (1,)), objective=liking, users=USERS, columns=COLUMNS)
"""


def row(plain: Any, data: Any, subject: Any, code: str, calls: int) -> None:
    """Print what one subject costs."""
    without = seconds_of(plain, data)
    held = OpenSubject(subject, Path()).load(subject.default_data, np.random.default_rng(0))
    parts: Counter[str] = Counter()
    with held.stack, timed(parts):
        handles = seconds_of(OpenSubject(subject, Path()), held)
    Path("own.py").write_text(code, "utf-8")
    commands = [command(seal=each) for each in (False, True)]
    spent = [parts[each] for each in ("table", "functions", "ledger", "requests")]
    shown = [without, handles, *spent, *commands]
    print(f"{type(subject).__name__:16}{calls:7}", *(f"{each:9.2f}" for each in shown), flush=True)


def times_of_all(users: int, agents: int) -> None:
    """Print the table."""
    heads = ("study", "handles", "table", "functions", "ledger", "requests", "handles", "sealed")
    print(f"{os.cpu_count()} processors; seconds; the last two of commands")
    print(f"{'':16}{'calls':>7}", *(f"{each:>9}" for each in heads))
    made = joint.JointGPUCB(steps=users).load("bump", np.random.default_rng(3))
    rows = (
        [f"user {turn + 1}", *np.round(arm, 6), made.reward(turn, place)]
        for turn in range(users)
        for place, arm in enumerate(made.decision_set(turn))
    )
    written(Path("decisions.csv"), ["user", "x1", "x2", "reward"], rows)
    for name in ("JointGPUCB", "LocalJointGPUCB"):
        code = f"from private_bo.sealed import {name}\nOWN = {name}(steps={users})\n"
        subject = getattr(sealed, name)(steps=users)
        row(getattr(joint, name)(steps=users), made, subject, code, users)

    best = np.random.default_rng(6).random(users).round(2).tolist()
    written(
        Path("users.csv"),
        ["user", "best"],
        ([f"user {n + 1}", each] for n, each in enumerate(best)),
    )
    usual: dict[str, Any] = {"space": BoxSpace((0,), (1,)), "users": users}
    columns = {"best": {"type": "number", "range": [0, 1], "step": 0.01}}
    Path("taste.py").write_text(_TASTE, "utf-8")
    row(
        own.JointStudy(objective=liking_of, **usual),
        [{"best": each} for each in best],
        sealed.JointStudy(objective=liking, columns=columns, **usual),
        _STUDY.replace("USERS", str(users)),
        users,
    )

    problem = federated.synthetic(agents, seed=3)
    table = (
        [f"agent {n:03}", n, point, round(float(value), 6)]
        for (n, point), value in np.ndenumerate(problem.table)
    )
    written(Path("agents.csv"), ["agent", "number", "point", "value"], table)
    settings = f"agents={agents}, rounds=10, sharp_rounds=3, fading_rounds=5"
    code = f"from private_bo.sealed import DPFTSDE\nOWN = DPFTSDE({settings})\n"
    small = {"agents": agents, "rounds": 10, "sharp_rounds": 3, "fading_rounds": 5}
    data = replace(problem, name="agents.csv")
    row(federated.DPFTSDE(**small), data, sealed.DPFTSDE(**small), code, 10 * agents)


def mistakes() -> None:
    """Print what becomes of each."""
    total: Counter[str] = Counter()
    for mutant in party_mutants():
        with tempfile.TemporaryDirectory() as folder:
            found, why = party_outcome(mutant, Path(folder))
        total[found] += 1
        print(f"{mutant.name:24}{found:15}{why}", flush=True)
    print(f"{total.total()} mistakes: " + ", ".join(f"{n} {name}" for name, n in total.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--no-mutants", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, chdir(place):
        times_of_all(arguments.users, arguments.agents)
    if not arguments.no_mutants:
        mistakes()
