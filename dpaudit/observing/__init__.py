"""Libraries as they are: every noise that they draw, seen as an invocation of a plan."""

from dpaudit.observing.calls import Call, Charge, Reading
from dpaudit.observing.notes import KNOWN, Noted, Notes, plan_of
from dpaudit.observing.recorder import Adapter, Patch, Recorder, following, noting, through

__all__ = [
    "KNOWN",
    "Adapter",
    "Call",
    "Charge",
    "Noted",
    "Notes",
    "Patch",
    "Reading",
    "Recorder",
    "following",
    "noting",
    "plan_of",
    "through",
]
