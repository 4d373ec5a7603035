"""A release beside the same rule written by hand in DuckDB's SQL: seconds, memory, and growth.

Run ``python -m tests.benchmarks.tables [--rows 100000 1000000 10000000] [--pairs 3]``. A table has
ten rows a unit on average, 100 keys and amounts; counts and sums by key are of at most five rows of
a unit, which a keyed SHA-256 of the row chooses. By hand it is one query, with as much memory as it
wants, and with the shortest ties: nothing of it is staged, no other group is made, no value is
clipped, and nothing is said of what the bound cut. Each run has a process of its own; that without
bounds says what reading the file takes. Medians of pairs that run one after the other; processor
seconds stand beside those of the clock, which other work on the machine moves. Exit 1 if a sum of
ours differs from that by hand, or a goal is missed: 1.5 times its time, and 1 GB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any

from dpaudit.tables.release_file import read_release

SLOWER, MEMORY = 1.5, 1000
SECRET = bytes(range(32))
MOST_BY_HAND = 10**7
"""Rows beyond which one query wants more memory than most machines have."""
ROWS, KEYS, PER_UNIT, MOST = 5, 100, 10, 1000
NAMES = [f"k{number}" for number in range(KEYS)]


def make(path: Path, rows: int) -> None:
    """The table, of rows that follow from their numbers."""
    import duckdb

    unit = f"'u' || hash(i) % {rows // PER_UNIT}"
    amount = f"(hash(3 * i + 7) % {MOST * 100} / 100.0)::DECIMAL(10, 2)"
    table = f"SELECT {unit} AS unit, 'k' || hash(i + 1) % {KEYS} AS key, {amount} AS amount"
    duckdb.connect().execute(f"COPY ({table} FROM range({rows}) t(i)) TO '{path}' (HEADER)")


def declared(source: str) -> str:
    """The text of a release file."""
    return f"""
[data]
source = "{source}"
unit = "unit"
columns.key = {{ type = "text", values = {json.dumps(NAMES)} }}
columns.amount = {{ type = "number", range = [0, {MOST}], step = 0.01 }}

[privacy]
relation = "add-remove"
claim = {{ epsilon = 1 }}
rows_per_unit = {ROWS}

[[query]]
name = "count"
count = true
by = "key"

[[query]]
name = "sum"
sum = "amount"
by = "key"
"""


def ours(path: Path) -> list[Any]:
    """By a release file."""
    release = read_release(tomllib.loads(declared(path.name)), path.parent)
    from dpaudit.tables.engines.duck import measured

    found = measured(release.source, release.layout, release.measures, SECRET).integers
    counts, sums = (found[name][:KEYS, 0].tolist() for name in ("count", "sum"))
    return sorted([name, *each] for name, *each in zip(NAMES, counts, sums, strict=True))


def by_hand(path: Path, *, bounded: bool = True) -> list[Any]:
    """By one query; the hash is of the same bytes."""
    import duckdb

    columns = "{unit: 'VARCHAR', key: 'VARCHAR', amount: 'DOUBLE'}"
    read = f"read_csv('{path}', columns = {columns}, header = true, auto_detect = false)"
    rows = f"SELECT unit, key, round(amount * 100)::BIGINT AS cents FROM {read}"
    if bounded:
        row = "strlen(unit), ':', unit, 't', strlen(key), ':', key, 'i', cents, ';'"
        order = f"PARTITION BY unit ORDER BY left(sha256(concat('{SECRET.hex()}', {row})), 12)"
        rows += f" QUALIFY row_number() OVER ({order}) <= {ROWS}"
    totals = f"SELECT key, count(*), sum(cents) FROM ({rows}) GROUP BY key ORDER BY key"
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    answer = connection.execute(totals).fetchall()
    return [[key, int(count), int(total)] for key, count, total in answer]


WAYS = {
    "ours": ours,
    "by hand": by_hand,
    "no bounds": lambda path: by_hand(path, bounded=False),
}


def timed(way: str, path: Path) -> dict[str, Any]:
    """Seconds and peak memory of a way, in this process."""
    start, used = time.perf_counter(), time.process_time()
    found = WAYS[way](path)
    return {
        "clock": time.perf_counter() - start,
        "processor": time.process_time() - used,
        "memory": getrusage(RUSAGE_SELF).ru_maxrss / 1024,
        "found": found,
    }


def in_process(way: str, path: Path) -> dict[str, Any]:
    """The same in a process of its own."""
    code = (
        "import json; from pathlib import Path; from tests.benchmarks.tables import timed; "
        f"print(json.dumps(timed({way!r}, Path({str(path)!r}))))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Print a line for each size and way."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--pairs", type=int, default=3)
    given, good = parser.parse_args(), True
    print(f"{'rows':>10}  {'way':10}{'clock s':>9}{'CPU s':>8}{'MiB':>7}{'of by hand':>12}")
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            make(path, rows)
            ways = [way for way in WAYS if way != "by hand" or rows <= MOST_BY_HAND]
            runs = [{way: in_process(way, path) for way in ways} for _ in range(given.pairs)]
        for way in ways:
            mid = {
                fact: median(run[way][fact] for run in runs)
                for fact in ("clock", "processor", "memory")
            }
            line = f"{mid['clock']:>9.2f}{mid['processor']:>8.2f}{mid['memory']:>7.0f}"
            if "by hand" in ways:
                ratio = median(run[way]["clock"] / run["by hand"]["clock"] for run in runs)
                line += f"{ratio:>12.2f}"
                good = good and (way != "ours" or ratio <= SLOWER or rows < MOST_BY_HAND)
            print(f"{rows:>10}  {way:10}{line}", flush=True)
            good = good and (way != "ours" or mid["memory"] <= MEMORY)
        if any(run.get("by hand", run["ours"])["found"] != run["ours"]["found"] for run in runs):
            print(f"{rows:>10}  ANOTHER RESULT THAN BY HAND", flush=True)
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
