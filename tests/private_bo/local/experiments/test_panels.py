"""The panels of Figure 2."""

from __future__ import annotations

from private_bo.local.experiments.panels import PANELS


def test_panels_are_those_of_the_paper() -> None:
    shown = [(panel.letter, panel.source, panel.epsilon) for panel in PANELS]
    assert shown == [
        ("a", "synthetic", 1.0),
        ("b", "sensors", 0.5),
        ("c", "stocks", 1.0),
        ("d", "synthetic", None),
        ("e", "sensors", None),
        ("f", "stocks", None),
    ]
