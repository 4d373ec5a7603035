"""One audit on 1 process, on 2 workers and on a dask cluster of 2: the same record, and how fast.

Run ``python -m tests.benchmarks.scale [--runs 10000000]`` on an idle machine with two cores.
Printed first: the efficiency of two processes that share nothing, the most that the machine gives.
Then for each place: clock seconds beside those of one process, and the efficiency, which is their
quotient by the number of processes. Exit 1 if a record differs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpaudit import AuditPair
from dpaudit.auditing import BlackBox, audit_release
from dpaudit.auditing.execution import ONE_THREAD

PORT = 18_786
BY = 2


def noisy(data: Any, rng: Any) -> Any:
    """One run at a time, as most code is written."""
    return data + rng.laplace()


def noisy_batch(data: Any, rng: Any, size: int) -> Any:
    """Many runs in one call."""
    return data + rng.laplace(size=size)


def seconds_of(runs: int) -> float:
    """Clock seconds of single runs, and of nothing else."""
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    for _ in range(runs):
        noisy(0.0, rng)
    return time.perf_counter() - start


def machine(runs: int) -> float:
    """The efficiency of two processes that share nothing but the machine."""
    alone = seconds_of(runs)
    with multiprocessing.get_context("spawn").Pool(BY) as processes:
        return alone / max(processes.map(seconds_of, [runs] * BY, chunksize=1))


@contextmanager
def cluster() -> Iterator[str]:
    """A scheduler and two workers in processes of their own."""
    address = f"tcp://127.0.0.1:{PORT}"
    here = ("--host", "127.0.0.1", "--no-dashboard")
    dask = [sys.executable, "-m", "dask"]
    environment = os.environ | ONE_THREAD
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "env": environment}
    started = [subprocess.Popen([*dask, "scheduler", *here, "--port", str(PORT)], **quiet)]
    try:
        for _ in range(BY):
            each = [*dask, "worker", address, "--nthreads", "1", "--no-dashboard"]
            started.append(subprocess.Popen(each, **quiet))
        from distributed import Client

        with Client(address, timeout=60) as client:
            client.wait_for_workers(BY, timeout=60)
        yield address
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def audited(code: Any, runs: int, **where: Any) -> tuple[float, dict[str, Any]]:
    """Clock seconds, and the record."""
    start = time.perf_counter()
    record = audit_release(
        BlackBox(code), AuditPair(0.0, 1.0), epsilon=1.0, runs=runs, seed=1, timeout=None, **where
    )
    return time.perf_counter() - start, record.to_dict()


def main() -> int:
    """Print one line for each code and place."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000_000)
    runs, same = parser.parse_args().runs, True
    print(f"two processes that share nothing: efficiency {machine(runs):.2f}", flush=True)
    with cluster() as address:
        for name, code in (("single runs", noisy), ("batches", noisy_batch)):
            alone, record = audited(code, runs)
            print(f"{name}: {runs} runs a side in one process", flush=True)
            for place, where in (("2 workers", {"workers": BY}), ("dask", {"dask": address})):
                seconds, other = audited(code, runs, **where)
                same = same and other == record
                shown = "the same record" if other == record else "ANOTHER RECORD"
                print(
                    f"  {place:10} {seconds / alone:.3f} of its time, efficiency "
                    f"{alone / seconds / BY:.2f}, {shown}",
                    flush=True,
                )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
