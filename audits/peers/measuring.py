"""All audits of all tools, each cell as many as a few processor seconds allow."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from audits.peers.cells import CELLS, HERE, PLACE, ROWS, RUNS, TOOLS, Cell, Row, Tool
from audits.result_table import Record, ResultTable
from dpaudit.auditing import audit_release
from dpaudit.base.errors import DpAuditError

CONFIDENCE = 0.95
SEEDS, SEEDS_RIGHT = 10, 60
"""Audits of a wrong row and of a right one, at most."""
LEAST, ENOUGH = 3, 8.0
"""Audits of a slow tool at least, and the processor seconds after which there is no further one;
a cell that was stopped earlier is gone on with."""
FAILED = "not measured"
"""Key of the tools that could not be run, and why."""
Audit = Callable[[Row, int, int], Record]


class ToolEndedError(DpAuditError):
    """A tool is gone, and cannot be asked for further cells."""


def own(tool: Tool, row: Row, runs: int, seed: int) -> Record:
    """One audit by dpaudit: bound, verdict and processor time, in which the runs are drawn too."""
    entry, before = row.entry, _used()
    known = {"score": None if tool.setting == "learned" else entry.score}
    known |= {"curve": entry.curve if tool.setting == "curve" else None}
    claim = {"epsilon": entry.claim.epsilon, "delta": entry.claim.delta, "confidence": CONFIDENCE}
    how = {"runs": runs, "seed": seed, "timeout": None}
    record = audit_release(entry.release, entry.pair, **claim, **known, **how)
    bound = record.epsilon_lower or 0.0
    return {"bound": bound, "rejected": record.refuted, "seconds": _used() - before}


def _used() -> float:
    """Processor time of this process and of its children."""
    return time.process_time() + sum(os.times()[2:4])


@contextlib.contextmanager
def auditor(tool: Tool) -> Iterator[Audit]:
    """What makes one audit: of a row, with so many runs a side, by a seed."""
    if not tool.adapter:
        own(tool, ROWS[0], RUNS[0], 0)  # takes what is loaded once
        yield partial(own, tool)
        return
    adapter, tape = HERE / "adapters" / f"{tool.adapter}.py", PLACE / f"{os.getpid()}.npz"
    command = [tool.python(), HERE / "worker.py", adapter, tool.source]
    with (PLACE / "tools.log").open("a") as log:
        worker = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=log, text=True)

    def audit(row: Row, runs: int, seed: int) -> Record:
        row.draw(runs, seed, tape)
        claim = row.entry.claim
        task = {"file": str(tape), "seed": seed, "epsilon": claim.epsilon, "delta": claim.delta}
        task |= {"confidence": CONFIDENCE, "setting": tool.setting, "gaussian": row.gaussian}
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(json.dumps(task) + "\n")
            worker.stdin.flush()
        answer = worker.stdout.readline()
        if not answer:
            raise ToolEndedError(f"{tool.name} ended by itself; {PLACE / 'tools.log'} says why.")
        return json.loads(answer)

    try:
        yield audit
    finally:
        worker.communicate()
        tape.unlink(missing_ok=True)


def measure(table: ResultTable, *, runs: Sequence[int] = RUNS, only: str = "") -> None:
    """Audit what is missing.

    Args:
        table: of the cells.
        runs: numbers of runs on each side.
        only: tools whose name contains this text.
    """
    for tool in (each for each in TOOLS if only in each.name):
        cells = [each for each in CELLS.values() if each.tool is tool and each.runs in runs]
        missing = [each.name for each in cells if wanted(table.known(each.name), each.row)]
        if not missing:
            continue
        failed = table.load().get(FAILED, {})
        try:
            with auditor(tool) as audit:
                if failed.pop(tool.name, None) is not None:
                    table.keep(FAILED, failed)
                table.measure(partial(audited, audit), missing)
        except DpAuditError as error:
            table.keep(FAILED, failed | {tool.name: str(error)})


def wanted(cell: Record, row: Row) -> bool:
    """Whether a cell is to have a further audit."""
    done, used = len(cell.get("seconds", ())), sum(cell.get("seconds", ()))
    most = SEEDS_RIGHT if row.entry.right else SEEDS
    return "error" not in cell and (done < LEAST or (done < most and used < ENOUGH))


def audited(audit: Audit, cell: Cell, known: Record) -> Record:
    """All audits of one cell, by seeds from 0 on, beginning where the known ones end."""
    found = {"bounds": [], "refuted": 0, "seconds": []} | known
    while wanted(found, cell.row):
        answer = audit(cell.row, cell.runs, len(found["seconds"]))
        if "error" in answer:
            return answer
        found["bounds"] = [*found["bounds"], rounded_down(answer["bound"])]
        found["refuted"] += answer["rejected"]
        found["seconds"] = [*found["seconds"], float(f"{answer['seconds']:.3g}")]
    return found


def rounded_down(bound: float | str | None) -> float | str | None:
    """A bound to four decimals, never above it; an infinite one as a word, for JSON."""
    if bound is None or math.isinf(float(bound)):
        return None if bound is None else "infinity"
    return math.floor(float(bound) * 1e4) / 1e4
