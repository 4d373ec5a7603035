"""Running code that is not ours: whatever it raises becomes one sentence without its data."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpaudit.errors import DpAuditError, InputError
from dpaudit.extras import lacking

DEBUG = "DPAUDIT_DEBUG"
"""The variable that lets exceptions of foreign code through as they are."""

_OWN = Path(__file__).parents[1]


@contextmanager
def foreign(name: str, *, public: bool = False) -> Iterator[None]:
    """Run a user's code.

    The message of an exception may hold a value of the data, so only its type and place are told.

    Args:
        name: of the code, for the sentence.
        public: whether it has seen no data, so that the message is told too.

    Raises:
        InputError: in place of whatever the code raises, errors of dpaudit and Ctrl-C apart.
    """
    try:
        yield
    except (DpAuditError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if os.environ.get(DEBUG):
            raise
        missing = lacking(error, name) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            raise missing from None
        why = f": {error!s:.300}" if public else ""
        what = f"{type(error).__name__}{place_of(error)}{why.rstrip('.')}"
        raise InputError(f"{name} raised {what} ({DEBUG}=1 shows the rest).") from None


def place_of(error: BaseException) -> str:
    """Where it was raised, as near as possible to the user's code: " at FILE:LINE", or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not Path(frame.filename).is_relative_to(_OWN)]
    own = [f for f in outside if "site-packages" not in f.filename and "<" not in f.filename]
    last = (own or outside or frames)[-1:]
    return f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""
