"""dp-accounting: plans as its events, and its opinion on a certificate.

Its numbers are a cross-check: no certificate rests on them.
"""

from dpaudit.interchange.dp_accounting.events import (
    contributions,
    dp_event,
    sampled_event,
    to_dp_event,
)
from dpaudit.interchange.dp_accounting.laws import law
from dpaudit.interchange.dp_accounting.second_opinion import second_opinion

__all__ = [
    "contributions",
    "dp_event",
    "law",
    "sampled_event",
    "second_opinion",
    "to_dp_event",
]
