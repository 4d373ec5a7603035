"""What all tests share: asserts that show their values, and signals that arrive."""

import gc
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from dpaudit.auditing.distinguishing import experiment
from dpaudit.auditing.distinguishing.outcome import PILOTS
from dpaudit.certificate import Finding
from dpaudit.rehearsal.models import model_findings

pytest.register_assert_rewrite(
    *(path.stem for path in (Path(__file__).parent / "support").glob("*.py"))
)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes that the test starts end on SIGINT, even where the tests themselves ignore it.

    A shell without job control lets what it runs in the background ignore the signal, and that is
    handed down.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def few_children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are drawn in the process of the test, which gives the same in a third of the time.

    Tests of the processes have the mark ``processes``.
    """
    if request.node.get_closest_marker("processes") is None:
        monkeypatch.setattr(experiment, "CHILDREN", 0)


@pytest.fixture(autouse=True, scope="session")
def one_command_line() -> Iterator[None]:
    """What typer makes of the commands is made once: it takes nine tenths of a short command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


def pytest_configure() -> None:
    """Imports of a thousand modules are not searched for garbage again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on it is: what is frozen would be hidden from audits, which look for generators."""
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def brief() -> Iterator[None]:
    """Rehearsals and audits leave out what takes most of their time, and has tests of its own.

    A model is compared with its fewest real runs, not with all that two seconds allow, and what an
    audit would have found is told from one pilot. Tests of these have the mark ``unabridged``.
    """
    with pytest.MonkeyPatch.context() as patch:

        def compared(*given: Any) -> list[Finding]:
            with patch.context() as within:
                within.setattr("dpaudit.rehearsal.models.MODEL_SECONDS", 0.0)
                return model_findings(*given)

        patch.setattr("dpaudit.rehearsal.rehearse.model_findings", compared)
        patch.setattr("dpaudit.auditing.distinguishing.outcome.PILOTS", 1)
        yield


@pytest.fixture(autouse=True)
def unabridged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it for tests with that mark."""
    if request.node.get_closest_marker("unabridged") is not None:
        monkeypatch.setattr("dpaudit.auditing.distinguishing.outcome.PILOTS", PILOTS)
        monkeypatch.setattr("dpaudit.rehearsal.rehearse.model_findings", model_findings)
