"""Drawings: numbers and fixed words alone, in colours of the page."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from dpaudit.reporting.figures.plot import Dot, Ink, Line, Mark, Plot
from dpaudit.reporting.html.svg import markup

LINE = Line(np.array([0.0, 1.0]), np.array([0.5, 0.25]), Ink.PROVED)
PLOT = Plot("uses", "ε", (LINE,), (Dot(0.5, 0.4, Ink.CLAIM, Mark.SQUARE, hollow=True),))


def test_same_markup_for_the_same_plot():
    assert markup(PLOT, "a") == markup(PLOT, "a")


def test_is_well_formed_and_named():
    root = ET.fromstring(markup(PLOT, "a"))
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "a-title a-words"


def test_every_identifier_bears_the_name():
    for element in ET.fromstring(markup(PLOT, "x7")).iter():
        assert element.get("id", "x7-").startswith("x7-")
        assert element.get("href", "#x7-").startswith("#x7-")


def test_colours_are_variables():
    text = markup(PLOT, "a")
    assert "var(--ink-proved)" in text
    assert "var(--ink-claim)" in text
    assert not any(ink.value in text for ink in Ink)


def test_logarithmic_axis_ends_at_zero():
    text = markup(replace(PLOT, floor=1e-7), "a")
    assert "10⁻⁶" in text
    assert "10⁻⁷" not in text
    assert ">0<" in text


@pytest.mark.parametrize("value", [0.0, 1e300, -1e300, 5e-324])
def test_a_single_value_is_a_point(value):
    single = Line(np.array([1.0]), np.array([value]), Ink.FIRST)
    assert "<use" in markup(Plot("round", "value", (single,)), "a")
