"""The public configuration of a federation."""

import pytest

from private_bo.federated import Reliance


@pytest.mark.parametrize(
    ("reliance", "power"),
    [(Reliance.INVERSE_ROOT, 0.5), (Reliance.INVERSE, 1.0), (Reliance.INVERSE_SQUARE, 2.0)],
)
def test_reliance_falls_as_the_paper_says(reliance: Reliance, power: float) -> None:
    found = reliance.shares(60)
    assert found[0] == 0.0
    assert found[1:] == pytest.approx([t**-power for t in range(1, 61)])
