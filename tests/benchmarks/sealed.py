"""What a seal costs, and what the time of an answer tells.

Run ``python -m tests.benchmarks.sealed [--rows 20000] [--times 3] [--units 2000]``; each number is
computed in this run, the smallest of some times. Compared are a sealed run, the same code on the
same operations in one process, and a subject of the same counts that holds rows and is rehearsed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.project.targets import Target, find_target
from dpaudit.sealed.workers import Call, Job, Workers
from dpaudit.workflow.running import RunOptions, run_subject, run_target
from dpaudit.workflow.sealing import boot, sealed_run

WORK = Path(__file__).with_name("sealed_work.py")
ROOT = Path(__file__).parents[2]
SHOPS = ("bakery", "book shop", "chemist")
PROCESSES = {
    "python -I": "pass",
    "numpy": "import numpy",
    "custodian": "import dpaudit.sealed.custodian",
    "analyst": "import dpaudit.project.sealed_code",
}


def write_table(path: Path, rows: int, heavy: int = 0) -> None:
    """Rows of three for each person; one person has more."""
    rng = np.random.default_rng(0)
    ages, shops = rng.integers(20, 80, rows), rng.integers(3, size=rows)
    lines = [f"person {n // 3},{SHOPS[shops[n]]},{ages[n]}" for n in range(rows)]
    lines += ["the one,bakery,50"] * heavy
    path.write_text("\n".join(["person,shop,age", *lines]), encoding="utf-8")


def smallest(times: int, work: Callable[[Path], Any]) -> float:
    """Seconds, with a fresh folder each time."""
    taken = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            work(Path(folder) / "out")
            taken.append(time.perf_counter() - start)
    return min(taken)


def ratios(times: int) -> None:
    """Sealed, unsealed, and on rows: each as a process of its own, as a user waits for it."""
    sealed, unsealed, rows = (
        smallest(times, lambda out, code=code: in_a_process(code, out))
        for code in (
            "run_subject('sealed_work.py:OnHandles', (), None, 1, out)",
            "run_target(find_target('sealed_work.py:OnHandles', {}), '', out, RunOptions(seed=1))",
            "run_subject('sealed_work.py:OnRows', (), None, 1, out)",
        )
    )
    over = sealed - 1.5 * unsealed
    print(f"sealed run         {sealed:.3f} s")
    print(f"unsealed           {unsealed:.3f} s; sealed = 1.5 × unsealed {over:+.3f} s")
    warm = smallest(times, lambda out: run_target(opened(), "", out, RunOptions(seed=1)))
    print(f"unsealed, with all libraries loaded {warm:.3f} s")
    print(f"rows, rehearsed    {rows:.3f} s; sealed = {sealed / rows:.2f} × rows")


def opened() -> Target:
    """The subject on the same operations, in this process."""
    return find_target("sealed_work.py:OnHandles", {})


def in_a_process(code: str, out: Path) -> None:
    """Run it as a command would."""
    names = "from pathlib import Path; from dpaudit.project.targets import find_target; "
    names += "from dpaudit.workflow.running import RunOptions, run_subject, run_target; "
    words = [sys.executable, "-c", f"{names} out = Path({str(out)!r}); {code}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(words, check=True, env=environment, capture_output=True)


def processes(times: int) -> None:
    """What starting costs."""
    for name, code in PROCESSES.items():
        path = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"
        words = [sys.executable, "-I", "-c", path]
        taken = smallest(times, lambda out, words=words: subprocess.run(words, check=True))
        print(f"{name:18} {1e3 * taken:.0f} ms to start")
    taken = smallest(times, lambda out: started())
    print(f"{'both':18} {1e3 * taken:.0f} ms until the plan is known")


def started() -> None:
    """A sealed process, up to its plan."""
    with sealed_run("sealed_work.py:OnHandles", {}, [], print):
        pass


def answers(rows: int, heavy: int = 0) -> dict[str, float]:
    """Microseconds of answers over a table of so many rows: sealed code has no clock itself."""
    write_table(Path("asked.csv"), rows, heavy)

    def seconds(name: str, times: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            settings = ("file=asked.csv", f"asked={name}", f"times={times}")
            run_subject("sealed_work.py:Questions", settings, None, 1, Path(folder) / "out")
            return time.perf_counter() - start

    few, many = 20, 520
    return {
        name: 1e6 * (min(seconds(name, many) for _ in range(2)) - seconds(name, few)) / (many - few)
        for name in ("nothing", "a filter", "a count")
    }


FUNCTIONS = {
    "bare": "def mean(records, rng): return sum(records['age']) / len(records['age'])",
    "numpy": "import numpy as np\ndef mean(records, rng): return float(np.mean(records['age']))",
}


def functions(units: int) -> None:
    """What the process of a unit costs, with and without numpy in it."""
    job = Job({"shop": ["bakery"] * 3, "age": [30, 40, 50]}, "5" * 64)
    for name, code in FUNCTIONS.items():
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            file = Path(folder) / "functions.py"
            file.write_text(code, encoding="utf-8")
            words = [sys.executable, "-IB", "-c", boot("dpaudit.sealed.template")]
            workers = Workers(
                words, {"functions": [str(file)], "paths": [folder], "packages": []}, stack
            )
            workers.seal([])
            call = Call(str(file), "mean", {}, 1)
            before, start = spent(), time.perf_counter()
            assert {each["value"] for each in workers.run(call, [job] * units)} == {40}
            taken = time.perf_counter() - start
            own, worker = ((b - a) / units * 1e3 for a, b in zip(before, spent(), strict=True))
            print(
                f"units, {name:11} {units / taken:.0f} a second; processor time of each "
                f"{own:.2f} ms in the custodian, {worker:.2f} ms in its process"
            )


def spent() -> tuple[float, float]:
    """Processor seconds of this process, and of those that it has waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    own, others = (sum(resource.getrusage(kind)[:2]) for kind in kinds)
    return own, others


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """This process, and what it starts, on one processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def main(rows: int, times: int, units: int) -> None:
    """Print all of it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copy(WORK, folder)
        write_table(Path("visits.csv"), rows)
        print(f"{os.cpu_count()} processors, {rows} rows")
        processes(times)
        ratios(times)
        functions(units)
        free = answers(1_000)
        with pinned():
            bound = answers(1_000)
        for name in free:
            print(f"asking {name:11} {free[name]:.0f} µs, pinned {bound[name]:.0f} µs")
        print("what time tells: a count, with all rows and with one person's 1000 more")
        for size in (1_000, 10_000, 100_000):
            alone, beside = answers(size)["a count"], answers(size, 1_000)["a count"]
            print(f"{size:>7} rows      {alone:.0f} µs, {beside:.0f} µs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--units", type=int, default=2_000)
    arguments = parser.parse_args()
    main(arguments.rows, arguments.times, arguments.units)
