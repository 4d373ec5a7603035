"""Algorithms line by line: tests that compare the code with an independent transcription.

A row of this kind is reproduced where all its tests pass; they are run in a pytest of their own,
all rows' at once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from audits.paper_rows.measurement import Measurement, Number, Records, Verdict, judge

ROOT = Path(__file__).parents[3]
_LINE = re.compile(r"^(tests/\S+\.py(?:::.*)?) (PASSED|FAILED|ERROR|SKIPPED)\b", re.MULTILINE)
_OPTIONS = ("-v", "--no-header", "--import-mode=importlib", "-o", "addopts=", "-p", "no:xdist")
_known: dict[str, dict[str, str]] = {}


def prefetch(nodes: Iterable[str]) -> None:
    """Run all of these tests at once, which takes one start of pytest instead of many."""
    names = sorted({_path(node) for node in nodes} - _known.keys())
    if not names:
        return
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "algorithms")])}
    command = [sys.executable, "-m", "pytest", *_OPTIONS, "-p", "no:cacheprovider", *names]
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    outcomes = dict(_LINE.findall(done.stdout))
    for name in names:
        _known[name] = {test: word for test, word in outcomes.items() if test.startswith(name)}


def tests(records: Records, nodes: Sequence[str], future: bool) -> Measurement:
    """Run tests; reproduced where all pass.

    Args:
        records: not used.
        nodes: tests of ``tests/private_bo``, as pytest names them.
        future: whether the paper leaves open what they show, so that passing is an improvement.
    """
    prefetch(nodes)
    words = [word for node in nodes for word in _known[_path(node)].values() or ["MISSING"]]
    passed = words.count("PASSED")
    numbers = (
        Number("tests that pass", passed),
        Number("tests that do not", len(words) - passed),
    )
    names = ", ".join(map(_path, nodes))
    yes = Verdict.IMPROVED if future else Verdict.REPRODUCED
    because = f"The code beside a transcription of its own, or beside what must hold: {names}."
    return judge(passed == len(words), numbers, because, yes=yes)


def _path(node: str) -> str:
    return f"tests/private_bo/{node}"
