from __future__ import annotations

import numpy as np
import pytest

from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import ApproximateBlackBox, ConcentratedBlackBox, Mechanism, PureBlackBox

BOXES = [PureBlackBox(0.5), ApproximateBlackBox(0.5, 1e-6), ConcentratedBlackBox(0.1)]


@pytest.mark.parametrize("box", BOXES)
def test_it_serialises_and_comes_back_equal(box: Mechanism) -> None:
    assert Mechanism.parse(box.to_dict()) == box


@pytest.mark.parametrize("box", BOXES)
def test_an_unchanged_input_costs_nothing_and_a_fraction_is_refused(box: Mechanism) -> None:
    assert box.pair(0.0).pure_epsilon == 0
    with pytest.raises(InputError, match="takes 0 or 1"):
        box.pair(0.5)


@pytest.mark.parametrize("box", BOXES)
def test_it_cannot_be_run(box: Mechanism) -> None:
    with pytest.raises(UnsupportedError, match="declares only its privacy"):
        box.release(1.0, np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match="declares only its privacy"):
        box.log_density(np.zeros(1), 0.0)


def test_its_pair_has_the_declared_privacy() -> None:
    assert PureBlackBox(0.5).pair(1).delta(0.5) == pytest.approx(0.0, abs=1e-15)
    assert ApproximateBlackBox(0.5, 1e-6).pair(1).delta(0.5) == pytest.approx(1e-6, rel=1e-9)
    assert ConcentratedBlackBox(0.1).pair(1).renyi([2.0, 5.0]) == pytest.approx([0.2, 0.5])
    with pytest.raises(UnsupportedError, match="law of the privacy loss"):
        ConcentratedBlackBox(0.1).pair(1).delta(1.0)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (PureBlackBox, {"epsilon": -1.0}),
        (ApproximateBlackBox, {"epsilon": 1.0, "delta": 1.0}),
        (ConcentratedBlackBox, {"rho": float("nan")}),
    ],
)
def test_bad_parameters_are_refused(kind: type[Mechanism], fields: dict[str, float]) -> None:
    with pytest.raises(InputError):
        kind(**fields)
