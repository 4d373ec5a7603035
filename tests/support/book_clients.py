"""Clients of a book in processes of their own, which may be killed."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpaudit import Plan
from dpaudit.base.errors import BudgetExceededError, InputError
from dpaudit.book import Book

FORK = multiprocessing.get_context("fork")


def start(work: Callable[..., None], *given: Any) -> Any:
    process = FORK.Process(target=work, args=given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that the tests may have threads
        process.start()
    return process


def reserve_many(
    url: str,
    plan: Plan,
    name: str,
    times: int,
    threads: int,
    told: Path,
    patient: bool = False,
) -> None:
    """Ask so often in each of some threads; tell each answer when it is there.

    A line of the file is a request, and whether it was admitted (1) or refused (0). Who is patient
    asks again where there was no answer; another one ends.
    """
    book = Book(url)
    answers = os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def client(thread: int) -> None:
        for number in range(times):
            request = f"{name}-{thread}-{number}"
            admitted = _answered(book, plan, request, patient)
            os.write(answers, f"{request} {admitted:d}\n".encode())

    own = [threading.Thread(target=client, args=(n,)) for n in range(threads)]
    for each in own:
        each.start()
    for each in own:
        each.join()


def _answered(book: Book, plan: Plan, request: str, patient: bool) -> bool:
    while True:
        try:
            book.reserve("visits", plan, by=request[:1], purpose="a test", request=request)
            return True
        except BudgetExceededError:
            return False
        except InputError as error:  # the server is gone for a moment
            if not patient or "does not answer" not in str(error):
                raise
            time.sleep(0.02)


def told_in(folder: Path) -> dict[str, bool]:
    """The requests that had an answer, and whether they were admitted; half a line is none."""
    lines = [
        line
        for path in folder.glob("*.told")
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    return {line.split()[0]: line.split()[1] == "1" for line in lines}
