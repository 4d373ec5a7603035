"""All audits of all tools, kept in one file, so that what was measured is not measured again."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from audits.peers.rows import ROWS, RUNS, Row
from audits.peers.tools import HERE, PLACE, TOOLS, Tool
from dpaudit.auditing import audit_release
from dpaudit.base import files
from dpaudit.base.errors import InputError

CONFIDENCE = 0.95
SEEDS, SEEDS_RIGHT = 10, 60
"""Audits of a wrong row and of a right one, at most."""
LEAST, ENOUGH = 3, 8.0
"""Audits of a slow tool at least, and the processor seconds after which there is no further one;
a cell that was stopped earlier is gone on with."""
FAILED = "not measured"
"""Key of the tools that could not be run, and why."""
Answer = dict[str, Any]
Audit = Callable[[Row, int, int], Answer]


def own(tool: Tool, row: Row, runs: int, seed: int) -> Answer:
    """One audit by dpaudit: bound, verdict and processor time, in which the runs are drawn too."""
    entry, before = row.entry, time.process_time() + sum(os.times()[2:4])
    known = {"score": None if tool.setting == "learned" else entry.score}
    known |= {"curve": entry.curve if tool.setting == "curve" else None}
    claim = {"epsilon": entry.claim.epsilon, "delta": entry.claim.delta, "confidence": CONFIDENCE}
    how = {"runs": runs, "seed": seed, "timeout": None}
    record = audit_release(entry.release, entry.pair, **claim, **known, **how)
    used = time.process_time() + sum(os.times()[2:4]) - before
    return {"bound": record.epsilon_lower or 0.0, "rejected": record.refuted, "seconds": used}


@contextlib.contextmanager
def auditor(tool: Tool) -> Iterator[Audit]:
    """What makes one audit: of a row, with so many runs a side, by a seed."""
    if not tool.adapter:
        own(tool, ROWS[0], RUNS[0], 0)  # takes what is loaded once
        yield lambda row, runs, seed: own(tool, row, runs, seed)
        return
    adapter, tape = HERE / "adapters" / f"{tool.adapter}.py", PLACE / f"{os.getpid()}.npz"
    command = [tool.prepare(), HERE / "worker.py", adapter, tool.source]
    with (PLACE / "tools.log").open("a") as log:
        worker = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=log, text=True)

    def audit(row: Row, runs: int, seed: int) -> Answer:
        row.draw(runs, seed, tape)
        claim = row.entry.claim
        task = {"file": str(tape), "seed": seed, "epsilon": claim.epsilon, "delta": claim.delta}
        task |= {"confidence": CONFIDENCE, "setting": tool.setting, "gaussian": row.gaussian}
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(json.dumps(task) + "\n")
            worker.stdin.flush()
        answer = worker.stdout.readline()
        if not answer:
            raise InputError(f"{tool.name} ended by itself; {PLACE / 'tools.log'} says why.")
        return json.loads(answer)

    try:
        yield audit
    finally:
        worker.communicate()
        tape.unlink(missing_ok=True)


def measure(results: Path, *, runs: Sequence[int] = RUNS, only: str = "") -> None:
    """Audit what is missing in a file of results, which is written after every cell.

    Args:
        results: answers by tool, row and runs; an InputError if it holds no table.
        runs: numbers of runs on each side.
        only: tools whose name contains this text.
    """
    for tool in (each for each in TOOLS if only in each.name):
        table = load(results)
        cells = [(row, size) for size in runs for row in tool.taken]
        missing = [cell for cell in cells if wanted(table.get(key(tool, *cell), {}), cell[0])]
        if not missing:
            continue
        try:
            with auditor(tool) as audit:
                table.get(FAILED, {}).pop(tool.name, None)
                for row, size in missing:
                    name = key(tool, row, size)
                    table[name] = audited(audit, row, size, table.get(name, {}))
                    save(results, table)
        except InputError as error:
            table.setdefault(FAILED, {})[tool.name] = str(error)
            save(results, table)


def key(tool: Tool, row: Row, runs: int) -> str:
    """The name of one cell."""
    return f"{tool.name} | {row.name} | {runs}"


def wanted(cell: Answer, row: Row) -> bool:
    """Whether a cell is to have a further audit."""
    done, used = len(cell.get("seconds", ())), sum(cell.get("seconds", ()))
    most = SEEDS_RIGHT if row.entry.right else SEEDS
    return "error" not in cell and (done < LEAST or (done < most and used < ENOUGH))


def audited(audit: Audit, row: Row, runs: int, known: Answer) -> Answer:
    """All audits of one cell, by seeds from 0 on, beginning where the known ones end."""
    cell = {"bounds": [], "refuted": 0, "seconds": []} | known
    while wanted(cell, row):
        answer = audit(row, runs, len(cell["seconds"]))
        if "error" in answer:
            return answer
        cell["bounds"].append(rounded_down(answer["bound"]))
        cell["refuted"] += answer["rejected"]
        cell["seconds"].append(float(f"{answer['seconds']:.3g}"))
    return cell


def rounded_down(bound: float | str | None) -> float | str | None:
    """A bound to four decimals, never above it; an infinite one as a word, for JSON."""
    if bound is None or math.isinf(float(bound)):
        return None if bound is None else "infinity"
    return math.floor(float(bound) * 1e4) / 1e4


def load(results: Path) -> dict[str, Any]:
    """The cells that were measured, none if there is no file; InputError if it is no table."""
    table = files.load_json(results, what="results") if results.exists() else {}
    if not isinstance(table, dict) or not all(isinstance(each, dict) for each in table.values()):
        raise InputError(f"results {results} hold no table of cells; measure into another file.")
    return table


def save(results: Path, table: dict[str, Any]) -> None:
    """One cell a line."""
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    lines = (f"{dumps(name)}: {dumps(found)}" for name, found in table.items())
    files.write(results, "{\n" + ",\n".join(lines) + "\n}\n")
