"""Plots as vector drawings of a PDF, from the same numbers as the SVG of a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from reportlab.graphics.shapes import (
    Circle,
    Drawing,
    Group,
    Polygon,
    PolyLine,
    Rect,
    String,
)
from reportlab.graphics.shapes import Line as Stroke
from reportlab.lib.colors import Color

from dpaudit.reporting.figures.plot import Dot, Floats, Ink, Key, Line, Mark, Plot, drawable
from dpaudit.reporting.html.svg import decades, power_of_ten
from dpaudit.reporting.pdf.text import SANS

__all__ = ["drawing", "swatch"]

_LEFT, _BOTTOM, _RIGHT, _TOP = 44.0, 30.0, 8.0, 8.0
_SIZE = 7.5
Tick = tuple[float, str]


@dataclass(frozen=True)
class _Axis:
    """A scale from values to points of the page.

    Attributes:
        low: value at its start.
        high: value at its end.
        start: where it starts on the page.
        length: how long it is.
        ticks: values to be marked, with their texts.
        logarithmic: whether equal ratios have equal lengths.
    """

    low: float
    high: float
    start: float
    length: float
    ticks: tuple[Tick, ...]
    logarithmic: bool = False

    def at(self, values: Floats) -> Floats:
        low, high, shown = self.low, self.high, values
        if self.logarithmic:
            low, high = math.log10(low), math.log10(high)
            shown = np.log10(np.maximum(values, self.low))
        # Halves first: the span of the largest values is no float.
        share = (shown / 2 - low / 2) / (high / 2 - low / 2)
        return self.start + self.length * np.clip(share, 0, 1)


def drawing(plot: Plot, width: float, colours: Callable[[Ink], Any]) -> Any:
    """A drawing of that width in points.

    Args:
        plot: what is drawn.
        width: in points.
        colours: the colour of each role.
    """
    height = 0.74 * width
    horizontal, vertical = _axes(plot, width - _LEFT - _RIGHT, height - _BOTTOM - _TOP)
    made = Drawing(width, height)
    for shape in _frame(plot, horizontal, vertical, colours):
        made.add(shape)
    for line in plot.lines:
        for shape in _line(line, horizontal, vertical, colours):
            made.add(shape)
    for dot in plot.dots:
        x, y = horizontal.at(drawable([dot.x])), vertical.at(drawable([dot.y]))
        made.add(_mark(dot, float(x[0]), float(y[0]), colours))
    return made


def _axes(plot: Plot, width: float, height: float) -> tuple[_Axis, _Axis]:
    dots_x, dots_y = [dot.x for dot in plot.dots], [dot.y for dot in plot.dots]
    x = np.concatenate([drawable(dots_x), *(drawable(line.x) for line in plot.lines)])
    y = np.concatenate([drawable(dots_y), *(drawable(line.y) for line in plot.lines)])
    unit = (0.0, 1.0) if plot.square else None
    start = 0.0 if plot.floor is not None else None
    horizontal = _linear(unit or _span(x, start), _LEFT, width)
    if plot.floor is None:
        return horizontal, _linear(unit or _span(y), _BOTTOM, height)
    marked = [(10.0**power, power_of_ten(power)) for power in decades(plot.floor)]
    ticks = (*marked, (plot.floor, "0"))
    return horizontal, _Axis(plot.floor, 1.0, _BOTTOM, height, ticks, logarithmic=True)


def _span(values: Floats, start: float | None = None) -> tuple[float, float]:
    """The range of the values with a margin; never empty."""
    low, high = float(values.min()) if start is None else start, float(values.max())
    margin = 0.05 * (high - low) or max(abs(high) * 0.05, 0.05)
    return low if start is not None else low - margin, high + margin


def _linear(span: tuple[float, float], start: float, length: float) -> _Axis:
    from matplotlib.ticker import MaxNLocator

    low, high = span
    found = MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(low, high)
    slack = 1e-9 * (high - low)
    values = [float(v) for v in found if low - slack <= v <= high + slack]
    step = abs(values[1] - values[0]) if len(values) > 1 else 0.0
    ticks = tuple((v, f"{0.0 if abs(v) < step / 1e6 else v:.6g}") for v in values)
    return _Axis(low, high, start, length, ticks)


def _frame(plot: Plot, horizontal: _Axis, vertical: _Axis, colours: Callable[[Ink], Any]) -> Any:
    right, top = horizontal.start + horizontal.length, vertical.start + vertical.length
    text = {"fontName": SANS, "fontSize": _SIZE, "fillColor": colours(Ink.TEXT)}
    grid = {"strokeColor": colours(Ink.GRID), "strokeWidth": 0.5}
    axis = {"strokeColor": colours(Ink.MUTED), "strokeWidth": 0.7}
    for at, label in _placed(horizontal):
        yield Stroke(at, _BOTTOM, at, top, **grid)
        yield String(at, _BOTTOM - 10, label, textAnchor="middle", **text)
    for at, label in _placed(vertical):
        yield Stroke(_LEFT, at, right, at, **grid)
        yield String(_LEFT - 4, at - 2.5, label, textAnchor="end", **text)
    yield Stroke(_LEFT, _BOTTOM, right, _BOTTOM, **axis)
    yield Stroke(_LEFT, _BOTTOM, _LEFT, top, **axis)
    middle = horizontal.start + horizontal.length / 2
    yield String(middle, 5, plot.horizontal, textAnchor="middle", **text)
    name = Group(String(0, 0, plot.vertical, textAnchor="middle", **text))
    name.translate(9, vertical.start + vertical.length / 2)
    name.rotate(90)
    yield name


def _placed(axis: _Axis) -> Sequence[Tick]:
    values = axis.at(np.array([value for value, _ in axis.ticks]))
    return [(float(at), label) for at, (_, label) in zip(values, axis.ticks, strict=True)]


def _line(line: Line, horizontal: _Axis, vertical: _Axis, colours: Callable[[Ink], Any]) -> Any:
    x, y = horizontal.at(drawable(line.x)), vertical.at(drawable(line.y))
    colour = colours(line.ink)
    if len(x) == 1:
        yield Circle(float(x[0]), float(y[0]), 2.5, fillColor=colour, strokeColor=None)
        return
    flat = [round(float(value), 2) for pair in zip(x, y, strict=True) for value in pair]
    if line.shaded:
        ends = [flat[-2], vertical.start, flat[0], vertical.start]
        tint = Color(colour.red, colour.green, colour.blue, alpha=0.14)
        yield Polygon([*flat, *ends], fillColor=tint, strokeColor=None)
    dashes = [1.4 * length for length in line.dashes] or None
    yield PolyLine(flat, strokeColor=colour, strokeWidth=1.3, strokeDashArray=dashes)


def _mark(dot: Dot | Key, x: float, y: float, colours: Callable[[Ink], Any]) -> Any:
    hollow = dot.mark is Mark.SQUARE
    colour = colours(dot.ink)
    radius = 4.2 if hollow else 3.0
    style = {
        "fillColor": None if hollow else colour,
        "strokeColor": colour,
        "strokeWidth": 1.3,
    }
    if dot.mark is Mark.SQUARE:
        return Rect(x - radius, y - radius, 2 * radius, 2 * radius, **style)
    if dot.mark is Mark.TRIANGLE:
        corners = [x - radius, y - radius, x + radius, y, x - radius, y + radius]
        return Polygon(corners, **style)
    return Circle(x, y, radius, **style)


def swatch(key: Key, colours: Callable[[Ink], Any]) -> Any:
    """The sign of an entry of a legend."""
    made = Drawing(24, 9)
    if key.mark is Mark.LINE:
        dashes = [1.4 * length for length in key.dashes] or None
        style = {"strokeColor": colours(key.ink), "strokeWidth": 1.6, "strokeDashArray": dashes}
        made.add(PolyLine([1, 4.5, 23, 4.5], **style))
    else:
        made.add(_mark(key, 12, 4.5, colours))
    return made
