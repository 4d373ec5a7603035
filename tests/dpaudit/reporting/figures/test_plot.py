"""What a figure draws."""

import numpy as np

from dpaudit.reporting.figures.plot import LARGEST, Ink, drawable


def test_what_no_axis_can_span_is_drawn_at_its_end():
    drawn = drawable([np.inf, -np.inf, 1e308, 1.0, -0.0])
    assert drawn.tolist() == [LARGEST, -LARGEST, LARGEST, 1.0, 0.0]


def test_marks_of_colours_are_unique():
    """A drawing is searched for them, so no one may be the start of another."""
    values = [ink.value for ink in Ink]
    assert len(set(values)) == len(values)
    assert {len(value) for value in values} == {7}
    assert len(Ink.series()) == 6
