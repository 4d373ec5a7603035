"""False alarms of rehearsals on subjects that are differentially private as they declare.

Run ``python -m tests.benchmarks.right_subjects [--seeds 50] [--no-check] [NAME...]``. Each subject
is rehearsed with each seed, which also chooses its data, and is then the one subject of a project
that ``dpaudit check`` looks at. Every finding is a false alarm: the docstrings prove the subjects.
Those on frames need pandas or polars, which are no dependencies of this project.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from dpaudit import Severity, Subject
from dpaudit.workflow.rehearsing import rehearse_subject
from tests.benchmarks.right_subjects import containers, everyday, frames, learning, unusual

ROOMS = (frames, learning, containers, unusual, everyday)
PROJECT = """
[audit]
runs = 2_000
confidence = 0.999999
seed = 1

[[subject]]
name = "right"
target = "{target}"
"""


def subjects(names: list[str]) -> list[type[Subject]]:
    """All subjects, or those of these names or rooms."""
    return [
        kind
        for room in ROOMS
        for kind in vars(room).values()
        if isinstance(kind, type)
        and issubclass(kind, Subject)
        and kind.__module__ == room.__name__
        and (not names or {kind.__name__, room.__name__.rpartition(".")[2]} & set(names))
    ]


@dataclass
class Tally:
    """What the rehearsals of one subject said."""

    alarmed: int = 0
    seconds: list[float] = field(default_factory=list)
    said: dict[str, list[str]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)

    def rehearse(self, subject: Subject, seed: int) -> None:
        start = time.perf_counter()
        outcome = rehearse_subject(subject, type(subject).__name__, seed=seed)
        self.seconds.append(time.perf_counter() - start)
        loud = [each for each in outcome.findings if each.severity is not Severity.NOTE]
        self.alarmed += bool(loud)
        for each in loud:
            self.said.setdefault(f"{each.severity} {each.rule}", []).append(each.message)
        if not outcome.record.done:
            self.reasons[outcome.record.reason] += 1


def check(kind: type[Subject]) -> tuple[int, str]:
    """The exit code of ``dpaudit check`` of a project with this one subject, and its last line."""
    path = os.pathsep.join(each for each in sys.path if each)
    with tempfile.TemporaryDirectory() as folder:  # within that of the session
        text = PROJECT.format(target=f"{kind.__module__}:{kind.__name__}")
        Path(folder, "dpaudit.toml").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "dpaudit", "check"],
            cwd=folder,
            env={
                **os.environ,
                "TMPDIR": folder,
                "PYTHONPATH": os.pathsep.join([str(Path.cwd()), path]),
            },
            capture_output=True,
            text=True,
        )
    return done.returncode, (done.stdout + done.stderr).strip()


def main() -> None:
    """Print the table, and what was said."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="what check printed, too")
    given = parser.parse_args()
    print(f"{'subject':26}{'seeds':>6}{'alarms':>8}{'not rehearsed':>15}{'check':>7}{'seconds':>9}")
    everything: dict[str, Tally] = {}
    for kind in subjects(given.names):
        tally = everything[kind.__name__] = Tally()
        for seed in range(given.seeds):
            tally.rehearse(kind(), seed)
        code, printed = (None, "") if given.no_check else check(kind)
        print(
            f"{kind.__name__:26}{given.seeds:6}{tally.alarmed:8}{tally.reasons.total():15}"
            f"{'–' if code is None else code:>7}{sum(tally.seconds) / given.seeds:9.2f}",
            flush=True,
        )
        if given.verbose:
            print(printed)
    for name, tally in everything.items():
        for rule, messages in tally.said.items():
            print(f"\n{name}: {len(messages)} × {rule}, the first one:\n  {messages[0]}")
        for reason, times in tally.reasons.items():
            print(f"\n{name}: {times} × not rehearsed:\n  {reason}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as session:  # subjects on files leave theirs there
        tempfile.tempdir = session
        main()
