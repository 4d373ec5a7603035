"""Algorithms line by line: tests that compare the code with an independent transcription.

A row of this kind is reproduced where all its tests pass, in a pytest of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from audits.paper_rows.measurement import Measurement, Number, Records, Verdict, judge

ROOT = Path(__file__).parents[3]
_LINE = re.compile(r"^(tests/\S+\.py(?:::.*)?) (PASSED|FAILED|ERROR|SKIPPED)\b", re.MULTILINE)
_OPTIONS = ("-v", "--no-header", "--import-mode=importlib", "-o", "addopts=", "-p", "no:xdist")


def outcomes(names: Sequence[str]) -> dict[str, str]:
    """A word for each test of these files or nodes, by its full name."""
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "algorithms")])}
    command = [sys.executable, "-m", "pytest", *_OPTIONS, "-p", "no:cacheprovider", *names]
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    return dict(_LINE.findall(done.stdout))


def tests(records: Records, nodes: Sequence[str], future: bool) -> Measurement:
    """Run tests; reproduced where all pass.

    Args:
        records: not used.
        nodes: tests of ``tests/private_bo``, as pytest names them.
        future: whether the paper leaves open what they show, so that passing is an improvement.
    """
    paths = [f"tests/private_bo/{node}" for node in nodes]
    ran = outcomes(paths)
    found = [[word for test, word in ran.items() if test.startswith(path)] for path in paths]
    words = [word for each in found for word in each or ["MISSING"]]
    passed = words.count("PASSED")
    numbers = (
        Number("tests that pass", passed),
        Number("tests that do not", len(words) - passed),
    )
    yes = Verdict.IMPROVED if future else Verdict.REPRODUCED
    names = ", ".join(paths)
    because = (
        "Tests compare the code with a transcription of the paper, or with a property that must "
        f"hold: {names}."
    )
    return judge(passed == len(words), numbers, because, yes=yes)
