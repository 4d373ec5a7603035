"""Code of others that fails after it has seen data."""

import pytest

from dpaudit.errors import InputError
from dpaudit.project.foreign import DEBUG, foreign


def fail(error):
    raise error


@pytest.mark.parametrize("error", [ValueError("4711"), SystemExit("4711"), MemoryError("4711")])
def test_only_type_and_place_are_told(error):
    with pytest.raises(InputError) as raised, foreign("survey.run"):
        fail(error)
    sentence = str(raised.value)
    assert sentence.startswith(f"survey.run raised {type(error).__name__} at test_foreign.py:")
    assert "4711" not in sentence
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("error", [InputError("own"), KeyboardInterrupt()])
def test_own_errors_and_ctrl_c_pass(error):
    with pytest.raises(type(error)) as raised, foreign("survey.run"):
        fail(error)
    assert raised.value is error


def test_everything_is_shown_on_request(monkeypatch):
    monkeypatch.setenv(DEBUG, "1")
    with pytest.raises(ValueError, match="4711"), foreign("survey.run"):
        fail(ValueError("4711"))


def test_what_has_seen_no_data_may_tell_all():
    told = pytest.raises(InputError, match=r"survey raised TypeError at .*: no scale \(")
    with told, foreign("survey", public=True):
        fail(TypeError("no scale."))
