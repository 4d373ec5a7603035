"""Runs rows and keeps what was found in one file, from which the page is written."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from audits.libraries.environments import python
from audits.libraries.row import Row
from dpaudit import files
from dpaudit.errors import InputError

LONGEST = 120
"""Seconds that one command of a row may take."""
Found = dict[str, Any]


def measured(row: Row) -> Found:
    """What the commands of one row find; what stopped them under ``error``."""
    before = time.monotonic()
    found: Found = {"commands": row.commands()}
    try:
        home = python(row.environment)
        for number, command in enumerate(row.commands()):
            kind = command[0]
            found[kind] = _observed(row, home) if kind == "observe" else _attacked(command, home)
            if number == 0:
                found["version"] = found[kind].pop("version", None) or _version(row, home)
    except InputError as error:
        found["error"] = str(error)
    return found | {"seconds": round(time.monotonic() - before, 1)}


def _observed(row: Row, home: Path) -> Found:
    task = {"name": row.target, "options": row.observing, "library": row.library}
    return _answer([str(home), "-m", "audits.libraries.worker"], json.dumps(task))


def _attacked(command: list[str], home: Path) -> Found:
    made = _answer([str(home), "-m", "dpaudit", *command, "--json"])
    kept = ("verdict", "epsilon_lower", "delta", "confidence", "runs", "event")
    return {key: str(made[key]) if made[key] == math.inf else made[key] for key in kept}


def _answer(command: list[str], given: str = "") -> Found:
    """The JSON that a command prints.

    Raises:
        InputError: if it prints none, or takes too long.
    """
    here = os.pathsep.join([str(Path.cwd()), str(Path.cwd() / "algorithms")])
    own = {**os.environ, "PYTHONPATH": here}
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=LONGEST, env=own
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise InputError(f"it took more than {LONGEST} s.") from None
    except ValueError:
        said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise InputError(f"it printed no answer: {said:.300}") from None


def _version(row: Row, home: Path) -> str:
    if not row.environment:
        return metadata.version(row.library)
    code = f"from importlib.metadata import version; print(version({row.library!r}))"
    done = subprocess.run([home, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def measure(rows: Iterable[Row], results: Path, *, workers: int, told: Callable[[str], Any]) -> int:
    """Run rows, keep each as soon as it is done, and say how many could not be run.

    Args:
        rows: that are run.
        results: file of what was found, by the names of rows.
        workers: how many at once.
        told: what happens to a line of progress.
    """
    chosen = tuple(rows)
    for environment in dict.fromkeys(row.environment for row in chosen):  # one after the other
        try:
            python(environment)
        except InputError as error:
            told(f"{environment}: {error}")
    with ThreadPoolExecutor(workers) as pool:
        failed = 0
        for row, found in zip(chosen, pool.map(measured, chosen), strict=True):
            table = load(results)
            table[row.name] = found
            save(results, table)
            failed += "error" in found
            told(f"{found['seconds']:6.1f} s  {row.library}: {row.name}: {_short(found)}")
    return failed


def _short(found: Found) -> str:
    if "error" in found:
        return f"not run: {found['error']}"
    said = [
        f"{kind} {found[kind].get('verdict', '–')}"
        for kind in ("observe", "audit")
        if kind in found
    ]
    return ", ".join(said)


def load(results: Path) -> dict[str, Found]:
    """What was found, none if there is no file; InputError if it is no table."""
    table = files.load_json(results, what="results") if results.exists() else {}
    if not isinstance(table, dict) or not all(isinstance(each, dict) for each in table.values()):
        raise InputError(f"results {results} hold no table of rows; measure into another file.")
    return table


def save(results: Path, table: dict[str, Found]) -> None:
    """One row a line."""
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    lines = (f"{dumps(name)}: {dumps(found)}" for name, found in sorted(table.items()))
    files.write(results, "{\n" + ",\n".join(lines) + "\n}\n")


def say(line: str) -> None:
    """A line of progress."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
