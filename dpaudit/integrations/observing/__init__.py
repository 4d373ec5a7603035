"""Libraries as they are: every noise that they draw, seen as an invocation of a plan."""

from dpaudit.integrations.observing.calls import Call, Charge, Reading
from dpaudit.integrations.observing.notes import Notes
from dpaudit.integrations.observing.recorder import (
    KNOWN,
    Adapter,
    Patch,
    Recorder,
    adapter,
    noting,
    through,
)

__all__ = [
    "KNOWN",
    "Adapter",
    "Call",
    "Charge",
    "Notes",
    "Patch",
    "Reading",
    "Recorder",
    "adapter",
    "noting",
    "through",
]
