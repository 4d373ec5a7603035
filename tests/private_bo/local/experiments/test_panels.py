"""The panels of Figure 2."""

from __future__ import annotations

import numpy as np
import pytest

from private_bo.local.experiments.figure2 import (
    PANELS,
    Algorithm,
    Curve,
    Setting,
    Trial,
    verdict,
)


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


@pytest.mark.parametrize(
    ("shift", "word"), [(-5.0, "beats"), (5.0, "loses to"), (0.0, "is level with")]
)
def test_verdict_is_paired(shift: float, word: str) -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(100, 30, 10)  # far apart between trials, equal within a trial

    def curve(values: np.ndarray) -> Curve:
        return Curve(Setting(), [Trial(np.array([0.0, value]), 60.0, 1) for value in values])

    curves = {
        Algorithm.ATA: curve(base + 40),
        Algorithm.TGP: curve(base),
        Algorithm.MOMA: curve(base + shift + rng.normal(0, 1, 10)),
    }
    assert f"LDP-MoMA-GP-UCB {word} LDP-TGP-UCB" in verdict(PANELS[0], curves)
