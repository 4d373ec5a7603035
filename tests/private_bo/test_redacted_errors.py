"""A user's error is told by its kind alone."""

from pathlib import Path

import pytest

from dpaudit import InputError
from private_bo.redacted_errors import redact


def fails(value):
    raise KeyError(value)


def test_an_error_loses_its_words_and_its_context():
    with pytest.raises(InputError, match=r"^fails raised KeyError at .*; it must take") as told:
        redact(fails)(17)
    line = fails.__code__.co_firstlineno + 1
    assert f"KeyError at {Path(__file__).name}:{line}; it" in str(told.value)
    assert told.value.__context__ is None
    assert told.value.__cause__ is None
    assert "17" not in str(told.value)


def test_what_is_no_error_passes():
    with pytest.raises(KeyboardInterrupt):
        redact(lambda: (_ for _ in ()).throw(KeyboardInterrupt()))()
    assert redact(sum)([1, 2]) == 3
    own = redact(fails)
    assert redact(own) is own


def test_what_ends_a_process_and_names_of_kinds_are_hushed_too():
    class Secret4711Error(KeyError):
        pass

    for error, kind in ((SystemExit("age 147"), "SystemExit"), (Secret4711Error(4), "KeyError")):
        with pytest.raises(InputError, match=f"raised {kind} at ") as told:
            redact(lambda error=error: (_ for _ in ()).throw(error))()
        assert "147" not in str(told.value)
        assert "4711" not in str(told.value)
    with pytest.raises(KeyboardInterrupt) as left:
        redact(lambda: (_ for _ in ()).throw(KeyboardInterrupt("age 147")))()
    assert left.value.args == ()
    assert left.value.__context__ is None
