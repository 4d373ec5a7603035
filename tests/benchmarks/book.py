"""The book under load: python -m tests.benchmarks.book [--full] [--only PART].

Clients in processes reserve until long after the budget is used up; clients and servers are killed
at any time; a book of many releases is read. Short by default, --full for the figures of a report.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import postgres
from book_clients import reserve_many, start, told_in
from booking import ask, filled, gaussian
from sqlalchemy import text
from web_client import serving

from dpaudit import FloatNoise, Ledger
from dpaudit.accounting import ZcdpFilter
from dpaudit.base.errors import BudgetExceededError
from dpaudit.book import (
    Book,
    BudgetRecord,
    add_people,
    booking,
    charge_people,
    issue,
    limit_of,
    people_of,
    remaining_budgets,
    verify_book,
)


def synced(folder: Path, seconds: float = 1.0) -> float:
    """How many small writes a second the disk syncs, one after the other."""
    path = folder / "synced"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    until, done = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        os.write(descriptor, b"x" * 1024)
        os.fdatasync(descriptor)
        done += 1
    os.close(descriptor)
    path.unlink()
    return done / seconds


def crowd(url: str, folder: Path, processes: int, threads: int, asked: int, admits: int) -> None:
    """Far more requests than the budget admits, by many clients at once."""
    epsilon, delta = 1.0, 1e-6
    sigma = (admits / (2 * ZcdpFilter(epsilon, delta).rho)) ** 0.5 * (1 + 1e-9)
    plan = gaussian(sigma)
    budget, due = ZcdpFilter(epsilon, delta), 0
    try:
        while True:
            budget.admit(plan.invocations[0])
            due += 1
    except BudgetExceededError:
        pass
    book = filled(Book.create(url, by="officer"), kind="zcdp", epsilon=epsilon, delta=delta)
    times = asked // (processes * threads)
    begun = time.perf_counter()
    working = [
        start(reserve_many, url, plan, f"{n}", times, threads, folder / f"{n}.told")
        for n in range(processes)
    ]
    for process in working:
        process.join()
    took = time.perf_counter() - begun
    told = told_in(folder)
    admitted, held = sum(told.values()), sum(1 for _ in book.releases())
    facts = verify_book(book)
    print(
        f"  {processes} processes × {threads} threads: {len(told)} requests in {took:.1f} s "
        f"({len(told) / took:.0f}/s); the filter admits {due}, the book {admitted} "
        f"({held} held, {max(0, held - due)} over), {facts['refused']} refused; chain intact"
    )
    for path in folder.glob("*.told"):
        path.unlink()


def alone(url: str, folder: Path, times: int) -> None:
    """One client, one charge after the other, beside what the disk can sync."""
    book = filled(Book.create(url, by="officer"), rho=1e5)  # or the one that is there
    plan = gaussian()
    ask(book, plan)
    begun = time.perf_counter()
    for _ in range(times):
        ask(book, plan)
    rate, disk = times / (time.perf_counter() - begun), synced(folder)
    print(f"  one at a time: {rate:.0f}/s; the disk syncs {disk:.0f}/s, so {rate / disk:.2f} of it")


def killed(url: str, folder: Path, kills: int, server: postgres.Server | None) -> None:
    """Kill clients, and every tenth time the server; compare answers and book after each."""
    book = filled(Book.create(url, by="officer"), rho=1e5)
    rng, plan, servers = random.Random(1), gaussian(), 0
    for turn in range(kills):
        told = folder / f"{turn}.told"
        process = start(reserve_many, url, plan, f"{turn}", 10**6, 4, told, True)
        while not told.exists():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.05))
        if server is not None and turn % 10 == 9:
            server.kill()
            servers += 1
            server.start()
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    held = [each.request for each in book.releases()]
    told = told_in(folder)
    lost = set(told) - set(held)
    facts = verify_book(book)
    print(
        f"  {kills} kills of clients, {servers} of the server: {len(told)} answers, "
        f"{len(held)} releases, {len(lost)} lost, {len(held) - len(set(held))} double; "
        f"chain of {facts['lines']} lines intact"
    )
    for path in folder.glob("*.told"):
        path.unlink()


def long(url: str, folder: Path, releases: int) -> None:
    """A book of many releases: is a charge, a look and an export still quick?"""
    book = filled(Book.create(url, by="officer"), rho=1e5)
    book.add(BudgetRecord("r", "visits", limit_of({"rho": 1e5}), "30 days"), by="officer")
    working = [
        start(reserve_many, url, gaussian(), f"{n}", releases // 8, 4, folder / f"{n}.told")
        for n in range(2)
    ]
    for process in working:
        process.join()
    plan = gaussian(3.0, count=10)
    reserved = ask(book, plan)
    with Ledger(
        plan,
        noise=FloatNoise(),
        journal=folder / f"{time.monotonic_ns()}",
        budget=reserved,
        anchor=reserved,
    ) as ledger:
        for _ in range(10):
            ledger.release(plan.invocations[0].mechanism, 0.5)
    for path in folder.glob("*.told"):
        path.unlink()
    alone(url, folder, 500)
    timed = {
        "status": lambda: remaining_budgets(book),
        "export .csv": lambda: booking.export(book, folder / "a.csv"),
        "export .json": lambda: booking.export(book, folder / "a.json"),
        "export .registry.yaml": lambda: booking.export(book, folder / "a.registry.yaml"),
        "verify": lambda: verify_book(book),
    }
    for name, work in timed.items():
        begun = time.perf_counter()
        work()
        print(f"  {releases} releases, {name}: {time.perf_counter() - begun:.3f} s")
    paged(book, releases)


def paged(book: Book, releases: int) -> None:
    """How long the pages of the server take, to a browser on this machine; the second time too."""
    token = issue(book, "vic", "viewer", by="officer")
    with serving(book) as server:
        begun = time.perf_counter()
        server.sign_in(token)
        print(f"  {releases} releases, first page: {time.perf_counter() - begun:.3f} s")
        for path in (
            *("/", "/releases", "/releases?q=test", "/releases?q=nothing", "/public"),
            *("/report.html?first=2020-01-01&last=2099-01-01", "/export/csv", "/export/json"),
            "/export/registry.yaml",
        ):
            begun = time.perf_counter()
            assert server.get(path).status == 200
            print(f"  {releases} releases, {path}: {time.perf_counter() - begun:.3f} s")


def individuals(url: str, folder: Path, people: int, charges: int) -> None:
    """Budgets of very many people: calls of 100 000 of them, drawn at random, until all is done."""
    book = filled(Book.create(url, by="officer"), rho=9.0)
    key, call, rng = bytes(range(32)), min(100_000, people), random.Random(1)
    add_people(book, "each", "visits", limit_of({"rho": 0.9}), key=key, by="officer")
    plan, took, left_out = gaussian(2.0), [], 0
    for _ in range(charges // call):
        first, step = rng.randrange(people), rng.choice([1, 3, 7, 9])
        names = (f"user {(first + step * n) % people}" for n in range(call))
        admitted = 0

        def take(some: list[str]) -> None:
            nonlocal admitted
            admitted += len(some)

        begun = time.perf_counter()
        charge_people(book, "each", plan, names, take, key=key, by="ann", purpose="a test")
        took.append(time.perf_counter() - begun)
        left_out += call - admitted
    (known,) = people_of(book)
    table = f"person_{known.table}"
    with book.reading() as connection:
        rows, most = connection.execute(text(f"SELECT COUNT(*), MAX(s0) FROM {table}")).one()
        whole = f"SELECT SUM(pg_total_relation_size(relid)) FROM pg_partition_tree('{table}')"
        size = 0 if book.store.is_file else connection.execute(text(whole)).scalar_one()
    size = size or (folder / Path(url).name).stat().st_size
    begun = time.perf_counter()
    verify_book(book)
    print(
        f"  {rows} people, {len(took)} calls of {call}: {sorted(took)[len(took) // 2]:.2f} s each "
        f"(the longest {', '.join(f'{one:.2f}' for one in sorted(took)[-3:])}), "
        f"{sum(took):.0f} s in all; "
        f"{size / rows:.0f} bytes each; {left_out} left out, nobody "
        f"above the limit: {most <= 10**12}; verify {time.perf_counter() - begun:.2f} s; peak "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB in Python"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", choices=["crowd", "alone", "killed", "long", "people"])
    parser.add_argument("--people", action="store_true", help="10^6 people and 10^7 charges")
    given = parser.parse_args()
    if given.people:
        given.full, given.only = True, "people"
    size = 1 if given.full else 10
    with tempfile.TemporaryDirectory() as made, postgres.server() as server:
        folder = Path(made)
        for name, url in (
            ("PostgreSQL", server.database),
            ("SQLite", lambda: str(folder / f"{time.monotonic_ns()}.db")),
        ):
            print(name)
            known = server if name == "PostgreSQL" else None
            if given.only in (None, "crowd"):
                crowd(url(), folder, 8, 4, 20_000 // size, 5_000 // size)
            if given.only in (None, "alone"):
                alone(url(), folder, 2_000 // size)
            if given.only in (None, "killed"):
                killed(url(), folder, 500 // size, known)
            if given.only in (None, "long"):
                long(url(), folder, 100_000 // size)
            if given.only in (None, "people"):
                individuals(url(), folder, 1_000_000 // size, 10_000_000 // size**2)


if __name__ == "__main__":
    main()
