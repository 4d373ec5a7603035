"""Generators that record every draw, for code that draws its own noise.

Inside :func:`recorded_draws` every ``numpy.random.default_rng`` gives a
:class:`RecordingGenerator`, an ordinary ``Generator`` that keeps a log of method, parameters, place
in the code and values. (A module that imported the *function* ``default_rng`` before is not
reached, nor is ``RandomState``.)
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificate import Finding, Severity
from dpaudit.mechanisms import AdditiveNoise
from dpaudit.plan import Plan

__all__ = ["Draw", "DrawLog", "RecordingGenerator", "audit_draws", "recorded_draws"]

_PARAMETERS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "laplace": (("loc", 0.0), ("scale", 1.0)),
    "normal": (("loc", 0.0), ("scale", 1.0)),
    "gumbel": (("loc", 0.0), ("scale", 1.0)),
    "logistic": (("loc", 0.0), ("scale", 1.0)),
    "exponential": (("scale", 1.0),),
    "standard_normal": (),
    "standard_exponential": (),
    "geometric": (("p", 1.0),),
    "uniform": (("low", 0.0), ("high", 1.0)),
    "random": (),
}
_NOT_NOISE = ("random", "uniform")  # coins and choices, of which no plan speaks


@dataclass(frozen=True)
class Draw:
    """One call of a generator.

    Attributes:
        method: of the generator.
        parameters: by name.
        source: module and line.
        values: what was drawn, flat.
    """

    method: str
    parameters: Mapping[str, Any]
    source: str
    values: NDArray[np.float64]

    @property
    def place(self) -> str:
        """What was called, and where."""
        shown = ", ".join(f"{name}={value!r:.20}" for name, value in self.parameters.items())
        return f"{self.method}({shown}) at {self.source}"


@dataclass
class DrawLog:
    """All draws of all generators, in order, and the seeds that generators were made with."""

    draws: list[Draw] = field(default_factory=list)
    seeds: list[tuple[str, str]] = field(default_factory=list)

    def noise(self) -> list[Draw]:
        """The draws that may be noise: all but uniform ones."""
        return [draw for draw in self.draws if draw.method not in _NOT_NOISE]


class RecordingGenerator(np.random.Generator):
    """A generator of numpy with a log.

    Args:
        bit_generator: as for ``Generator``.
        log: where draws are kept; a new one where not given.
    """

    def __init__(self, bit_generator: np.random.BitGenerator, log: DrawLog | None = None) -> None:
        super().__init__(bit_generator)
        self.log = DrawLog() if log is None else log

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Generators spawned from this one, whose draws go to the same log."""
        children = self.bit_generator.spawn(n_children)
        return [RecordingGenerator(child, self.log) for child in children]

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordingGenerator, (self.bit_generator,)


def _recording(method: str) -> Callable[..., Any]:
    original = getattr(np.random.Generator, method)
    names = [*_PARAMETERS[method], ("size", None)]

    def draw(self: RecordingGenerator, *args: Any, **kwargs: Any) -> Any:
        values = original(self, *args, **kwargs)
        given = dict(zip((name for name, _ in names), args, strict=False)) | kwargs
        parameters = {name: given.get(name, default) for name, default in _PARAMETERS[method]}
        flat = np.array(values, dtype=np.float64).ravel()
        self.log.draws.append(Draw(method, parameters, _call_site(2), flat))
        return values

    draw.__name__ = method
    draw.__doc__ = f"``Generator.{method}``, recorded."
    return draw


for _method in _PARAMETERS:
    setattr(RecordingGenerator, _method, _recording(_method))


def _call_site(depth: int) -> str:
    frame = sys._getframe(depth)
    return f"{frame.f_globals.get('__name__', '?')}:{frame.f_lineno}"


@contextlib.contextmanager
def recorded_draws() -> Iterator[DrawLog]:
    """Record the draws of all generators that are made with ``numpy.random.default_rng``.

    Example:
        >>> with recorded_draws() as log:
        ...     noise = np.random.default_rng(0).laplace(scale=2.0)
        >>> log.draws[0].parameters["scale"]
        2.0
    """
    log, original = DrawLog(), np.random.default_rng

    def default_rng(seed: Any = None) -> np.random.Generator:
        if isinstance(seed, np.random.Generator):
            return seed
        if isinstance(seed, int | np.integer):
            log.seeds.append((str(int(seed)), _call_site(2)))
        return RecordingGenerator(original(seed).bit_generator, log)

    with mock.patch("numpy.random.default_rng", default_rng):
        yield log


def audit_draws(
    function: Callable[[Any, np.random.Generator], Any],
    data: Any,
    plan: Plan | None = None,
    *,
    seed: int = 0,
) -> tuple[Finding, ...]:
    """Run ``function(data, rng)`` with two seeds and look at every draw it makes.

    Found are draws that repeat although the seed does not, one draw used twice within a run, one
    seed given to two generators and, with a plan, noise whose law or number is not as declared. All
    but equal draws are facts; two of n independent calls agree to the 12 digits that are compared
    with probability below n² 1e-12.

    Args:
        function: draws its own noise, of laws that the plan declares in this order.
        data: any test data.
        plan: what it declares; None to look for repeated draws only.
        seed: of the first run.
    """
    logs = []
    for child in np.random.SeedSequence(seed).spawn(2):
        with recorded_draws() as log:
            function(data, np.random.default_rng(child))
        logs.append(log)
    findings = [*_shared_draws(*logs), *_reused_seeds(logs[0])]
    if plan is not None:
        findings += _compared_with_plan(plan, logs[0].noise())
    return tuple(findings)


def _continuous(draw: Draw) -> bool:
    return draw.values.size > 0 and bool((draw.values != np.floor(draw.values)).any())


def _shared_draws(first: DrawLog, second: DrawLog) -> list[Finding]:
    pairs = zip(first.draws, second.draws, strict=False)
    for one, two in pairs:
        if _continuous(one) and np.array_equal(one.values, two.values):
            return [
                Finding(
                    "seed-reused",
                    Severity.ERROR,
                    f"{one.place} draws the same values whatever the seed of the run: whoever "
                    "reads the code can subtract the noise.",
                    "Draw from the generator that the run is given, never from a fixed seed.",
                    one.source,
                )
            ]
    return []


def _reused_seeds(log: DrawLog) -> list[Finding]:
    places: dict[str, str] = {}
    for value, place in log.seeds:
        if value in places:
            return [
                Finding(
                    "seed-reused",
                    Severity.ERROR,
                    f"{places[value]} and {place} make generators of one seed in one run: their "
                    "noise is the same.",
                    "Use one generator throughout, or spawn independent ones.",
                    place,
                )
            ]
        places[value] = place
    seen: dict[bytes, Draw] = {}
    for draw in log.draws:
        if not _continuous(draw):
            continue
        # Two sequences that begin alike are the same noise, however long each of them is.
        key = draw.method.encode() + _standard(draw)[:1].tobytes()
        if key in seen:
            return [
                Finding(
                    "noise-reused",
                    Severity.ERROR,
                    f"{seen[key].place} and {draw.place} draw the same values in one run: the "
                    "difference of what they protect is released without noise.",
                    "Use one generator throughout, or spawn independent ones.",
                    draw.source,
                )
            ]
        seen[key] = draw
    return []


def _standard(draw: Draw) -> NDArray[np.float64]:
    """Values with location and scale taken off, rounded, so that equal noise is recognised."""
    loc, scale = draw.parameters.get("loc", 0.0), draw.parameters.get("scale", 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        standard = (draw.values - np.ravel(loc)[0]) / np.ravel(scale)[0]
    rounded: NDArray[np.float64] = np.round(standard, 12) + 0.0
    return rounded


def _compared_with_plan(plan: Plan, noise: Sequence[Draw]) -> list[Finding]:
    """Draws against declared invocations, in order: by call, or by value if calls are vectors."""
    expected = [call for call in plan.invocations for _ in range(call.releases)]
    drawn = [(draw, draw.parameters) for draw in noise]
    if len(noise) != len(expected) and sum(d.values.size for d in noise) == len(expected):
        drawn = [
            (draw, _entry_parameters(draw, i)) for draw in noise for i in range(draw.values.size)
        ]
    findings = []
    for call, (draw, parameters) in zip(expected, drawn, strict=False):
        law = call.mechanism.numpy_law if isinstance(call.mechanism, AdditiveNoise) else ""
        if not law or draw.method.startswith("standard_"):
            continue
        scale = call.mechanism.noise_scale or math.nan
        actual = parameters.get("scale", math.nan)
        if draw.method != law or not np.allclose(actual, scale, rtol=1e-9, atol=0):
            findings.append(
                Finding(
                    "not-the-declared-noise",
                    Severity.ERROR,
                    f"The noise of {call.at!r} is declared as {call.mechanism!r}; drawn is "
                    f"{draw.method} of scale {actual!r:.20} at {draw.source}.",
                    "Draw the declared noise, or declare what is drawn.",
                    call.at,
                )
            )
    if len(drawn) != len(expected):
        findings.append(_number(plan, expected, drawn))
    return findings


def _entry_parameters(draw: Draw, index: int) -> dict[str, Any]:
    """Parameters of one value of a vector draw."""
    size = draw.values.size
    return {
        name: float(np.broadcast_to(np.ravel(value), size)[index])
        for name, value in draw.parameters.items()
    }


def _number(plan: Plan, expected: Sequence[Any], drawn: Sequence[tuple[Draw, Any]]) -> Finding:
    if len(drawn) < len(expected):
        missing = expected[len(drawn)]
        rule, what, at = "noise-missing", f"none is drawn for {missing.at!r}", missing.at
    else:
        extra = drawn[len(expected)][0]
        rule, what, at = "noise-undeclared", f"the first too many is {extra.place}", extra.source
    return Finding(
        rule,
        Severity.ERROR,
        f"The plan declares {len(expected)} noisy releases and the code draws noise {len(drawn)} "
        f"times: {what}.",
        "Declare every draw of noise, and draw for every declaration.",
        at,
    )
