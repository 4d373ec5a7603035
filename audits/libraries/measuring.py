"""Runs rows and keeps what was found in one file, from which the page is written."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from audits.libraries.environments import python
from audits.libraries.row import Row
from dpaudit.base import files
from dpaudit.base.errors import InputError

LONGEST = 600
"""Seconds that one command of a row may take."""
Found = dict[str, Any]


def measured(row: Row) -> Found:
    """What the commands of one row find; what stopped them under ``error``."""
    before = _used()
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
    return found | {"seconds": round(_used() - before, 1)}


def _used() -> float:
    """Processor time of the commands that this process has run; others may use the machine too."""
    return sum(os.times()[2:4])


def _observed(row: Row, home: Path) -> Found:
    task = {"name": row.target, "options": row.observing, "library": row.library}
    return answer([str(home), "-m", "audits.libraries.worker"], json.dumps(task))


def _attacked(command: list[str], home: Path) -> Found:
    made = answer([str(home), "-m", "dpaudit", *command, "--json"])
    kept = ("verdict", "epsilon_lower", "delta", "confidence", "runs", "event")
    return {key: str(made[key]) if made[key] == math.inf else made[key] for key in kept}


def answer(command: list[str], given: str = "", longest: float = LONGEST) -> Found:
    """The JSON that a command prints.

    Raises:
        InputError: if it prints none, or takes too long.
    """
    here = os.pathsep.join([str(Path.cwd()), str(Path.cwd() / "algorithms")])
    own = {**os.environ, "PYTHONPATH": here}
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=longest, env=own
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise InputError(f"it took more than {longest:g} s.") from None
    except ValueError:
        said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise InputError(f"it printed no answer: {said:.300}") from None


def _version(row: Row, home: Path) -> str:
    if not row.environment:
        return metadata.version(row.library)
    code = f"from importlib.metadata import version; print(version({row.library!r}))"
    done = subprocess.run([home, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def missing(rows: Iterable[Row], results: Path) -> list[Row]:
    """The rows that were not run yet, or by other commands, or could not be."""
    table = load(results)
    known = {name for name, found in table.items() if "error" not in found}
    return [
        row
        for row in rows
        if row.name not in known or table[row.name]["commands"] != row.commands()
    ]


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
    with ProcessPoolExecutor(workers) as pool:
        failed = 0
        for row, found in zip(chosen, pool.map(measured, chosen), strict=True):
            kept(results, row.name, found)
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


def kept(results: Path, name: str, found: Found) -> None:
    """Write what was found under a name, beside what is there."""
    table = load(results)
    table[name] = found
    save(results, table)


def save(results: Path, table: dict[str, Found]) -> None:
    """One row a line."""
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    lines = (f"{dumps(name)}: {dumps(found)}" for name, found in sorted(table.items()))
    files.write(results, "{\n" + ",\n".join(lines) + "\n}\n")


def say(line: str) -> None:
    """A line of progress."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
