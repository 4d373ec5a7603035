"""Charts as inline SVG that takes its colours and its font from the page around it."""

from __future__ import annotations

import io
import logging
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LARGEST", "Chart", "Ink", "drawing"]

LARGEST = 1e100
"""Larger values are drawn here, as axes cannot span them."""

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Ink(StrEnum):
    """Colours by role. Each is a mark that :meth:`Chart.markup` replaces by a CSS variable."""

    TEXT = "#010101"
    MUTED = "#020202"
    GRID = "#030303"
    PROVED = "#040404"
    CLAIM = "#050505"
    ATTACK = "#060606"
    FIRST = "#070707"
    SECOND = "#080808"
    THIRD = "#090909"
    FOURTH = "#0a0a0a"
    FIFTH = "#0b0b0b"
    SIXTH = "#0c0c0c"

    @property
    def css(self) -> str:
        """The CSS variable that the page defines for light and for dark."""
        return f"var(--ink-{self.name.lower()})"

    @classmethod
    def series(cls) -> tuple[Ink, ...]:
        """Colours of the lines of a run, in order."""
        return (cls.FIRST, cls.SECOND, cls.THIRD, cls.FOURTH, cls.FIFTH, cls.SIXTH)


@contextmanager
def drawing() -> Iterator[None]:
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


class Chart:
    """One pair of axes on a transparent ground.

    Only numbers and fixed words are drawn, never text of a certificate: names stand in the legend,
    which is part of the page. So no name can break the drawing, and every script is shown.

    Attributes:
        axes: where matplotlib draws.
    """

    def __init__(self, horizontal: str, vertical: str, *, square: bool = False) -> None:
        from matplotlib.figure import Figure

        # Small, so that its text is readable when the page scales it to the width of a phone.
        self._figure = Figure(figsize=(4.4, 3.4), layout="constrained")
        self.axes: Any = self._figure.add_subplot()
        axes = self.axes
        axes.set_xlabel(horizontal, color=Ink.TEXT, fontsize=11)
        axes.set_ylabel(vertical, color=Ink.TEXT, fontsize=11)
        axes.grid(visible=True, color=Ink.GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(Ink.MUTED)
        axes.tick_params(colors=Ink.MUTED, labelcolor=Ink.TEXT, labelsize=10)
        if square:
            axes.set(xlim=(0, 1), ylim=(0, 1))

    def line(self, x: ArrayLike, y: ArrayLike, ink: Ink, dashes: tuple[int, ...] = ()) -> None:
        """A curve; a single value becomes a point."""
        style = (0, dashes) if dashes else "-"
        marker = "o" if np.size(x) == 1 else ""
        self.axes.plot(
            _drawable(x), _drawable(y), color=ink, linestyle=style, linewidth=1.9, marker=marker
        )

    def point(self, x: float, y: float, ink: Ink, marker: str, *, hollow: bool = False) -> None:
        """Mark one point; a hollow mark is larger, so that it shows around a full one."""
        self.axes.plot(
            _drawable([x]),
            _drawable([y]),
            linestyle="none",
            marker=marker,
            markersize=12 if hollow else 7,
            markerfacecolor="none" if hollow else ink,
            markeredgecolor=ink,
            markeredgewidth=1.8,
            clip_on=False,
            zorder=5,
        )

    def logarithmic(self, floor: float) -> None:
        """A logarithmic vertical axis from 1 down to the floor, which stands for 0."""
        lowest = round(math.log10(floor))
        step = max(1, math.ceil(-lowest / 7))
        decades = [power for power in range(0, lowest, -step) if power - lowest >= step / 2]
        axes = self.axes
        axes.set_yscale("log")
        axes.set_ylim(floor, 1)
        axes.set_yticks(
            [10.0**power for power in decades] + [floor],
            labels=[_power(power) for power in decades] + ["0"],
        )
        axes.set_yticks([], minor=True)
        axes.set_xlim(left=0)

    def markup(self, name: str) -> str:
        """The ``<svg>`` element; byte-identical for the same drawing.

        Args:
            name: unique within the page, put before every id.
        """
        buffer = io.StringIO()
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        self._figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
        return _inlined(buffer.getvalue(), name)


def _drawable(values: ArrayLike) -> NDArray[np.float64]:
    """Values that axes can span without overflow."""
    drawn: NDArray[np.float64] = np.clip(np.asarray(values, np.float64), -LARGEST, LARGEST)
    return drawn


def _power(power: int) -> str:
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
