"""Code of others that fails after it has seen data."""

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import Laplace, Ledger, Plan
from dpaudit.base.errors import (
    BudgetExceededError,
    DpAuditError,
    InconclusiveError,
    InputError,
    PlanMismatchError,
)
from dpaudit.base.validate import positive
from dpaudit.project.foreign import DEBUG, foreign


def fail(error):
    raise error


class OwnError(InputError):
    __module__ = InputError.__module__


@pytest.mark.parametrize(
    "error",
    [
        ValueError("4711"),
        SystemExit("4711"),
        MemoryError("4711"),
        InputError("4711"),
        OwnError("4711"),
        DpAuditError("4711"),
    ],
)
def test_only_type_and_place_are_told(error):
    with pytest.raises(InputError) as raised, foreign("survey.run"):
        fail(error)
    sentence = str(raised.value)
    assert sentence.startswith(f"survey.run raised {type(error).__name__} at test_foreign.py:")
    assert "4711" not in sentence
    assert raised.value.__suppress_context__


def test_ctrl_c_passes():
    with pytest.raises(KeyboardInterrupt), foreign("survey.run"):
        fail(KeyboardInterrupt())


@pytest.mark.parametrize("kind", [InconclusiveError, PlanMismatchError, BudgetExceededError])
def test_the_kind_of_an_error_stays(kind):
    """A class of the code's own becomes that of dpaudit which it extends."""
    for each in (kind, type("Theirs", (kind,), {})):
        with pytest.raises(kind) as raised, foreign("survey.run"):
            fail(each("4711"))
        assert type(raised.value) is kind
        assert "4711" not in str(raised.value)


def test_what_the_ledger_says_passes_and_what_validators_say_does_not():
    noise = Laplace(1.0)
    ledger = Ledger(
        Plan.of(gaussian_invocation(mechanism=noise, at="sum")), rng=np.random.default_rng(0)
    )
    with pytest.raises(PlanMismatchError) as raised, foreign("survey.run"):
        ledger.release(noise, 4711.0, at="4711")
    assert "label that is not declared; the plan declares 'sum' (at test_foreign.py:" in str(
        raised.value
    )
    for call in (lambda: positive(age=-4711), lambda: Laplace(-4711.0)):
        with pytest.raises(InputError) as raised, foreign("survey.run"):
            call()
        assert str(raised.value).startswith("survey.run raised InputError at test_foreign.py:")
        assert "4711" not in str(raised.value)


def test_everything_is_shown_on_request(monkeypatch):
    monkeypatch.setenv(DEBUG, "1")
    with pytest.raises(ValueError, match="4711"), foreign("survey.run"):
        fail(ValueError("4711"))


def test_what_has_seen_no_data_may_tell_all():
    told = pytest.raises(InputError, match=r"survey raised TypeError at .*: no scale \(")
    with told, foreign("survey", public=True):
        fail(TypeError("no scale."))
