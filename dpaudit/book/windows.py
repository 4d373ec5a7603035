"""Over which time a budget adds up: buckets, one sum for each.

All times are UTC. A budget for ever has one bucket. One of a calendar period has a bucket for each,
which is charged by every release that reads data of it. One of a rolling window has a bucket for
each day on which something was reserved, and those of so many days in a row add up.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown

EVER = "ever"
_FORMATS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}
PERIODS = tuple(_FORMATS)
_MOST_DAYS = 3660
"""Of the data that one release reads, or of a rolling window."""
_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
_PAUSE = 31
"""Days in which nothing may happen in any book, whatever its windows."""

Span = tuple[date, date]


def checked_window(**field: object) -> str:
    """``ever``, a calendar period, or ``N days``.

    Raises:
        InputError: if it is none of them.
    """
    ((name, value),) = field.items()
    text = str(value)
    if text not in (EVER, *PERIODS) and not 1 <= days_of(text) <= _MOST_DAYS:
        raise InputError(
            f"{name} is {shown(value)}; it must be {EVER}, {', '.join(PERIODS)}, or a rolling one "
            "such as '30 days'."
        )
    return text


def days_of(window: str) -> int:
    """How many days a rolling window has; 0 where it is none."""
    found = re.fullmatch(r"([0-9]{1,4}) days?", window)
    return int(found[1]) if found else 0


def longest_pause(window: str) -> int:
    """Days after which a budget begins anew though nobody asked for anything; 0 for one for ever.

    It is one period, and at least a month: a daily budget may rest over the holidays.

    >>> longest_pause("year"), longest_pause("day"), longest_pause("ever")
    (366, 31, 0)
    """
    return 0 if window == EVER else max(_PAUSE, _DAYS.get(window) or days_of(window))


def charged(window: str, span: Span, today: date) -> tuple[str, ...]:
    """The buckets that a release charges, which reads data of some days.

    >>> charged("week", (date(2026, 11, 20), date(2026, 11, 23)), date(2026, 11, 24))
    ('2026-W47', '2026-W48')
    """
    if window == EVER:
        return (EVER,)
    if window not in _FORMATS:
        return (today.isoformat(),)
    first, last = span
    days = (first + timedelta(n) for n in range((last - first).days + 1))
    return tuple(dict.fromkeys(each.strftime(_FORMATS[window]) for each in days))


def together(window: str, bucket: str) -> tuple[str, ...]:
    """The buckets that add up with one that is charged, itself included."""
    length = days_of(window)
    if not length:
        return (bucket,)
    last = date.fromisoformat(bucket)
    return tuple((last - timedelta(n)).isoformat() for n in range(length))


def span_of(text: str | None, today: date) -> Span:
    """The days whose data are read: ``FROM..TO`` or one day, today where nothing is said.

    Raises:
        InputError: if it is something else, or too long.
    """
    first, _, last = (text or today.isoformat()).partition("..")
    try:
        span = date.fromisoformat(first), date.fromisoformat(last or first)
    except ValueError:
        raise InputError(
            f"period is {shown(text)}; it must be like 2026-11-16..2026-11-22."
        ) from None
    if not 0 <= (span[1] - span[0]).days < _MOST_DAYS:
        raise InputError(
            f"period is {shown(text)}; it must end after it begins, within {_MOST_DAYS} days."
        )
    return span
