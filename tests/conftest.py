"""What all tests share: asserts that show their values, and signals that arrive."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpaudit.auditing.distinguishing import experiment

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
