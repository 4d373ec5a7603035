"""Plots as inline SVG that takes its colours and its font from the page around it."""

from __future__ import annotations

import io
import logging
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpaudit.reporting.figures.plot import Dot, Ink, Line, Mark, Plot, drawable

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MARKERS = {Mark.CIRCLE: "o", Mark.SQUARE: "s", Mark.TRIANGLE: ">"}


def markup(plot: Plot, name: str) -> str:
    """The ``<svg>`` element; byte-identical for the same plot.

    Names stand in the legend, which is part of the page, so that no name can break the drawing and
    every script is shown. Only numbers, fixed words and plain labels of rows are drawn.

    Args:
        plot: what is drawn.
        name: unique within the page, put before every id.
    """
    from matplotlib.figure import Figure

    with _drawing():
        # Small, so that its text is readable when the page scales it to the width of a phone.
        tall = max(3.4, 0.2 * len(plot.labels) + 0.6)
        figure = Figure(figsize=(4.4, tall), layout="constrained")
        axes: Any = figure.add_subplot()
        _frame(axes, plot)
        for line in plot.lines:
            _line(axes, line)
        for dot in plot.dots:
            _dot(axes, dot)
        if plot.rows:
            _rows(axes, plot.rows, plot.labels)
        if plot.floor is not None:
            _logarithmic(axes, plot.floor)
        buffer = io.StringIO()
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    return _inlined(buffer.getvalue(), name)


@contextmanager
def _drawing() -> Iterator[None]:
    """Draw with matplotlib's own defaults, whatever style the user has set."""
    import matplotlib as mpl

    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)  # it tells when it builds its font cache; the user did not ask
    try:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams["svg.hashsalt"] = "dpaudit"
            mpl.rcParams["svg.fonttype"] = "none"
            yield
    finally:
        log.setLevel(level)


def _frame(axes: Any, plot: Plot) -> None:
    axes.set_xlabel(plot.horizontal, color=Ink.TEXT, fontsize=11)
    axes.set_ylabel(plot.vertical, color=Ink.TEXT, fontsize=11)
    axes.grid(visible=True, color=Ink.GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(Ink.MUTED)
    axes.tick_params(colors=Ink.MUTED, labelcolor=Ink.TEXT, labelsize=10)
    if plot.square:
        axes.set(xlim=(0, 1), ylim=(0, 1))


def _line(axes: Any, line: Line) -> None:
    """A curve; a single value becomes a point."""
    x, y = drawable(line.x), drawable(line.y)
    if line.shaded:
        axes.fill_between(x, 0, y, color=line.ink, alpha=0.14, linewidth=0)
    style = (0, line.dashes) if line.dashes else "-"
    marker = "o" if x.size == 1 else ""
    axes.plot(x, y, color=line.ink, linestyle=style, linewidth=1.9, marker=marker)


def _dot(axes: Any, dot: Dot) -> None:
    axes.plot(
        drawable([dot.x]),
        drawable([dot.y]),
        linestyle="none",
        marker=_MARKERS[dot.mark],
        markersize=12 if dot.hollow else 7,
        markerfacecolor="none" if dot.hollow else dot.ink,
        markeredgecolor=dot.ink,
        markeredgewidth=1.8,
        clip_on=False,
        zorder=5,
    )


def _rows(axes: Any, rows: int, labels: tuple[str, ...]) -> None:
    """Rows of a table, from the top, each with its label, or every so many with its number."""
    step = -(-rows // 15)
    axes.set_ylim(rows + 0.5, 0.5)
    if labels:
        axes.set_yticks(range(1, rows + 1), labels=labels, parse_math=False)
        return
    axes.set_yticks(range(1, rows + 1, step))


def _logarithmic(axes: Any, floor: float) -> None:
    """A logarithmic vertical axis from 1 down to the floor, which stands for 0."""
    ticks = _decades(floor)
    axes.set_yscale("log")
    axes.set_ylim(floor, 1)
    axes.set_yticks(
        [10.0**power for power in ticks] + [floor],
        labels=[_power_of_ten(power) for power in ticks] + ["0"],
    )
    axes.set_yticks([], minor=True)
    axes.set_xlim(left=0)


def _decades(floor: float) -> tuple[int, ...]:
    """Powers of ten to mark on a logarithmic axis from 1 down to the floor, which is left out.

    >>> _decades(1e-7)
    (0, -1, -2, -3, -4, -5, -6)
    """
    lowest = round(math.log10(floor))
    step = max(1, math.ceil(-lowest / 7))
    return tuple(power for power in range(0, lowest, -step) if power - lowest >= step / 2)


def _power_of_ten(power: int) -> str:
    """As text.

    >>> _power_of_ten(-5), _power_of_ten(0)
    ('10⁻⁵', '1')
    """
    return "1" if power == 0 else f"10{str(power).translate(_SUPERSCRIPTS)}"


def _inlined(text: str, name: str) -> str:
    """Fit for the inside of a page: no prologue, no fixed colours, ids of its own."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    view = re.search(r'viewBox="([^"]*)"', text)
    box = "" if view is None else view[1]
    spoken = f"{name}-title {name}-words"
    opening = f'<svg class="chart" viewBox="{box}" role="img" aria-labelledby="{spoken}">'
    text = re.sub(r"<svg[^>]*>", opening, text, count=1, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(?:xlink:)?href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    for ink in Ink:
        text = text.replace(ink.value, ink.css)
    return re.sub(r"\n\s*", "\n", text).strip()
