"""A release beside other libraries: seconds and memory of counts and sums by 100 keys.

Run ``python -m tests.benchmarks.tables_peers [--rows 100000 1000000] [--peers opendp tumult …]``.
The table is that of :mod:`tests.benchmarks.tables`; ``peers.py`` has how each library answers, and
``peers.toml`` from what it is installed, into an environment of its own under ``build/peers``. What
cannot be installed is one line. ``dpaudit release`` is the whole command, with certificate, ledger
and report; ``dpaudit`` is the numbers alone, from Python, as those of the others are.

A run has processes of its own. *Whole* is from its start to its end, and *work* what comes after
the imports; memory is the most that all its processes held together. Medians of rounds, in which
everybody runs once; ratios are medians of those within a round: of whole to ``dpaudit release``, of
work to ``dpaudit``. *Counted* says how many of all rows count, about half where units are bounded.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.tables import declared, make

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / "build" / "peers"
PEERS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "peers.toml").read_text("utf-8"))
OWN, COMMAND = "dpaudit", "dpaudit release"
LONGEST = 180
"""Seconds after which a run is ended, and its library left out of larger tables."""


class CannotRunError(Exception):
    """Why a library does not run here, in one line."""


# -- environments --------------------------------------------------------------------------------


def environment(requires: Sequence[str]) -> Path:
    """The Python of an environment with these packages, which is made if there is none yet."""
    key = hashlib.sha256("\n".join(requires).encode()).hexdigest()[:12]
    folder, python = ENVIRONMENTS / key, ENVIRONMENTS / key / "bin" / "python"
    done = folder / "installed"
    if done.exists():
        return python
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    made = [uv, "venv", "--clear"] if uv else [sys.executable, "-m", "venv", "--clear"]
    pip = [uv, "pip", "install", "--python"] if uv else []
    call([*made, str(folder)])
    call([*pip, str(python), *([] if uv else ["-m", "pip", "install"]), *requires])
    done.write_text("\n".join(requires), encoding="utf-8")
    return python


def call(command: Sequence[str]) -> None:
    """Run a command in silence.

    Raises:
        CannotRunError: with the last line that it printed.
    """
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRunError(f"{type(error).__name__} in {command[0]}") from None
    if done.returncode:
        raise CannotRunError(last_line(done.stderr))


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:160]


# -- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What one run took: seconds, MiB, and the share of all rows that count."""

    whole: float
    work: float | None
    memory: float
    counted: float | None


def run(command: Sequence[str], rows: int, folder: Path, variables: dict[str, str]) -> Run:
    """Run what prints its seconds and sums last, in a session of its own.

    Raises:
        CannotRunError: if it fails, or takes too long.
    """
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        start, most = time.perf_counter(), 0.0
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=err,
            cwd=folder,
            env=os.environ | variables,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                most = max(most, sum(held for _, held in members(process.pid)))
                if time.perf_counter() - start > LONGEST:
                    raise CannotRunError(f"more than {LONGEST} s")
                time.sleep(0.01)
            whole = time.perf_counter() - start
        finally:
            for left, _ in members(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            process.wait()
        out.seek(0)
        err.seek(0)
        said = out.read()
        if process.returncode:
            raise CannotRunError(last_line(err.read()))
    try:
        found = json.loads(last_line(said))
    except ValueError:
        return Run(whole, None, most, None)
    return Run(whole, found["work"], most, found["count"] / rows)


def members(session: int) -> Iterator[tuple[int, float]]:
    """Each process of a session, and the MiB that it holds."""
    page = os.sysconf("SC_PAGE_SIZE") / 2**20
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            facts = path.read_text().rpartition(")")[2].split()
            if int(facts[3]) == session:
                yield int(path.parent.name), int(facts[21]) * page


Way = Callable[[Path, int], Run]


def way(name: str) -> Way:
    """How somebody answers over the table of a folder.

    Raises:
        CannotRunError: if it cannot be installed.
    """
    here = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    if name == COMMAND:
        made = [sys.executable, "-m", "dpaudit", "release", "table.toml", "-o"]
        return lambda folder, rows: run([*made, tempfile.mkdtemp(dir=folder)], rows, folder, here)
    answer = ["-P", str(HERE / "peers.py"), name, "table.csv"]
    if name == OWN:
        return lambda folder, rows: run([sys.executable, *answer], rows, folder, here)
    peer = PEERS[name]
    if peer.get("java") and shutil.which("java") is None:
        raise CannotRunError("needs Java, as of apt-get install default-jre-headless")
    python = str(environment(peer["requires"]))
    there = {"PYTHONPATH": "", "PYSPARK_PYTHON": python}
    return lambda folder, rows: run([python, *answer], rows, folder, there)


# -- the table -----------------------------------------------------------------------------------


def line(name: str, runs: Sequence[Run], whole: Sequence[Run], work: Sequence[Run]) -> str:
    """Medians of somebody's runs, and ratios to our own."""
    times = [each.work for each in runs if each.work is not None]
    counted = [each.counted for each in runs if each.counted is not None]
    slower = median(a.whole / b.whole for a, b in zip(runs, whole, strict=True))
    shown = f"{PEERS.get(name, {'name': name})['name']:20}{median(r.whole for r in runs):9.2f}"
    shown += f"{median(times):9.2f}" if times else f"{'–':>9}"
    shown += f"{median(r.memory for r in runs):8.0f}{slower:9.2f}"
    if times:
        ratios = [a.work / b.work for a, b in zip(runs, work, strict=True) if a.work and b.work]
        shown += f"{median(ratios):9.2f}{median(counted):10.1%}"
    return shown


def main() -> int:
    """Print a line for each size and way."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6])
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    ways: dict[str, Way] = {}
    for name in (COMMAND, OWN, *given.peers):
        try:
            ways[name] = way(name)
        except CannotRunError as error:
            print(f"{PEERS[name]['name']} cannot be installed: {error}", flush=True)
    for rows in given.rows:
        load = os.getloadavg()[0]
        print(f"{rows} rows, {rows // 10} units; load {load:.1f} of {os.cpu_count()} processors")
        heads = ("whole s", "work s", "MiB", "× whole", "× work", "counted")
        print(
            f"{'':20}"
            + "".join(f"{h:>{w}}" for h, w in zip(heads, (9, 9, 8, 9, 9, 10), strict=True))
        )
        compare(ways, rows, given.rounds)
    return 0


def compare(ways: dict[str, Way], rows: int, rounds: int) -> None:
    """Let everybody run over one table; who fails is dropped from ``ways``."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make(folder / "table.csv", rows)
        (folder / "table.toml").write_text(declared("table.csv"), encoding="utf-8")
        runs: dict[str, list[Run]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name in list(ways):
                try:
                    runs[name].append(ways[name](folder, rows))
                except CannotRunError as error:
                    if name in (COMMAND, OWN):
                        raise
                    print(f"{PEERS.get(name, {'name': name})['name']:20} {error}", flush=True)
                    del ways[name], runs[name]
    for name, own_runs in runs.items():
        print(line(name, own_runs, runs[COMMAND], runs[OWN]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
