"""One use of a library's noise: what is drawn, for which value, and by whom it was asked for.

Adapters make readings, the recorder makes calls of them, and a ledger observes draws. Labels name
places of the user's code in a way that survives that lines move.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.mechanisms import IntegerNoise, Mechanism, StatedNoise
from dpaudit.mechanisms.black_box import UNKNOWN_EPSILON

_OWN = __name__.partition(".")[0]
_PYTHON = f"{Path(os.__file__).parent}{os.sep}"
_DIGITS = 12
_SCALES = ("scale", "sigma", "width", "bound")
"""Fields of mechanisms that scale with the value."""


@dataclass(frozen=True)
class Reading:
    """The facts that an adapter reads off a call before the noise is drawn.

    Attributes:
        primitive: the library's name for it.
        mechanism: what it is in a plan.
        sensitivity: how far apart the library takes values of neighbours to be, in the norm of the
            mechanism; None where nobody says.
        value: the private value before noise.
        stated: the (ε, δ) that the library states for this call, where it does.
        facts: the numbers that it draws by, as if they were public.
        unit: how many of the library's units one unit of the plan is: values and releases are
            divided by it. In units of the sensitivity a plan stays the same for other data.
        among: where the library bounds of how many of some releases one unit is part: that number,
            and what these releases have in common; None where it may be part of all.
        answers: what the library calls the outcomes of a choice, whose law speaks of their places;
            None where it gives a place or a number.
    """

    primitive: str
    mechanism: Mechanism
    sensitivity: float | None
    value: ArrayLike
    stated: tuple[float, float] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    unit: float = 1.0
    among: tuple[int, Hashable] | None = None
    answers: tuple[Any, ...] | None = None

    @property
    def declared(self) -> Mechanism:
        """The mechanism; where its sensitivity is not known, what proves nothing."""
        if self.sensitivity is not None:
            return self.mechanism
        return StatedNoise(f"{self.primitive}, of unknown sensitivity", UNKNOWN_EPSILON)


@dataclass(slots=True)
class Call:
    """A reading, and where it comes from.

    Attributes:
        reading: what was drawn.
        library: whose noise it is.
        at: label of the place in the user's code.
        line: file and line of the user's code.
        result: what came out, as the library gave it; None before that.
    """

    reading: Reading
    library: str
    at: str
    line: str
    result: Any = None

    @property
    def released(self) -> NDArray[Any] | None:
        """What came out, in units of the plan; None where that is no number."""
        if not isinstance(self.result, bool | int | float | np.generic | np.ndarray):
            return None
        return np.asarray(self.result) / self.reading.unit


@dataclass(frozen=True)
class Charge:
    """The cost that a library states for some calls together.

    Attributes:
        library: which says so.
        epsilon: ε.
        delta: δ.
        rho: ρ of zero-concentrated privacy, in place of both; 0 where it is (ε, δ).
        start: the first call that it speaks of.
        end: the first that it does not.
    """

    library: str
    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = 0.0
    start: int = 0
    end: int = 0


def in_units(reading: Reading) -> Reading:
    """Return the reading in units of its sensitivity, so that equal privacy is an equal mechanism.

    Noise of integers stays as it is.
    """
    unit, own = reading.sensitivity, reading.mechanism
    if not unit or isinstance(own, IntegerNoise):
        return reading
    scaled = {
        name: _fewer_digits(getattr(own, name) / unit) for name in _SCALES if hasattr(own, name)
    }
    value = np.asarray(reading.value, dtype=np.float64) / unit
    return replace(
        reading, mechanism=replace(own, **scaled), sensitivity=1.0, value=value, unit=unit
    )


def least_known(epsilon: float) -> float:
    """Return an ε that can be declared: one beyond all claims for an infinite one."""
    return min(epsilon, UNKNOWN_EPSILON)


def fingerprint(value: Any) -> float:
    """Return a number in [0, 1) that differs where a value does, whatever its shape; as private."""
    if isinstance(value, dict):  # its order may be one of chance
        value = sorted(map(repr, value.items()))
    plain = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
    return int.from_bytes(blake2b(plain, digest_size=6).digest()) / 2.0**48


def _fewer_digits(value: float) -> float:
    """Keep twelve digits, rounded down: the same whatever unit it was divided by."""
    if not 0 < value < math.inf:
        return value
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    nearest = round(value / step)
    exact = abs(value / step - nearest) < 1e-3  # but for the rounding of the division
    return float(f"{(nearest if exact else math.floor(value / step)) * step:.{_DIGITS}g}")


class Labels:
    """Labels of the places of one run, which survive that lines move."""

    def __init__(self) -> None:
        self._known: dict[tuple[CodeType, int, str, str], tuple[str, str]] = {}
        self._turns: dict[str, dict[int, int]] = {}

    def of(self, packages: tuple[str, ...], primitive: str) -> tuple[str, str]:
        """Return the label of the code that asks, and its file and line.

        The label names the user's function, the library's that it calls and what that draws, and
        counts the places of the same names in the order in which they are first reached.
        """
        frame, entry = _asking(packages, primitive)
        key = frame.f_code, frame.f_lineno, entry, primitive
        if key not in self._known:
            self._known[key] = self._new(frame, entry, primitive)
        return self._known[key]

    def _new(self, frame: FrameType, entry: str, primitive: str) -> tuple[str, str]:
        code = frame.f_code
        name = code.co_qualname.rpartition("<locals>.")[2]
        name = Path(code.co_filename).stem if name == "<module>" else name
        base = f"{name}: {entry}" if entry == primitive else f"{name}: {entry} by {primitive}"
        places = self._turns.setdefault(base, {})
        turn = places.setdefault(frame.f_lineno, len(places) + 1)
        return (base if turn == 1 else f"{base} {turn}"), _line(frame)


def place(packages: tuple[str, ...]) -> str:
    """Return file and line of the user's code that asks."""
    return _line(_asking(packages, "")[0])


def _line(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _asking(packages: tuple[str, ...], primitive: str) -> tuple[FrameType, str]:
    """Find the frame of the user's function that asks, and what of the library it calls."""
    frame, entry = sys._getframe(1), primitive
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        within, name = _part(frame.f_code, module, packages)
        if not within:
            break
        entry = name or entry
        frame = frame.f_back
    return frame, entry


@lru_cache(4096)
def _part(code: CodeType, module: str, packages: tuple[str, ...]) -> tuple[bool, str]:
    """Tell whether code stands before a draw, and its name if a user may call it."""
    package, file = module.partition(".")[0], code.co_filename
    of_python = file.startswith((_PYTHON, "<frozen ")) and "site-packages" not in file
    within = package in (_OWN, *packages) or of_python
    inner = package == "pandas" or code.co_name.startswith(("<", "_", "wrapper", "func"))
    if package not in packages or inner:
        return within or code.co_name.endswith(("comp>", "expr>")), ""
    return within, code.co_qualname.rpartition("<locals>.")[2]


def _vector(result: Any) -> bool:
    """Tell whether it is a list of numbers, as some libraries give for an array."""
    return isinstance(result, list) and all(isinstance(each, int | float) for each in result)


class Draw:
    """A use of a primitive as a ledger observes it, and as a replay replaces what it gives.

    Args:
        reading: what is drawn.
        sampler: the library and its version.
        packages: that stand between the user's code and the draw.
        draw: lets the library draw.
    """

    def __init__(
        self, reading: Reading, sampler: str, packages: Collection[str], draw: Callable[[], Any]
    ) -> None:
        self.sampler = sampler
        self.packages = tuple(packages)
        self.facts = reading.facts
        self.result: Any = None
        self._reading = reading
        self._draw = draw

    def draw(self) -> None:
        """Let the library draw."""
        self.result = self._draw()

    def value(self) -> NDArray[Any]:
        """Return the private value, in units of the plan."""
        return np.asarray(self._reading.value)

    def released(self) -> NDArray[Any]:
        """Return what came out, in units of the plan; what is no number as an object."""
        if self._reading.answers is not None:
            return np.asarray(self._reading.answers.index(self.result))
        if isinstance(self.result, bool | int | float | np.generic | np.ndarray) or _vector(
            self.result
        ):
            made = np.asarray(self.result)
            if self._reading.unit != 1:
                made = made / self._reading.unit
                self.impose(made)  # to the last bit what a replay will give
            return made
        held = np.empty((), dtype=object)
        held[()] = self.result
        return held

    def impose(self, released: ArrayLike) -> None:
        """Give out what an earlier run released."""
        made = np.asarray(released)
        if self._reading.answers is not None:
            self.result = self._reading.answers[int(made)]
            return
        if made.dtype == object:
            self.result = made[()]
            return
        if self._reading.unit != 1:
            made = made * self._reading.unit
        if isinstance(self.result, np.ndarray):
            self.result = made.copy()
        elif isinstance(self.result, list):
            self.result = made.tolist()
        else:  # of the same type: a result shows it
            self.result = type(self.result)(made.item())
