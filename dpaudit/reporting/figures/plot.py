"""What a figure draws, as numbers; its drawing is made from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.mechanisms.pairs import Floats

LARGEST = 1e100
"""Larger values are drawn here, as axes cannot span them."""


class Ink(StrEnum):
    """Colours by role. Each is a mark that a renderer replaces by its own colour."""

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


class Mark(StrEnum):
    """The shape of a point, or of an entry of a legend."""

    LINE = "line"
    CIRCLE = "circle"
    SQUARE = "square"
    TRIANGLE = "triangle"


@dataclass(frozen=True, eq=False)
class Line:
    """A curve.

    Attributes:
        x: abscissas, shape (n,).
        y: ordinates, shape (n,).
        ink: its colour.
        dashes: lengths of dash and gap; empty for a whole line.
        shaded: whether what lies below it is tinted.
    """

    x: Floats
    y: Floats
    ink: Ink
    dashes: tuple[int, ...] = ()
    shaded: bool = False


@dataclass(frozen=True)
class Dot:
    """One marked point; a hollow one is larger, so that it shows around a full one."""

    x: float
    y: float
    ink: Ink
    mark: Mark
    hollow: bool = False


@dataclass(frozen=True, eq=False)
class Plot:
    """One pair of axes: numbers, fixed words, and of a certificate plain short labels alone.

    Attributes:
        horizontal: name of the horizontal axis.
        vertical: name of the vertical axis.
        lines: curves, the first at the bottom.
        dots: points, above the curves.
        square: whether both axes run from 0 to 1.
        rows: how many rows of a table stand along the vertical axis, from the top; 0 for numbers.
        labels: of these rows, from the top; short, and of plain letters alone. Empty where they
            are numbered.
        floor: where a logarithmic vertical axis ends, which stands for 0; None for a linear axis.
    """

    horizontal: str
    vertical: str
    lines: tuple[Line, ...] = ()
    dots: tuple[Dot, ...] = ()
    square: bool = False
    floor: float | None = None
    rows: int = 0
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Key:
    """One entry of a legend. It stands beside the figure, as text of the page.

    Attributes:
        mark: how it is drawn.
        ink: in which colour.
        label: what it is.
        dashes: lengths of dash and gap of a line; empty for a whole one.
    """

    mark: Mark
    ink: Ink
    label: str
    dashes: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure for a page.

    Attributes:
        name: unique within its report.
        title: what it shows.
        description: what there is to see, for those who cannot.
        plot: what is drawn.
        legend: its keys.
    """

    name: str
    title: str
    description: str
    plot: Plot
    legend: tuple[Key, ...]


def drawable(values: ArrayLike) -> Floats:
    """Values that axes can span without overflow."""
    drawn: Floats = np.clip(np.asarray(values, np.float64), -LARGEST, LARGEST)
    return drawn
