"""What all tests share: asserts that show their values, and signals that arrive."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.distinguishing import experiment, forecast
from dpaudit.auditing.rehearsal import model, session
from dpaudit.certificate import Finding

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


@pytest.fixture(autouse=True)
def few_runs_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rehearsal compares a model with its fewest real runs, not with all that two seconds allow.

    The tests of that comparison call it themselves, with as many as ever.
    """

    def compared(*given: Any) -> list[Finding]:
        with monkeypatch.context() as briefly:
            briefly.setattr(model, "SECONDS", 0.0)
            return model.model_findings(*given)

    monkeypatch.setattr(session, "model_findings", compared)


@pytest.fixture(autouse=True)
def one_pilot_of_forecasts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an audit would have found is told from one pilot: of twelve it takes most of its time.

    Tests of what is told have the mark ``forecasts``.
    """
    if request.node.get_closest_marker("forecasts") is None:
        monkeypatch.setattr(forecast, "PILOTS", 1)
