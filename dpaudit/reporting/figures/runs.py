"""The figures of what a run recorded for its owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpaudit.base.numbers import plain
from dpaudit.reporting.curves import thin_series
from dpaudit.reporting.figures.plot import LARGEST, Figure, Ink, Key, Line, Mark, Plot

_LINES_A_FIGURE = 6
_MOST_SERIES = 24
_PATTERNS = ((), (6, 2), (2, 2), (8, 2, 2, 2), (1, 1), (4, 4))


def series_figures(series: Mapping[str, Sequence[float]]) -> tuple[Figure, ...]:
    """Curves of a run; those of like length and size share a figure."""
    groups: list[list[str]] = []
    for name in [name for name, values in sorted(series.items()) if len(values) > 0][:_MOST_SERIES]:
        home = next((g for g in groups if _share_axes(series[g[0]], series[name], len(g))), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return tuple(_series_figure(number, names, series) for number, names in enumerate(groups, 1))


def _share_axes(one: Sequence[float], other: Sequence[float], lines: int) -> bool:
    sizes = sorted(max(map(abs, values)) for values in (one, other))
    return lines < _LINES_A_FIGURE and len(one) == len(other) and sizes[1] <= 20 * sizes[0]


def _clipping_note(names: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """Return what to say where values are too large to be drawn."""
    if max(abs(value) for name in names for value in series[name]) <= LARGEST:
        return ""
    return f" Values beyond ±{LARGEST:g} are drawn as ±{LARGEST:g}; the table has them."


def _series_figure(
    number: int, names: Sequence[str], series: Mapping[str, Sequence[float]]
) -> Figure:
    lines, legend, spoken = [], [], []
    for ink, pattern, name in zip(Ink.series(), _PATTERNS, names, strict=False):
        lines.append(Line(*thin_series(series[name]), ink, pattern))
        legend.append(Key(Mark.LINE, ink, name, pattern))
        spoken.append(f"{name} ends at {plain(float(series[name][-1]))}")
    about = f"After {len(series[names[0]])} rounds, {'; '.join(spoken)}."
    return Figure(
        f"series-{number}",
        f"Run: {', '.join(names)}",
        about + _clipping_note(names, series),
        Plot("round", "value", tuple(lines)),
        tuple(legend),
    )
